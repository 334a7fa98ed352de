package policy

import (
	"fmt"
	"math/big"
	"time"

	"github.com/admitd/admit/admission"
)

// Effect is what a policy would change for somebody, at once.
type Effect struct {
	Pool string `json:"pool" yaml:"pool"`
	// Tenant is whom it hits, empty for the whole pool.
	Tenant string `json:"tenant,omitempty" yaml:"tenant,omitempty"`
	// Text says what.
	Text string `json:"text" yaml:"text"`
}

// Live is how a pool stands under the policy in force.
type Live struct {
	Active  int64
	Tenants []LiveTenant
}

// LiveTenant is how a tenant stands.
type LiveTenant struct {
	ID     string
	Active int64
	// Put says that it has a row of its own, which outlives policies.
	Put bool
}

// Effects returns what comes of a policy in place of another: whose cap falls below
// what they hold, which buckets slow down, whose part of what is shared shrinks. live
// are the pools as they stand, by name.
func Effects(was, is admission.Policy, live map[string]Live) []Effect {
	var all []Effect
	for i := range is.Pools {
		for j := range was.Pools {
			if was.Pools[j].Name == is.Pools[i].Name {
				e := effects{was: &was.Pools[j], is: &is.Pools[i], live: live[is.Pools[i].Name]}
				e.pool()
				e.buckets()
				e.tenants()
				all = append(all, e.all...)
			}
		}
	}
	return all
}

type effects struct {
	was, is *admission.PoolPolicy
	live    Live
	all     []Effect
}

func (e *effects) add(tenant, format string, args ...any) {
	e.all = append(e.all, Effect{Pool: e.is.Name, Tenant: tenant, Text: fmt.Sprintf(format, args...)})
}

func (e *effects) pool() {
	if e.was.Shadow != e.is.Shadow {
		if e.is.Shadow {
			e.add("", "refuses nobody any more: it only watches")
		} else {
			e.add("", "begins to refuse: it only watched")
		}
	}
	e.cap("", "max_active", e.was.MaxActive, e.is.MaxActive, e.live.Active)
}

// cap tells of a cap that comes under what is held; 0 is none.
func (e *effects) cap(tenant, name string, was, is, held int64) {
	if is == was || is == 0 || held < is {
		return
	}
	e.add(tenant, "%s falls to %d, and %d permits are live: nothing is granted until %d have ended", name, is, held, held-is+1)
}

func (e *effects) buckets() {
	for _, b := range e.is.Buckets {
		was, ok := bucketNamed(e.was, b.Name, b.Scope)
		if !ok {
			e.add("", "bucket %s is new: %s", b.Name, pace(b))
			continue
		}
		e.slows("", was, b)
	}
	for _, b := range e.was.Buckets {
		if _, ok := bucketNamed(e.is, b.Name, b.Scope); !ok {
			e.add("", "bucket %s is gone: what it limited is free", b.Name)
		}
	}
}

func bucketNamed(p *admission.PoolPolicy, name string, scope admission.Scope) (admission.BucketPolicy, bool) {
	for _, b := range p.Buckets {
		if b.Name == name && b.Scope == scope {
			return b, true
		}
	}
	return admission.BucketPolicy{}, false
}

// slows tells of a bucket that gives less, and says whether it does.
func (e *effects) slows(tenant string, was, is admission.BucketPolicy) bool {
	switch {
	case is.Blocked && !was.Blocked:
		e.add(tenant, "bucket %s is blocked: nothing that it charges is granted", is.Name)
	case was.Blocked:
		return false
	case rate(is).Cmp(rate(was)) < 0:
		e.add(tenant, "bucket %s slows down: %s, was %s", is.Name, pace(is), pace(was))
	case is.Capacity < was.Capacity:
		e.add(tenant, "bucket %s allows smaller bursts: %d, was %d", is.Name, is.Capacity, was.Capacity)
	default:
		return false
	}
	return true
}

// rate is what comes back in a nanosecond.
func rate(b admission.BucketPolicy) *big.Rat {
	if b.OneShot || b.Blocked {
		return new(big.Rat)
	}
	return big.NewRat(b.Refill, max(int64(b.Period), 1))
}

func pace(b admission.BucketPolicy) string {
	switch {
	case b.Blocked:
		return "blocked"
	case b.OneShot:
		return fmt.Sprintf("%d once", b.Capacity)
	}
	return fmt.Sprintf("%d in %s", b.Refill, shortDuration(b.Period))
}

func (e *effects) tenants() {
	for _, t := range e.live.Tenants {
		if t.Put {
			continue // its row holds, whatever the policy says
		}
		was, is := shareOf(e.was, t.ID), shareOf(e.is, t.ID)
		e.cap(t.ID, "max_active", was.MaxActive, is.MaxActive, t.Active)
		if a, b := preferred(was), preferred(is); b < a {
			e.add(t.ID, "is entitled to %d permits, was to %d", b, a)
		}
		e.ownBuckets(t.ID, was, is)
	}
	e.weights()
}

// ownBuckets tells of buckets that slow down for one tenant and not for all.
func (e *effects) ownBuckets(id string, was, is admission.TenantPolicy) {
	for _, b := range e.is.Buckets {
		before, ok := bucketNamed(e.was, b.Name, b.Scope)
		if !ok || b.Scope != admission.ScopeTenant {
			continue
		}
		own, had := ownNumbers(b, is.Buckets[b.Name]), ownNumbers(before, was.Buckets[b.Name])
		if own == b && had == before {
			continue // as for all
		}
		e.slows(id, had, own)
	}
}

// weights tells of weights that policies give by name.
func (e *effects) weights() {
	for i := range e.is.Overrides {
		id := e.is.Overrides[i].ID
		was, is := shareOf(e.was, id), shareOf(e.is, id)
		if was.Weight != is.Weight {
			e.add(id, "weighs %d, was %d", is.Weight, was.Weight)
		}
	}
	for i := range e.was.Overrides {
		id := e.was.Overrides[i].ID
		if !overridden(e.is, id) && shareOf(e.was, id).Weight != shareOf(e.is, id).Weight {
			e.add(id, "weighs %d, was %d", shareOf(e.is, id).Weight, shareOf(e.was, id).Weight)
		}
	}
}

func overridden(p *admission.PoolPolicy, id string) bool {
	for i := range p.Overrides {
		if p.Overrides[i].ID == id {
			return true
		}
	}
	return false
}

// shareOf is what a policy gives a tenant without a row of its own.
func shareOf(p *admission.PoolPolicy, id string) admission.TenantPolicy {
	share := p.Defaults
	for _, o := range p.Overrides {
		if o.ID != id {
			continue
		}
		if o.Weight != 0 {
			share.Weight = o.Weight
		}
		if o.PreferredActive != nil {
			share.PreferredActive = o.PreferredActive
		}
		if o.MaxActive != 0 {
			share.MaxActive = o.MaxActive
		}
		share.Buckets = o.Buckets
	}
	share.Weight = max(share.Weight, 1)
	return share
}

func preferred(t admission.TenantPolicy) int64 {
	if t.PreferredActive == nil {
		return 0
	}
	return *t.PreferredActive
}

func ownNumbers(b admission.BucketPolicy, o admission.BucketOverride) admission.BucketPolicy {
	if o.Capacity != 0 {
		b.Capacity, b.Blocked = o.Capacity, false
	}
	if o.Refill != 0 {
		b.Refill = o.Refill
	}
	if o.Period != 0 {
		b.Period = o.Period
	}
	b.Blocked = b.Blocked || o.Blocked
	return b
}

// shortDuration writes a duration without the zero units at its end.
func shortDuration(d time.Duration) string {
	switch {
	case d%time.Hour == 0 && d != 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0 && d != 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
