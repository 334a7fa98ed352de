package admission_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/admitd/admit/admission"
)

var (
	tenantNames = []string{"a", "b", "c", "d", "e"}
	laneNames   = []string{"hi", "mid", "lo"}
	categories  = []string{"otp", "", "news", "otp", "bulk", "", "otp", "news", "bulk", "odd"}
	routes      = []string{"", "", "r", "s"}
	bucketNames = []string{"b", "c", "f", "g"}
	requestIDs  = []string{"", "", "", "i", "j", "k"}
)

// generator draws entries. It knows the tokens given out so far, which of them
// are live, and what was asked.
type generator struct {
	rt     *rapid.T
	index  uint64
	at     admission.Instant
	wall   admission.Wall
	nonce  uint64
	tokens []admission.Token
	live   []admission.Token
	lined  []admission.WaiterKey // now
	asked  []admission.Op
	policy admission.Policy
	// graves are the pools with dead entries, left where redrives and purges may go on.
	graves []string
	left   []admission.DeadCursor
	// lingers says whether entries may wait for a whole batch.
	lingers bool
	// revision is the number of policies applied so far.
	revision int64
}

func newAgreement(rt *rapid.T, seen admission.Tally) *agreement {
	a := &agreement{
		t: rt, core: admission.New(), n: &naive{}, seen: seen,
		generator: generator{rt: rt, wall: 1_000_000 * admission.Wall(time.Second)},
	}
	a.index = 1
	a.generator.policy = a.drawPolicy()
	a.step(admission.Entry{Index: a.index, T: a.at, W: a.wall, Ops: []admission.Op{
		admission.ApplyPolicy{Policy: a.generator.policy, ExpectedRevision: admission.AnyRevision},
	}}, 0)
	return a
}

// chance is true in one of n draws.
func (g *generator) chance(n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(g.rt, label) == n-1
}

func pick[V any](g *generator, label string, from ...V) V {
	return rapid.SampledFrom(from).Draw(g.rt, label)
}

func (g *generator) span() time.Duration {
	unit := pick(g, "unit", 0, time.Millisecond, 100*time.Millisecond, 0, 1, time.Second, 10*time.Second)
	return unit * time.Duration(rapid.IntRange(1, 12).Draw(g.rt, "units"))
}

// entry draws the next entry.
func (g *generator) entry() admission.Entry {
	g.index += uint64(pick(g, "skip", 1, 1, 1, 2))
	d := g.span()
	if g.chance(30, "long") {
		d = pick(g, "long span", 5*time.Minute, 10*time.Minute, 11*time.Minute, time.Hour)
	}
	g.at, g.wall = g.at.Add(d), g.wall.Add(d)
	if g.chance(20, "wall steps") {
		step := g.span()
		if !g.lingers && g.chance(2, "back") { // the rules leave open whose wait for a batch had ended
			step = -step
		}
		g.wall = g.wall.Add(step)
	}
	e := admission.Entry{Index: g.index, T: g.at, W: g.wall}
	if g.chance(30, "late") {
		e.T -= admission.Instant(g.span())
	}
	e.Ops = list(g, "ops", 0, pick(g, "most ops", 2, 1, 3, 8), g.op)
	return e
}

// list draws some values with f.
func list[V any](g *generator, label string, least, most int, f func() V) []V {
	outer := g.rt
	defer func() { g.rt = outer }()
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) V {
		g.rt = rt
		return f()
	}), least, most).Draw(outer, label)
}

// note remembers what an entry gave out.
func (g *generator) note(e admission.Entry, results []admission.Result, n *naive) {
	g.asked = append(g.asked, e.Ops...)
	g.live, g.lined, g.lingers = nil, nil, n.mayLinger()
	for _, p := range n.permits {
		g.live = append(g.live, p.token)
	}
	for _, w := range n.waiters {
		g.lined = append(g.lined, w.key)
	}
	for i, res := range results {
		switch r := res.(type) {
		case *admission.AcquireResult:
			if r.Err == nil && r.Decision.Granted() {
				g.tokens = append(g.tokens, r.Decision.Permit.Token)
			}
		case *admission.LeaseShareResult:
			if r.Err == nil && r.Shed == nil {
				g.tokens = append(g.tokens, r.Permit.Token)
			}
		case *admission.NextDueResult:
			for _, c := range r.Claims {
				g.tokens = append(g.tokens, c.Permit.Token)
			}
		case *admission.DeadResult:
			if r.Next != (admission.DeadCursor{}) {
				g.left = append(g.left, r.Next)
			}
		case *admission.PolicyResult:
			if r.Changed {
				g.policy, g.revision = e.Ops[i].(admission.ApplyPolicy).Policy, r.Revision
			}
		case nil:
			if op, ok := e.Ops[i].(admission.TermStart); ok {
				g.at = g.at.Add(op.Gap)
			}
		}
	}
}

func (g *generator) op() admission.Op {
	g.nonce++
	switch pick(g, "op",
		"next", "acquire", "release", "schedule", "next", "acquire", "release", "schedule", "again",
		"next", "acquire", "release", "schedule", "renew", "unschedule", "control", "put", "dead",
		"acquire", "acquire", "acquire", "detach", "report", "report", "report", "take", "take", "share", "share") {
	case "again":
		return g.again()
	case "acquire":
		return g.acquire()
	case "next":
		return g.nextDue()
	case "schedule":
		return g.schedule()
	case "release":
		return g.release()
	case "take":
		return g.take()
	case "share":
		return g.share()
	case "renew":
		return &admission.Renew{TTL: g.ttl(), Tokens: list(g, "tokens", 1, 2, g.token)}
	case "dead":
		if len(g.graves) == 0 && !g.chance(6, "no dead") {
			return g.release()
		}
		if g.chance(3, "purge") {
			return g.purge()
		}
		return g.redrive()
	case "put":
		return g.putTenants()
	case "report":
		return &admission.ReportDemand{
			Pool: g.pool(), Tenant: g.tenant(), Category: pick(g, "category", categories...),
			Backlog: pick[int64](g, "backlog", 1, 2, 5, 0), TTL: pick(g, "report ttl", 20*time.Second, 0, time.Second),
		}
	case "detach":
		return admission.Detach{Waiter: g.waiter()}
	case "unschedule":
		return admission.Unschedule{Pool: g.pool(), Tenant: g.tenant(), Key: g.key()}
	default:
		return g.control()
	}
}

// again repeats an operation, as a client does that lost the answer.
func (g *generator) again() admission.Op {
	back := rapid.IntRange(0, 5).Draw(g.rt, "back")
	if back >= len(g.asked) {
		return g.acquire()
	}
	switch op := g.asked[len(g.asked)-1-back].(type) {
	case *admission.Acquire:
		twin := *op
		twin.Nonce = g.nonce
		if twin.MaxWait > 0 && g.chance(3, "other wait") {
			twin.MaxWait = g.maxWait()
		}
		return &twin
	case *admission.NextDue:
		twin := *op
		twin.Nonce = g.nonce
		return &twin
	case admission.TermStart:
		return g.nextDue()
	default:
		return op
	}
}

func (g *generator) pool() string {
	switch {
	case g.chance(3, "not p") && len(g.policy.Pools) > 1:
		return "q"
	case g.chance(40, "no pool"):
		return "none"
	}
	return "p"
}

func (g *generator) tenant() string { return pick(g, "tenant", tenantNames...) }
func (g *generator) key() string    { return pick(g, "key", "k", "l", "m", "n", "o", "q", "r", "s") }

func (g *generator) ttl() time.Duration {
	return pick(g, "ttl", 0, time.Hour, 20*time.Second, time.Hour, 3*time.Second, time.Second)
}

func (g *generator) token() admission.Token {
	from, old := g.live, g.chance(3, "old token")
	if old || len(from) == 0 {
		from = g.tokens
	}
	if g.chance(20, "bad token") || len(from) == 0 {
		return admission.Token{Index: g.index, Position: 1, Nonce: 7}
	}
	back := rapid.IntRange(0, min(len(from)-1, 20)).Draw(g.rt, "token")
	return from[len(from)-1-back]
}

func (g *generator) acquire() *admission.Acquire {
	op := &admission.Acquire{
		Pool: g.pool(), Tenant: g.tenant(), Category: pick(g, "category", categories...),
		Cost: pick[int64](g, "cost", 1, 1, 1, 2, 1, 3, 1, 5, 40), TTL: g.ttl(), Nonce: g.nonce,
		RequestID: pick(g, "request", requestIDs...),
	}
	if g.chance(2, "waits") {
		op.MaxWait = g.maxWait()
	}
	if g.chance(6, "rate only") {
		op.RateOnly, op.Settle = true, !g.chance(3, "spends")
	}
	if g.chance(3, "locks") { // few keys of few tenants, so that they meet
		op.Tenant, op.LockKey = pick(g, "who locks", "a", "a", "a", "b"), pick(g, "lock", "x", "x", "x", "y")
	}
	if g.chance(4, "has a job") {
		op.Tenant, op.DedupeKey = pick(g, "whose job", "a", "a", "b"), pick(g, "job", "u", "u", "v")
	}
	if g.chance(6, "has more") {
		op.Backlog = pick[int64](g, "backlog", 1, 2, 5)
	}
	if g.chance(8, "says when") {
		op.IssuedAt = g.wall.Add(pick(g, "issued", 0, -time.Second, -10*time.Minute, -time.Hour, time.Minute))
	}
	return op
}

func (g *generator) take() *admission.Take {
	return &admission.Take{Pool: g.pool(), Parts: list(g, "parts", 1, 3, func() admission.TakePart {
		return admission.TakePart{
			Tenant: pick(g, "tenant", append([]string{""}, tenantNames...)...), Category: pick(g, "category", categories...),
			Buckets: list(g, "buckets", 1, 2, func() string { return pick(g, "bucket", bucketNames...) }),
			Tokens:  pick[int64](g, "tokens", 1, 1, 1, 2, 3, 0, -1, -3, 40), Shadow: g.chance(5, "shadow"),
		}
	})}
}

// share asks for tokens as one of a few sidecars.
func (g *generator) share() *admission.LeaseShare {
	total := pick[int64](g, "total", 1, 1, 2, 3)
	return &admission.LeaseShare{
		Pool: g.pool(), Tenant: g.tenant(), Category: pick(g, "category", categories...), Tokens: pick[int64](g, "tokens", 1, 2, 3, 5, 40),
		Node:  admission.Node{ID: pick(g, "sidecar", "n", "m", "o"), Owned: pick(g, "owned", 1, 1, total), Total: total},
		Nonce: g.nonce,
	}
}

func (g *generator) maxWait() time.Duration {
	return pick(g, "max wait", 10*time.Second, 60*time.Second, time.Second, 3*time.Second)
}

// waiter is mostly one that waits.
func (g *generator) waiter() admission.WaiterKey {
	if len(g.lined) == 0 || g.chance(10, "no waiter") {
		return admission.WaiterKey{Index: g.index - 1}
	}
	return pick(g, "waiter", g.lined...)
}

func (g *generator) nextDue() *admission.NextDue {
	op := &admission.NextDue{
		Pool: g.pool(), MaxItems: pick(g, "items", 1, 3, 2, 10, 5, 10), TTL: g.ttl(), Nonce: g.nonce,
		RequestID: pick(g, "request", requestIDs...), WorkerID: pick(g, "worker", "", "w"),
		Batch: g.chance(2, "batch"),
	}
	if g.chance(4, "some lanes") {
		op.Lanes = append(op.Lanes, pick(g, "lane", laneNames...))
	}
	if g.chance(6, "one tenant") {
		op.Tenant = g.tenant()
	}
	if g.chance(5, "narrows") {
		op.LaneLimits = map[string]int64{pick(g, "narrow lane", laneNames...): pick[int64](g, "narrow limit", 1, 0, 2)}
	}
	if g.chance(2, "of a node") {
		total := pick[int64](g, "total", 4, 1, 2, 3)
		op.Node = admission.Node{ID: pick(g, "node", "n", "n", "m"), Owned: pick(g, "owned", 1, 1, total), Total: total}
	}
	return op
}

func (g *generator) schedule() *admission.Schedule {
	op := &admission.Schedule{Pool: g.pool(), Entries: list(g, "entries", 1, 6, g.spec)}
	if g.chance(2, "of one tenant") {
		for i := range op.Entries {
			op.Entries[i].Tenant, op.Entries[i].Category = op.Entries[0].Tenant, op.Entries[0].Category
		}
	}
	return op
}

func (g *generator) spec() admission.EntrySpec {
	spec := admission.EntrySpec{
		Tenant: g.tenant(), Key: g.key(), Category: pick(g, "category", categories...),
		Route: pick(g, "route", routes...), Group: pick(g, "group", "", "", "g", "h"),
		MaxAttempts: pick[int32](g, "attempts", 0, 0, 1, 2),
	}
	if g.chance(2, "relative") {
		spec.Relative, spec.DueIn = true, pick(g, "due in", 0, 0, time.Second, 10*time.Second)
	} else {
		spec.DueAt = g.wall.Add(pick(g, "due at", 0, -time.Second, -time.Minute, time.Second, 30*time.Second))
	}
	switch pick(g, "recurs", "", "", "every", "cadence") {
	case "every":
		spec.Every = pick(g, "every", time.Second, 3*time.Second, time.Minute)
	case "cadence":
		spec.Cadence = pick(g, "cadence", "c", "c", "c", "d")
	}
	return spec
}

func (g *generator) release() *admission.Release {
	op := &admission.Release{
		Token: g.token(), RetryAfter: admission.Absent, ActualCost: admission.Absent,
		Outcome: pick(g, "outcome", admission.OutcomeDone, admission.OutcomeFailed, admission.OutcomeThrottled,
			admission.OutcomeNotStarted, admission.OutcomeFailed, admission.OutcomeThrottled, admission.OutcomeDead),
	}
	op.Miss = g.chance(3, "miss")
	if g.chance(4, "settle") {
		op.ActualCost = pick[int64](g, "actual", 0, 1, 2, 5, 50)
	}
	if op.Outcome == admission.OutcomeThrottled {
		op.RetryAfter = pick(g, "retry after", admission.Absent, 5*time.Second, admission.Absent, time.Hour, 0)
		op.Bucket = pick(g, "bucket", "b", "", "f", "c", "g")
	}
	return op
}

func (g *generator) control() admission.Op {
	switch pick(g, "control", "pause", "pause", "pause", "policy", "policy", "term") {
	case "pause":
		op := admission.Pause{Pool: g.pool(), Kind: pick(g, "kind", admission.TargetTenant,
			admission.TargetGroup, admission.TargetLane, admission.TargetBucket, admission.TargetGroup), Resume: !g.chance(2, "hold")}
		switch op.Kind {
		case admission.TargetGroup:
			op.Tenant, op.Name = g.tenant(), pick(g, "group", "g", "h")
		case admission.TargetTenant:
			op.Name = g.tenant()
		case admission.TargetLane:
			op.Name = pick(g, "lane", laneNames...)
		default:
			op.Name = pick(g, "bucket", bucketNames...)
		}
		return op
	case "policy":
		op := admission.ApplyPolicy{Policy: g.policy, ExpectedRevision: admission.AnyRevision}
		if !g.chance(5, "the same") {
			op.Policy = g.drawPolicy()
		}
		op.Drain = g.chance(2, "drain")
		if g.chance(5, "expects") {
			op.ExpectedRevision = g.revision - int64(pick(g, "behind", 0, 1))
		}
		return op
	default:
		return admission.TermStart{Gap: g.span()}
	}
}
