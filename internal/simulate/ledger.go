package simulate

import (
	"github.com/admitd/admit/admission"
)

// ledger is one pool as the workload knows it: who wants what, and who holds
// what. It is kept from what was asked and answered, never from what the core
// thinks is fair.
type ledger struct {
	run    *run
	policy *admission.PoolPolicy
	name   string
	lanes  []*lane
	byName map[string]*lane

	tenants map[string]*tenant
	list    []*tenant // in the order in which they came up
	active  int64
	// jobs are those in the index of due work, by key.
	jobs map[string]*job
	// lost are the permits whose holders vanished, by expiry.
	lost []*hold
	// pinched are the wants that lack tokens of their tenant's own.
	pinched []*want
	// fairUse says that tenants have buckets of their own.
	fairUse bool

	health admission.PoolHealth
	idle   idleTime
	// taken counts the tokens that each POOL bucket gave; peaks are the most
	// demands that were held at once for each reason.
	taken []int64
	spans spans
	peaks map[admission.Reason]int64
}

// lane is a lane of a ledger.
type lane struct {
	ledger *ledger
	name   string
	rank   int
	policy admission.LanePolicy
	active int64
	// away are the jobs that the pool shed and that come back later.
	away int64
	// planned are the free slots that ledger.measure has given to the lane.
	planned int64
	// costliest is the most that a job of the lane costs.
	costliest int64
	contests  [2]contest
	switches  int64
	yielding  bool
}

// tenant is a tenant of a ledger.
type tenant struct {
	ledger    *ledger
	id        string
	num       int
	weight    int64
	preferred int64
	maxActive int64 // 0: no cap
	active    int64
	wants     []*want // by rank of lane, nil where there never was one
}

// want is what a tenant wants in a lane.
type want struct {
	tenant *tenant
	lane   *lane
	active int64
	// due are its due entries that nobody has claimed, waiting its Acquires in
	// line.
	due, waiting int64
	// pinched says that the tenant's own buckets lack tokens; listed that it is
	// among ledger.pinched.
	pinched, listed bool
	in              *contest // where it contends, or nil
	service         service
	claim           *claim // the unit that it is owed, or nil
}

func newLedger(r *run, p *admission.PoolPolicy) *ledger {
	l := &ledger{
		run: r, policy: p, name: p.Name, byName: map[string]*lane{}, tenants: map[string]*tenant{},
		jobs: map[string]*job{}, taken: make([]int64, len(p.Buckets)), spans: newSpans(len(p.Buckets)), peaks: map[admission.Reason]int64{},
	}
	for _, b := range p.Buckets {
		l.fairUse = l.fairUse || b.Scope == admission.ScopeTenant
	}
	for rank, name := range lanesOf(p) {
		ln := &lane{ledger: l, name: name, rank: rank, costliest: 1}
		if len(p.Lanes) > 0 {
			ln.policy = p.Lanes[rank]
		}
		l.lanes = append(l.lanes, ln)
		l.byName[name] = ln
	}
	return l
}

// tenant returns the tenant of that id, with its share by the policy.
func (l *ledger) tenant(id string) *tenant {
	if t := l.tenants[id]; t != nil {
		return t
	}
	t := &tenant{ledger: l, id: id, num: len(l.list), weight: 1, wants: make([]*want, len(l.lanes))}
	for _, p := range append([]admission.TenantPolicy{l.policy.Defaults}, l.overrides(id)...) {
		if p.Weight != 0 {
			t.weight = p.Weight
		}
		if p.PreferredActive != nil {
			t.preferred = *p.PreferredActive
		}
		if p.MaxActive != 0 {
			t.maxActive = p.MaxActive
		}
	}
	l.tenants[id] = t
	l.list = append(l.list, t)
	return t
}

func (l *ledger) overrides(id string) []admission.TenantPolicy {
	for i := range l.policy.Overrides {
		if l.policy.Overrides[i].ID == id {
			return l.policy.Overrides[i : i+1]
		}
	}
	return nil
}

// laneOf returns the lane that a category means for a tenant.
func (l *ledger) laneOf(tenant, category string) *lane {
	if category != "" {
		return l.byName[l.policy.Categories[category]]
	}
	name := l.policy.Defaults.Lane
	for _, o := range l.overrides(tenant) {
		if o.Lane != "" {
			name = o.Lane
		}
	}
	if name == "" {
		return l.lanes[len(l.lanes)-1]
	}
	return l.byName[name]
}

func (t *tenant) want(ln *lane) *want {
	if t.wants[ln.rank] == nil {
		t.wants[ln.rank] = &want{tenant: t, lane: ln}
	}
	return t.wants[ln.rank]
}

// demand is what could be taken now, were there room.
func (w *want) demand() int64 { return w.due + w.waiting }

// room is how many more permits the tenant may hold.
func (t *tenant) room() int64 {
	if t.maxActive == 0 {
		return 1 << 53
	}
	return max(t.maxActive-t.active, 0)
}

// eligible says whether nothing of the tenant's own holds the want.
func (w *want) eligible() bool { return w.demand() > 0 && w.tenant.room() > 0 && !w.pinched }

// entitled says whether the next permit is within what the tenant prefers.
func (w *want) entitled() bool {
	held := int64(0)
	for _, other := range w.tenant.wants[:w.lane.rank+1] {
		if other != nil {
			held += other.active
		}
	}
	return held < w.tenant.preferred
}

// settle puts every want of the tenant where it contends now.
func (t *tenant) settle() {
	for _, w := range t.wants {
		if w == nil {
			continue
		}
		w.pinch()
		var to *contest
		if w.eligible() {
			to = &w.lane.contests[1]
			if w.entitled() {
				to = &w.lane.contests[0]
			}
		}
		w.contend(to)
	}
}

// pinch notes whether the tenant's own buckets lack what a job may cost.
func (w *want) pinch() {
	l := w.tenant.ledger
	w.pinched = false
	if !l.fairUse || w.demand() == 0 {
		return
	}
	for _, b := range l.run.state.Tenant(l.run.now, l.name, w.tenant.id).Levels {
		w.pinched = w.pinched || b.Level < w.lane.costliest
	}
	if w.pinched && !w.listed {
		w.listed = true
		l.pinched = append(l.pinched, w)
	}
}

// unpinch looks again at those who lacked tokens: time may have brought them.
func (l *ledger) unpinch() {
	looked := l.pinched
	l.pinched = nil
	for _, w := range looked {
		w.listed = false
		w.tenant.settle()
	}
}

// take books a permit to a want.
func (w *want) take(n int64) {
	w.active += n
	w.tenant.active += n
	w.lane.active += n
	w.tenant.ledger.active += n
}

// charge counts the tokens that a permit of that cost takes.
func (l *ledger) charge(cost int64) {
	for i, b := range l.policy.Buckets {
		switch {
		case b.Scope != admission.ScopePool:
		case b.PerPermit:
			l.spend(i, 1)
		default:
			l.spend(i, cost)
		}
	}
}
