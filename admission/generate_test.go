package admission

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// The names of made-up histories. They are few, so that things collide.
var (
	poolNames     = []string{"p", "q"}
	tenantNames   = []string{"a", "b", "c", "d", "e"}
	laneNames     = []string{"high", "middle", "low"}
	categoryNames = []string{"", "x", "y", "z"}
	routeNames    = []string{"", "r", "s"}
	groupNames    = []string{"", "", "g", "h"}
	keyNames      = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"}
	requestNames  = []string{"", "", "", "id0", "id1", "id2"}
	bucketNames   = []string{"one", "two", "three"}
	cadenceNames  = []string{"", "", "", "", "", "c"}
)

// dice draws up to 256 numbers, each as often as the others; rapid's own integers
// are mostly small ones.
var dice = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 8 {
		n <<= 1
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

// one draws one of a few values. It shrinks to the first.
func one[T any](t *rapid.T, label string, of ...T) T { return of[dice.Draw(t, label)%len(of)] }

// odds draws true once in n.
func odds(t *rapid.T, label string, n int) bool { return dice.Draw(t, label)%n == n-1 }

func number(t *rapid.T, label string, least, most int) int64 {
	return int64(least + dice.Draw(t, label)%(most-least+1))
}

// history is a made-up run of entries on a state, watched by laws.
type history struct {
	*rapid.T
	*State
	tokens []Token
	// cursors are those that were given out by redrives and purges.
	cursors []DeadCursor
	// sent are operations that a client may send again.
	sent []Op
	// highest is the latest wall so far: below it due times can't be recounted.
	highest Wall
	laws    []law
	// waits are those in line, ends those whose wait the last entry ended; grants
	// is what it granted, in the order of the grants.
	waits, ends map[WaiterKey]*wait
	grants      []given
	tally       Tally
}

// law is a rule that every entry of a history must keep. It remembers what it
// needs.
type law interface {
	see(h *history, e Entry, results []Result)
}

// begin starts a history with a policy in force.
func begin(t *rapid.T, n Tally, policy Policy, laws ...law) *history {
	h := &history{T: t, State: New(), laws: laws, tally: n}
	h.apply(Entry{Index: 1, T: 1, W: 1_000_000_000_000, Ops: []Op{ApplyPolicy{Policy: policy, ExpectedRevision: AnyRevision}}})
	return h
}

// apply applies the entry and shows it to the laws.
func (h *history) apply(e Entry) []Result {
	results := h.Apply(e)
	h.highest = max(h.highest, h.w)
	for i, op := range e.Ops {
		h.tally.Count(op, results[i])
	}
	h.follow(e, results)
	h.noteTokens()
	h.noteCursors(results)
	for _, end := range h.Ended() {
		h.tally.Ended(end)
	}
	for _, l := range h.laws {
		l.see(h, e, results)
	}
	return results
}

func (h *history) noteTokens() {
	for _, g := range h.grants {
		if g.lasting() {
			h.tokens = append(h.tokens, g.Token)
		}
	}
}

// step is an entry that prints readably.
type step struct{ Entry }

func (s step) GoString() string { return describe(s.Entry) }

// next draws an entry of up to most operations.
func (h *history) next(t *rapid.T, most int) Entry {
	return rapid.Custom(func(t *rapid.T) step {
		passed := one(t, "passed", 0, 0, 0, 0, 0, 0, 1, time.Millisecond, 50*time.Millisecond, 50*time.Millisecond,
			50*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond, time.Second, time.Second, 3*time.Second, 10*time.Second,
			-time.Second)
		if odds(t, "long", 30) {
			passed = one(t, "passed", 2*time.Minute, 11*time.Minute)
		}
		e := Entry{Index: h.index + 1, T: h.t.Add(passed), W: h.w.Add(max(passed, 0))}
		if odds(t, "wall steps", 12) {
			e.W = e.W.Add(one(t, "wall step", 4*time.Second, -3*time.Second, -20*time.Second))
		}
		for range number(t, "ops", 0, most) {
			e.Ops = append(e.Ops, h.drawOp(t, e.W))
		}
		return step{e}
	}).Draw(t, "entry").Entry
}

// later returns an entry of these operations, so much later.
func (h *history) later(d time.Duration, ops ...Op) Entry {
	return Entry{Index: h.index + 1, T: h.t.Add(d), W: h.w.Add(d), Ops: ops}
}

// opKinds are the kinds of operations, as often as they are wanted.
var opKinds = func() (kinds []string) {
	often := map[string]int{
		"acquire": 12, "next_due": 10, "schedule": 12, "release": 12, "renew": 5, "again": 6,
		"unschedule": 3, "redrive": 3, "purge": 1, "pause": 3, "policy": 2, "tenants": 3, "term": 1, "detach": 3, "report": 3, "take": 6, "share": 6,
	}
	for _, kind := range slices.Sorted(maps.Keys(often)) {
		kinds = append(kinds, slices.Repeat([]string{kind}, often[kind])...)
	}
	return kinds
}()

func (h *history) drawOp(t *rapid.T, wall Wall) Op {
	switch one(t, "op", opKinds...) {
	case "acquire":
		return h.drawAcquire(t)
	case "next_due":
		return h.drawNextDue(t)
	case "schedule":
		s := &Schedule{Pool: h.drawPoolName(t)}
		for range number(t, "entries", 1, 4) {
			s.Entries = append(s.Entries, h.drawSpec(t, s.Pool, wall))
		}
		h.sent = append(h.sent, s)
		return s
	case "again":
		if len(h.sent) > 0 {
			return h.sent[len(h.sent)-1-int(number(t, "sent", 0, min(len(h.sent)-1, 7)))]
		}
		return h.drawAcquire(t)
	case "release":
		return &Release{
			Token:      h.drawToken(t),
			Outcome:    one(t, "outcome", OutcomeDone, OutcomeFailed, OutcomeThrottled, OutcomeNotStarted, OutcomeDead),
			Miss:       odds(t, "miss", 3),
			ActualCost: one[int64](t, "actual_cost", Absent, Absent, 0, 1, 2, 5, 20),
			RetryAfter: one(t, "retry_after", Absent, 0, 400*time.Millisecond, time.Hour),
			Bucket:     one(t, "bucket", "", "", bucketNames[0], bucketNames[1]),
		}
	case "renew":
		r := &Renew{TTL: one(t, "ttl", 0, time.Second, 30*time.Second)}
		for range number(t, "tokens", 1, 3) {
			r.Tokens = append(r.Tokens, h.drawToken(t))
		}
		return r
	case "unschedule":
		return Unschedule{Pool: h.drawPoolName(t), Tenant: one(t, "tenant", tenantNames...), Key: one(t, "key", keyNames...)}
	case "redrive":
		return h.drawRedrive(t)
	case "purge":
		return h.drawPurge(t)
	case "pause":
		return h.drawPause(t)
	case "detach":
		return h.drawDetach(t)
	case "report":
		r := &ReportDemand{
			Pool: h.drawPoolName(t), Tenant: one(t, "tenant", tenantNames...), Backlog: number(t, "backlog", 0, 4),
			TTL: one(t, "ttl", 0, time.Second, 20*time.Second),
		}
		r.Category = h.drawCategory(t, r.Pool)
		return r
	case "policy":
		return ApplyPolicy{
			Policy:           changePolicy(t, h.policy),
			ExpectedRevision: one[int64](t, "expected_revision", AnyRevision, AnyRevision, h.revision, h.revision-1),
			Drain:            odds(t, "drain", 3),
		}
	case "tenants":
		return h.drawPut(t)
	case "take":
		return h.drawTake(t)
	case "share":
		return h.drawLease(t)
	}
	return TermStart{Gap: one(t, "gap", 0, 200*time.Millisecond, 30*time.Second, -time.Second)}
}

// drawPut draws rows that mostly fit the policy in force.
func (h *history) drawPut(t *rapid.T) *PutTenants {
	op := &PutTenants{Pool: h.drawPoolName(t)}
	cfg := h.policy.pool(op.Pool)
	if cfg == nil {
		cfg = &PoolPolicy{}
	}
	for _, id := range rapid.Permutation(tenantNames).Draw(t, "tenants")[:number(t, "rows", 1, 2)] {
		op.Rows = append(op.Rows, TenantPut{Tenant: drawOverride(t, cfg, id), Remove: odds(t, "remove", 3)})
	}
	return op
}

// drawPoolName draws a pool of the policy, and now and then one that is not there.
func (h *history) drawPoolName(t *rapid.T) string {
	if len(h.policy.Pools) == 0 || odds(t, "no pool", 40) {
		return "nowhere"
	}
	return one(t, "pool", h.policy.Pools...).Name
}

// drawLaneName draws a lane of the pool, and now and then one that is not there.
func (h *history) drawLaneName(t *rapid.T, pool string) string {
	if p := h.pools.byName(pool); p != nil && !odds(t, "no lane", 20) {
		return one(t, "lane", p.lanes...).name
	}
	return one(t, "lane", laneNames...)
}

// drawCategory draws a category that the pool maps, none, or seldom a wrong one.
func (h *history) drawCategory(t *rapid.T, pool string) string {
	if p := h.pools.byName(pool); p != nil && !odds(t, "no category", 20) {
		return one(t, "category", append(sortedKeys(p.categories), "")...)
	}
	return one(t, "category", categoryNames...)
}

func (h *history) drawAcquire(t *rapid.T) *Acquire {
	a := &Acquire{
		Pool: h.drawPoolName(t), Tenant: one(t, "tenant", tenantNames...),
		Cost: one[int64](t, "cost", 1, 1, 1, 2, 3, 9), TTL: one(t, "ttl", 0, 0, 0, time.Second, 20*time.Second),
		RequestID: one(t, "request_id", requestNames...), Nonce: rapid.Uint64().Draw(t, "nonce"),
	}
	a.Category = h.drawCategory(t, a.Pool)
	if a.Backlog = Absent; odds(t, "tells its backlog", 10) {
		a.Backlog = number(t, "backlog", 0, 4)
	}
	a.MaxWait = one(t, "max_wait", 0, 0, 0, time.Second, 20*time.Second, time.Minute)
	a.LockKey = one(t, "lock_key", "", "", "", "l", "m")
	a.DedupeKey = one(t, "dedupe_key", "", "", "", "", "j", "k")
	if a.RateOnly = odds(t, "rate_only", 8); a.RateOnly {
		a.Settle = rapid.Bool().Draw(t, "settle")
	}
	if odds(t, "issued", 12) {
		a.IssuedAt = h.w.Add(-one(t, "issued_at", 0, memoryWindow-1, memoryWindow, time.Hour))
	}
	h.sent = append(h.sent, a)
	return a
}

// drawTake draws what takes tokens of a few buckets, or gives some back.
func (h *history) drawTake(t *rapid.T) *Take {
	op := &Take{Pool: h.drawPoolName(t)}
	for range number(t, "parts", 1, 3) {
		part := TakePart{
			Tenant: one(t, "tenant", append([]string{""}, tenantNames...)...), Category: h.drawCategory(t, op.Pool),
			Buckets: rapid.Permutation(bucketNames).Draw(t, "buckets")[:number(t, "named", 1, 2)],
			Tokens:  one[int64](t, "tokens", 1, 1, 1, 2, 3, 0, -2), Shadow: odds(t, "shadow", 5),
		}
		op.Parts = append(op.Parts, part)
	}
	return op
}

// drawLease draws what asks for tokens as one of a few sidecars.
func (h *history) drawLease(t *rapid.T) *LeaseShare {
	op := &LeaseShare{
		Pool: h.drawPoolName(t), Tenant: one(t, "tenant", tenantNames...), Tokens: one[int64](t, "tokens", 1, 2, 3, 5, 40),
		Node: Node{ID: one(t, "sidecar", "s1", "s2", "s3"), Owned: number(t, "owned", 1, 3), Total: 3}, Nonce: rapid.Uint64().Draw(t, "nonce"),
	}
	op.Category = h.drawCategory(t, op.Pool)
	return op
}

// drawDetach draws the end of a caller: mostly of one that waits.
func (h *history) drawDetach(t *rapid.T) Detach {
	keys := slices.SortedFunc(maps.Keys(h.waits), WaiterKey.compare)
	if len(keys) == 0 || odds(t, "nobody", 8) {
		return Detach{WaiterKey{Index: 1, Position: 1}}
	}
	return Detach{one(t, "waiter", keys...)}
}

func (h *history) drawNextDue(t *rapid.T) *NextDue {
	n := &NextDue{
		Pool: h.drawPoolName(t), MaxItems: one(t, "max_items", 1, 2, 3, 10), WorkerID: one(t, "worker", "", "v"),
		TTL: one(t, "ttl", 0, 0, 0, time.Second, 20*time.Second), RequestID: one(t, "request_id", requestNames...),
		Nonce: rapid.Uint64().Draw(t, "nonce"),
	}
	h.drawScope(t, n)
	h.sent = append(h.sent, n)
	return n
}

// drawScope draws what narrows a poll.
func (h *history) drawScope(t *rapid.T, n *NextDue) {
	if odds(t, "some lanes", 4) {
		n.Lanes = []string{h.drawLaneName(t, n.Pool)}
	}
	if odds(t, "one tenant", 4) {
		n.Tenant = one(t, "tenant", tenantNames...)
	}
	if odds(t, "narrow", 4) {
		n.LaneLimits = map[string]int64{h.drawLaneName(t, n.Pool): number(t, "lane limit", 0, 2)}
	}
	n.Batch = rapid.Bool().Draw(t, "batch")
	if odds(t, "of a node", 2) {
		n.Node = Node{ID: one(t, "node", "n1", "n2"), Owned: number(t, "owned", 1, 3), Total: 3}
	}
}

func (h *history) drawSpec(t *rapid.T, pool string, wall Wall) EntrySpec {
	spec := EntrySpec{
		Tenant: one(t, "tenant", tenantNames...), Key: one(t, "key", keyNames...), Category: h.drawCategory(t, pool),
		Route: one(t, "route", routeNames...), Group: one(t, "group", groupNames...), MaxAttempts: int32(number(t, "max_attempts", 0, 2)),
	}
	if spec.Relative = rapid.Bool().Draw(t, "relative"); spec.Relative {
		spec.DueIn = one(t, "due_in", 0, 400*time.Millisecond, 2*time.Second, 9*time.Second)
	} else {
		second := Wall(time.Second)
		spec.DueAt = wall/second*second + one(t, "due_at", 0, -2*second, second, 5*second)
	}
	if spec.Every = one(t, "every", 0, 0, 0, time.Second, 3*time.Second); spec.Every == 0 {
		spec.Cadence = one(t, "cadence", cadenceNames...)
	}
	return spec
}

func (h *history) drawPause(t *rapid.T) Pause {
	p := Pause{Pool: h.drawPoolName(t), Resume: !odds(t, "pause", 3), Kind: one(t, "kind", TargetTenant, TargetLane, TargetBucket, TargetGroup)}
	switch p.Kind {
	case TargetTenant:
		p.Name = one(t, "tenant", tenantNames...)
	case TargetGroup:
		p.Tenant, p.Name = one(t, "tenant", tenantNames...), one(t, "group", groupNames[2:]...)
	case TargetLane:
		p.Name = h.drawLaneName(t, p.Pool)
	case TargetBucket:
		p.Name = one(t, "bucket", bucketNames...)
	}
	return p
}

// drawToken draws a permit's token: mostly a recent one, now and then a bogus one.
func (h *history) drawToken(t *rapid.T) Token {
	if len(h.tokens) == 0 || odds(t, "bogus token", 12) {
		token := Token{Index: uint64(number(t, "index", 0, 9)), Position: 1, Nonce: 1}
		if len(h.tokens) > 0 && rapid.Bool().Draw(t, "nearly") {
			token = h.tokens[len(h.tokens)-1]
			token.Nonce++
		}
		return token
	}
	back := number(t, "token", 0, min(len(h.tokens)-1, 7))
	return h.tokens[len(h.tokens)-1-int(back)]
}
