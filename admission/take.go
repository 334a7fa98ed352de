package admission

import (
	"math"
	"slices"
)

// A Take is decided after all else of its entry: what waits in line has gone before,
// and who still waits for tokens of the pool holds up who comes after him. It takes no
// turn, and so moves nobody's tag.

// taking is a Take that is being decided at a moment.
type taking struct {
	*State
	op     *Take
	pool   *pool
	at     Instant
	result *TakeResult
	// holder reserves the pool's tokens, if reserved.
	holder   position
	reserved bool
	// tenants are those of its parts, made up where the pool does not know them.
	tenants []*tenant
	// asked is what the parts so far take of each bucket, newcomers the tenants that
	// become known by it.
	asked     map[askedBucket]int64
	newcomers []*tenant
}

// askedBucket is a bucket by its name, of the pool where tenant is nil.
type askedBucket struct {
	tenant *tenant
	bucket string
}

// maxAsked bounds the sum that is asked of a bucket: none holds so much.
const maxAsked = 2 * MaxTokens

// weigh decides a Take, changing nothing. Parts that only watch come last: they stand
// in no other's way.
func (s *State) weigh(op *Take, at Instant) *taking {
	k := &taking{State: s, op: op, pool: s.pools.byName(op.Pool), at: at, result: &TakeResult{}}
	if k.pool == nil || k.pool.draining {
		k.result.Err = poolNotFound(op.Pool)
		return k
	}
	k.result.Held = make([]*Shed, len(op.Parts))
	k.asked = make(map[askedBucket]int64, len(op.Parts))
	k.holder, k.reserved = s.reservation(k.pool, at)
	for _, watches := range []bool{false, true} {
		for i := range op.Parts {
			if part := &op.Parts[i]; part.Tokens >= 0 && k.watches(part) == watches {
				k.result.Held[i] = k.examine(part)
				k.result.Refused = k.result.Refused || k.result.Held[i] != nil && !watches
			}
		}
	}
	return k
}

// watches says whether the part only says what would be.
func (k *taking) watches(part *TakePart) bool { return part.Shadow || k.pool.shadow }

// examine returns why the part is held, beside what those before it take, or nil.
func (k *taking) examine(part *TakePart) *Shed {
	t := k.tenant(part.Tenant)
	l, known := t.laneOf(part)
	x := k.newExamination(t.demand(l), need{
		cost: max(part.Tokens, 1), slotless: true, single: true, seq: math.MaxUint64,
	}, k.at)
	x.taking, x.part = k, part
	if k.reserved && k.goesAfter(x.demand, x.need, k.holder) {
		x.holder = &k.holder
	}
	if !known {
		x.add(Blocked, Limit{Name: "tenants.unknown", Scope: ScopeTenant, Asked: 1}, never)
	}
	x.run()
	if part.Tokens > 0 && t.charged(part) {
		k.enter(x, t, l)
	}
	if x.reason == ReasonNone || !k.watches(part) {
		k.note(part, t)
	}
	if x.reason == ReasonNone {
		return nil
	}
	return x.shed()
}

// enter tests whether the pool lets in a tenant whose own buckets are to be charged.
func (k *taking) enter(x *examination, t *tenant, l *lane) {
	others := len(k.newcomers)
	if slices.Contains(k.newcomers, t) {
		others--
	}
	for _, door := range t.closedBeside(int64(others), l, k.at) {
		x.add(Cardinality, door.limit, door.opensAt)
	}
	x.readyAt = t.returnsAt(l, x.readyAt)
}

// note counts what the part takes, for those that come after it.
func (k *taking) note(part *TakePart, t *tenant) {
	if part.Tokens == 0 {
		return
	}
	add := func(spec *bucketSpec) {
		if part.takes(spec) {
			k.asked[askedOf(t, spec)] = min(k.before(t, spec)+spec.charge(part.Tokens), maxAsked)
		}
	}
	for i := range k.pool.buckets {
		add(k.pool.buckets[i].bucketSpec)
	}
	for _, spec := range t.share.buckets {
		add(spec)
	}
	if t.charged(part) && !t.resident() && t.strange() && !slices.Contains(k.newcomers, t) {
		k.newcomers = append(k.newcomers, t)
	}
}

// before returns what the parts so far take of a bucket, t's own if it has that scope.
func (k *taking) before(t *tenant, spec *bucketSpec) int64 { return k.asked[askedOf(t, spec)] }

func askedOf(t *tenant, spec *bucketSpec) askedBucket {
	if spec.scope == ScopePool {
		t = nil
	}
	return askedBucket{t, spec.name}
}

// tenant returns the tenant of that id, the same each time.
func (k *taking) tenant(id string) *tenant {
	for _, t := range k.tenants {
		if t.id == id {
			return t
		}
	}
	t := k.pool.tenant(id)
	k.tenants = append(k.tenants, t)
	return t
}

// laneOf returns the lane of a part, and whether the pool takes requests of its tenant.
// A category that the pool does not map any more means the tenant's own lane.
func (t *tenant) laneOf(part *TakePart) (l *lane, known bool) {
	known = part.Tenant == "" || t.refused() == nil
	if l := t.pool.categories[part.Category]; l != nil {
		return l, known
	}
	return t.share.lane, known
}

// takes says whether the part takes of the bucket.
func (p *TakePart) takes(spec *bucketSpec) bool {
	return slices.Contains(p.Buckets, spec.name) && (spec.scope == ScopePool || p.Tenant != "")
}

// charged says whether the part takes of the tenant's own buckets.
func (t *tenant) charged(part *TakePart) bool {
	return slices.ContainsFunc(t.share.buckets, func(spec *bucketSpec) bool { return part.takes(spec) })
}

// take decides a Take and charges it.
func (s *State) take(op *Take) *TakeResult {
	k := s.weigh(op, s.t)
	if k.result.Err != nil || k.result.Refused {
		return k.result
	}
	for i := range op.Parts {
		if part := &op.Parts[i]; part.Tokens > 0 && k.result.Held[i] == nil {
			k.charge(part)
		}
	}
	return k.result
}

func (k *taking) charge(part *TakePart) {
	t := k.tenant(part.Tenant)
	if t.charged(part) {
		k.register(t)
	}
	k.eachBucket(t, part, func(spec *bucketSpec, b *bucketState) { b.take(spec.charge(part.Tokens)) })
	if t.charged(part) {
		k.noteIdle(t)
		k.reseatTenant(t)
	}
}

// eachBucket calls fn for every settled bucket that the part names; those of a tenant
// that is not known are full, and are passed over.
func (s *State) eachBucket(t *tenant, part *TakePart, fn func(*bucketSpec, *bucketState)) {
	for i := range t.pool.buckets {
		if b := &t.pool.buckets[i]; part.takes(b.bucketSpec) {
			b.settle(b.bucketSpec, s.t)
			fn(b.bucketSpec, &b.bucketState)
		}
	}
	if !t.known() || !t.charged(part) {
		return
	}
	row := s.writeTenant(t)
	for i, spec := range t.share.buckets {
		if part.takes(spec) {
			row.buckets[i].settle(spec, s.t)
			fn(spec, &row.buckets[i])
		}
	}
}

// giveBack returns the tokens of those parts of a Take that give some back, whatever
// becomes of the others: they say what has come to an end.
func (s *State) giveBack(op *Take) {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return
	}
	for i := range op.Parts {
		part := &op.Parts[i]
		if part.Tokens >= 0 {
			continue
		}
		t := p.tenant(part.Tenant)
		s.eachBucket(t, part, func(spec *bucketSpec, b *bucketState) { b.giveBack(spec.charge(-part.Tokens)) })
		if t.known() && t.charged(part) {
			s.unsettleTenant(t)
			s.noteIdle(t)
		}
	}
}

// DecideTake returns what a Take would come to at an instant, changing nothing, and
// whether that stands: then nothing would change, and nothing needs to be logged for it.
// What it gives back is not reckoned in.
func (s *State) DecideTake(at Instant, op *Take) (r *TakeResult, stands bool) {
	at = max(at, s.t)
	k := s.weigh(op, at)
	switch {
	case k.result.Err != nil:
		return k.result, true
	case k.pool.yieldStale(s.w.Add(at.Sub(s.t))):
		return k.result, false // only an entry can tell
	}
	changes := false
	for i := range op.Parts {
		held := k.result.Held[i]
		if held != nil && held.Reason == Cardinality && k.pool.idleBy(at) {
			return k.result, false // an entry would find room first
		}
		changes = changes || op.Parts[i].Tokens < 0 || op.Parts[i].Tokens > 0 && held == nil && !k.result.Refused
	}
	return k.result, !changes
}
