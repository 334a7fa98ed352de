package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/admitd/admit/admission"
)

// The defaults of the limits that bound what may wait in a pool.
const (
	defaultEntries = 10_000_000
	defaultWaiting = 10_000
)

// Lint returns advice on a policy that is valid: what is allowed, and is seldom what
// was meant. The error is that of Load.
func Lint(name string, data []byte) ([]Problem, error) {
	root, err := ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	msg, core, err := FromNode(name, root)
	if err != nil {
		return nil, err
	}
	t := newTree(root, msg.ProtoReflect().Descriptor())
	var advice []Problem
	for i := range core.Pools {
		l := linter{pool: &core.Pools[i], at: fmt.Sprintf("pools[%d]", i), say: func(field, message string) {
			node := t.nearest(parsePath(field).key)
			advice = append(advice, Problem{Line: node.Line, Column: node.Column, Field: field, Message: message})
		}}
		l.limits()
		l.lent()
		l.lanes()
		l.shares()
		l.envoy()
	}
	if ordered, ok := NewFileError(name, advice).(*FileError); ok {
		return ordered.Problems, nil
	}
	return nil, nil
}

// linter looks at one pool.
type linter struct {
	pool *admission.PoolPolicy
	at   string
	say  func(field, message string)
}

func (l *linter) scoped(scope admission.Scope) (names []string) {
	for _, b := range l.pool.Buckets {
		if b.Scope == scope {
			names = append(names, b.Name)
		}
	}
	return names
}

func (l *linter) limits() {
	if l.pool.MaxActive == 0 && len(l.scoped(admission.ScopePool)) == 0 && len(l.pool.Envoy) == 0 {
		l.say(l.at, "nothing limits the pool: it has neither max_active nor a bucket of scope POOL")
	}
	if l.pool.Shadow {
		l.say(l.at+".enforcement", "the pool only watches: who would be refused is let through")
	}
	if l.pool.MaxActive > 0 && l.pool.Defaults.MaxActive == 0 && len(l.scoped(admission.ScopeTenant)) == 0 {
		l.say(l.at+".tenants.defaults", "nothing limits a tenant: one alone may hold every slot, and the others wait until it releases some")
	}
}

// lent says what of the pool's buckets sidecars may keep from all others.
func (l *linter) lent() {
	some := slices.ContainsFunc(l.pool.Buckets, func(b admission.BucketPolicy) bool { return b.Share.Max > 0 })
	for i := range l.pool.Buckets {
		b := &l.pool.Buckets[i]
		at := fmt.Sprintf("%s.buckets[%d]", l.at, i)
		switch {
		case some && b.Share.Max == 0:
			l.say(at, fmt.Sprintf("bucket %q has no share: sidecars hold no tokens of the others either", b.Name))
		case b.Share.Max > b.Capacity/2:
			l.say(at+".share.max", "more than half of capacity: what sidecars hold does not refill, and who asks the cluster waits for it")
		}
	}
}

func (l *linter) lanes() {
	slots, tokens := int64(0), map[string]int64{}
	for i := range l.pool.Lanes {
		lane := &l.pool.Lanes[i]
		at := fmt.Sprintf("%s.lanes[%d]", l.at, i)
		if !l.led(lane.Name) {
			l.say(at, fmt.Sprintf("no category and no tenant leads to lane %q: it stays empty", lane.Name))
		}
		slots = max(slots, lane.LeaveSlots)
		for name, n := range lane.LeaveTokens {
			tokens[name] = max(tokens[name], n)
		}
		if i == 0 {
			continue
		}
		l.leaves(at, lane.Name, slots, tokens)
		if lane.Yield != nil {
			l.yields(at+".yield", i, lane.Yield)
		}
	}
}

// leaves says what a lower lane can take from those above down to the last.
func (l *linter) leaves(at, lane string, slots int64, tokens map[string]int64) {
	var all []string
	if l.pool.MaxActive > 0 && slots == 0 {
		all = append(all, "slots (leave_slots)")
	}
	for _, name := range l.scoped(admission.ScopePool) {
		if tokens[name] == 0 {
			all = append(all, fmt.Sprintf("tokens of bucket %s (leave_tokens)", name))
		}
	}
	if len(all) > 0 {
		l.say(at, fmt.Sprintf("lane %q leaves nothing to the lanes above: it may take all %s", lane, strings.Join(all, " and all ")))
	}
}

func (l *linter) yields(at string, rank int, y *admission.YieldPolicy) {
	if !slices.ContainsFunc(l.pool.Lanes[:rank], func(above admission.LanePolicy) bool { return l.led(above.Name) }) {
		l.say(at, "never holds: no category and no tenant leads to a lane above")
		return
	}
	entries, waiting := l.pool.Limits.Entries, l.pool.Limits.Waiting
	if entries == 0 {
		entries = defaultEntries
	}
	if waiting == 0 {
		waiting = defaultWaiting
	}
	if y.Above >= entries+waiting {
		l.say(at+".above", fmt.Sprintf("never reached by what waits: the pool holds at most %d entries and %d waiting requests", entries, waiting))
	}
}

// led says whether anything leads to the lane.
func (l *linter) led(lane string) bool {
	for _, to := range l.pool.Categories {
		if to == lane {
			return true
		}
	}
	own := l.pool.Defaults.Lane
	if own == "" {
		own = l.pool.Lanes[len(l.pool.Lanes)-1].Name
	}
	return own == lane || slices.ContainsFunc(l.pool.Overrides, func(t admission.TenantPolicy) bool { return t.Lane == lane })
}

func (l *linter) shares() {
	sum := int64(0)
	for i := range l.pool.Overrides {
		t := &l.pool.Overrides[i]
		at := fmt.Sprintf("%s.tenants.overrides[%d]", l.at, i)
		preferred := t.PreferredActive
		if preferred == nil {
			preferred = l.pool.Defaults.PreferredActive
		}
		if preferred != nil {
			sum += *preferred
		}
		l.caps(at, t)
	}
	l.caps(l.at+".tenants.defaults", &l.pool.Defaults)
	if l.pool.MaxActive > 0 && sum > l.pool.MaxActive {
		l.say(l.at+".tenants.overrides", fmt.Sprintf("preferred_active adds up to %d, and max_active is %d: not all can have what they are entitled to", sum, l.pool.MaxActive))
	}
}

func (l *linter) caps(at string, t *admission.TenantPolicy) {
	if l.pool.MaxActive > 0 && t.MaxActive > l.pool.MaxActive {
		l.say(at+".max_active", fmt.Sprintf("never reached: the pool's max_active is %d", l.pool.MaxActive))
	}
	if p := t.PreferredActive; p != nil && l.pool.MaxActive > 0 && *p > l.pool.MaxActive {
		l.say(at+".preferred_active", fmt.Sprintf("beyond the pool's max_active, %d", l.pool.MaxActive))
	}
	for lane, n := range t.LaneMaxActive {
		if most := t.MaxActive; most > 0 && n > most {
			l.say(fmt.Sprintf("%s.lane_max_active[%s]", at, lane), fmt.Sprintf("never reached: the tenant's max_active is %d", most))
		}
	}
}
