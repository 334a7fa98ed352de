package admission_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/admitd/admit/admission"
)

// TestAgree applies random entries under random policies to State and to naive:
// every result and every view must be the same.
func TestAgree(t *testing.T) {
	seen := admission.NewTally()
	rapid.Check(t, func(rt *rapid.T) {
		run := newAgreement(rt, seen)
		rt.Repeat(map[string]func(*rapid.T){"entry": func(rt *rapid.T) {
			run.rt = rt
			if run.chance(20, "restore") {
				run.restore()
			}
			run.step(run.entry(), run.span())
		}})
	})
	seen.Report(t)
}

// agreement is one run of both.
type agreement struct {
	t    failer
	core *admission.State
	n    *naive
	seen admission.Tally
	// cursors are those of the core, with what they are to naive.
	cursors map[admission.DeadCursor]admission.DeadCursor
	generator
}

// failer is what a run needs of a test.
type failer interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// step applies an entry to both and compares all that can be told of it, and
// what is foretold of tokens some time ahead.
func (a *agreement) step(e admission.Entry, ahead time.Duration) []admission.Result {
	a.t.Helper()
	a.t.Logf("entry %d at %v, wall %v", e.Index, time.Duration(e.T), time.Duration(e.W))
	for _, op := range e.Ops {
		a.t.Logf("  %s", text(op))
	}
	foretold := a.foretell(e)
	want, got := a.n.apply(a.translated(e)), a.core.Apply(e)
	for i := range e.Ops {
		a.seen.Count(e.Ops[i], got[i])
		a.same(fmt.Sprintf("result of op %d", i), want[i], got[i])
		a.goOn(want[i], got[i])
	}
	a.ended(e)
	foretold(got)
	a.views(e, got, ahead)
	a.state()
	a.note(e, got, a.n)
	a.noteGraves(a.n.pools)
	return got
}

// ended compares the waits that the entry ended.
func (a *agreement) ended(e admission.Entry) {
	a.t.Helper()
	byKey := func(x, y admission.WaitEnd) int {
		return cmp.Or(cmp.Compare(x.Waiter.Index, y.Waiter.Index), cmp.Compare(x.Waiter.Position, y.Waiter.Position))
	}
	want, got := slices.Clone(a.n.ends), slices.Clone(a.core.Ended())
	slices.SortFunc(want, byKey)
	slices.SortFunc(got, byKey)
	for _, end := range got {
		a.seen.Ended(end)
	}
	for i := range min(len(want), len(got)) {
		a.same("a wait that ends", knownThen(e, want[i]), knownThen(e, got[i]))
	}
	a.same("number of waits that end", len(want), len(got))
}

// knownThen is the end of a wait without what the rules leave open where it ends
// before an entry is dispatched: how many slots are kept, and, where nobody
// listened, what held it at all.
func knownThen(e admission.Entry, end admission.WaitEnd) admission.WaitEnd {
	shed := end.Result.Decision.Shed
	if shed == nil {
		return end
	}
	left := slices.ContainsFunc(e.Ops, func(op admission.Op) bool {
		_, term := op.(admission.TermStart)
		return term || op == admission.Op(admission.Detach{Waiter: end.Waiter})
	})
	switch {
	case left:
		end.Result = &admission.AcquireResult{Decision: admission.Decision{Shed: &admission.Shed{}}}
	case shed.Reason <= admission.BatchOnly:
		known := *shed
		known.EarliestExpiry = admission.Absent
		known.Blocking = deleteIf(shed.Blocking, func(l admission.Limit) bool { return l.Name == "preferred_active" })
		end.Result = &admission.AcquireResult{Decision: admission.Decision{Shed: &known}}
	}
	return end
}

// foretell asks the core what the only operation of an entry will get, and
// returns the check that it did. What a permit's expiry frees is not foretold,
// nor what may be forgotten by then, nor whom tokens that come let claim his share.
func (a *agreement) foretell(e admission.Entry) func([]admission.Result) {
	deadline, ok := a.core.Deadline()
	if len(e.Ops) != 1 || ok && deadline <= e.T {
		return func([]admission.Result) {}
	}
	switch op := e.Ops[0].(type) {
	case *admission.Acquire:
		p := a.n.pool(op.Pool)
		later := e.T != a.n.t || e.W != a.n.w // what comes due till then may let lanes yield
		if op.IssuedAt != 0 || p != nil && (p.policy.Shadow || later && (p.yields() || p.reported()) || a.n.yieldsStale(p, e.T, e.W)) {
			break // it knows no wall to come
		}
		now := *op
		now.MaxWait = 0 // what waits is foretold only that it is not granted
		told := a.core.Decide(e.T, &now)
		return func(got []admission.Result) { a.foretold(told, got[0].(*admission.AcquireResult)) }
	case *admission.Take:
		p := a.n.pool(op.Pool)
		later := e.T != a.n.t || e.W != a.n.w
		gives := slices.ContainsFunc(op.Parts, func(p admission.TakePart) bool { return p.Tokens < 0 })
		if gives || p != nil && (later && (p.yields() || p.reported()) || a.n.yieldsStale(p, e.T, e.W)) {
			break
		}
		told, _ := a.core.DecideTake(e.T, op)
		return func(got []admission.Result) {
			if got := got[0].(*admission.TakeResult); !slices.ContainsFunc(append(slices.Clone(told.Held), got.Held...), byMemory) {
				a.same("what was foretold of tokens", told, got)
			}
		}
	case *admission.LeaseShare:
		p := a.n.pool(op.Pool)
		later := e.T != a.n.t || e.W != a.n.w
		if p != nil && (later && (p.yields() || p.reported()) || a.n.yieldsStale(p, e.T, e.W)) {
			break
		}
		told, _ := a.core.DecideLease(e.T, op)
		return func(got []admission.Result) {
			plain := *got[0].(*admission.LeaseShareResult)
			if plain.Permit = (admission.Permit{}); !byMemory(told.Shed) && !byMemory(plain.Shed) {
				a.same("what was foretold of a share", told, &plain)
			}
		}
	case *admission.NextDue:
		wait, ok := a.core.PollDelay(e.T, e.W, op)
		return func(got []admission.Result) {
			if len(got[0].(*admission.NextDueResult).Claims) > 0 {
				a.same("a poll that is served is foretold", []any{time.Duration(0), true}, []any{wait, ok})
			}
		}
	}
	return func([]admission.Result) {}
}

func (a *agreement) foretold(told, got *admission.AcquireResult) {
	a.t.Helper()
	if key := got.Decision.Waiter; key != (admission.WaiterKey{}) {
		granted := slices.ContainsFunc(a.core.Ended(), func(end admission.WaitEnd) bool {
			return end.Waiter == key && end.Result.Decision.Granted()
		})
		foretold := told.Err == nil && told.Decision.Granted()
		a.same("of those that wait only one that is served at once is foretold a grant", false, foretold && !granted)
		return
	}
	if !byMemory(told.Decision.Shed) && !byMemory(got.Decision.Shed) {
		plain := *got
		if told.Err == nil && told.Decision.Shed == nil && !told.Decision.Replayed {
			plain.Decision.WouldShed = nil
			plain.Decision.Permit, plain.Decision.Borrowed = admission.Permit{}, false // of a grant only that it will be one
		}
		a.same("what was foretold", told, &plain)
	}
}

// byMemory says whether a refusal is also for what the pool may remember.
func byMemory(shed *admission.Shed) bool {
	return shed != nil && slices.ContainsFunc(shed.Blocking, func(l admission.Limit) bool {
		return strings.HasPrefix(l.Name, "limits.")
	})
}

// restore goes on with a core that is restored from a snapshot.
func (a *agreement) restore() {
	a.t.Logf("restore")
	image := a.core.Snapshot()
	restored, err := admission.Restore(image.Header(), func(yield func(admission.Row, error) bool) {
		for row := range image.Rows() {
			if !yield(row, nil) {
				return
			}
		}
	})
	if err != nil {
		a.t.Fatalf("restore: %v", err)
	}
	a.core = restored
}

func (a *agreement) same(what string, want, got any) {
	a.t.Helper()
	if d := diff(what, reflect.ValueOf(want), reflect.ValueOf(got)); d != "" {
		a.t.Fatalf("%s", d)
	}
}

// views compares what both show right after an entry.
func (a *agreement) views(e admission.Entry, got []admission.Result, ahead time.Duration) {
	a.t.Helper()
	at, w := a.core.Now()
	a.same("time", []int64{int64(a.n.t), int64(a.n.w)}, []int64{int64(at), int64(w)})
	policy, revision, applied := a.core.Policy()
	a.same("policy", a.n.policy, policy)
	a.same("revision", []int64{a.n.revision, int64(a.n.appliedAt)}, []int64{revision, int64(applied)})
	wantAt, wantOK := a.n.deadline()
	gotAt, gotOK := a.core.Deadline()
	switch {
	case len(a.n.waiters) == 0 && (wantOK != gotOK || wantOK && wantAt != gotAt):
		a.t.Fatalf("deadline: want %v %v, got %v %v", wantAt, wantOK, gotAt, gotOK)
	case wantOK && (!gotOK || gotAt > max(wantAt.Add(time.Millisecond), at)): // the waits are told in whole milliseconds
		a.t.Fatalf("deadline: want %v at the latest, got %v %v", wantAt, gotAt, gotOK)
	}
	wantDue, wantAny := a.n.due()
	gotDue, gotAny := a.core.Due()
	a.same("due", []any{int64(wantDue), wantAny}, []any{int64(gotDue), gotAny})
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *admission.NextDue:
			a.shedding(at, w, op, got[i].(*admission.NextDueResult))
		case *admission.Take:
			a.same("levels", a.n.levels(at.Add(ahead), op), a.core.TakeLevels(at.Add(ahead), op))
		}
	}
	for _, p := range a.n.pools {
		a.pool(at, w, p)
	}
	a.ahead(at.Add(ahead), w)
}

// shedding compares what a NextDue is told beside its claims.
func (a *agreement) shedding(at admission.Instant, w admission.Wall, op *admission.NextDue, res *admission.NextDueResult) {
	a.t.Helper()
	if a.n.pool(op.Pool) == nil {
		return
	}
	i := slices.IndexFunc(a.n.calls, func(c *naiveCall) bool { return c.op == op })
	want := a.n.shedding(at, w, op.Pool, "", a.n.calls[i])
	got := a.core.Shedding(at, w, admission.SheddingQuery{Pool: op.Pool, HeldRows: 1000, Call: res})
	slices.SortFunc(got.Held, byTenant)
	a.seen.Held(got.Held)
	a.same("shedding of "+text(op), want, got)
}

// pool compares what both show of a pool at a moment.
func (a *agreement) pool(at admission.Instant, w admission.Wall, p *naivePool) {
	a.t.Helper()
	name := p.policy.Name
	health := a.n.health(at, w, p)
	a.same("health of "+name, []admission.PoolHealth{health}, a.core.Health(at, w, name))
	a.seen["views with skipped boundaries"] += int(min(health.Skipped, 1))
	a.same("limits of "+name, a.n.limitUse(p, at), a.core.Limits(at, name))
	a.same("next due in "+name, a.n.nextDueIn(name, w), a.core.NextDueIn(name, w))
	a.lists(w, p)
	for _, tenant := range tenantNames {
		got := a.core.Shedding(at, w, admission.SheddingQuery{Pool: name, Tenant: tenant, HeldRows: 1})
		slices.SortFunc(got.Held, byTenant)
		want := a.n.shedding(at, w, name, tenant, nil)
		a.same("shedding for "+tenant, want, got)
		if !a.core.Wants(name, tenant) { // all such tenants are shown one and the same
			a.same("what is held of "+tenant, 0, len(want.Held))
		}
	}
}

// ahead compares the tokens that both say there will be.
func (a *agreement) ahead(at admission.Instant, w admission.Wall) {
	a.t.Helper()
	for _, p := range a.n.pools {
		name := p.policy.Name
		a.same("buckets of "+name, a.n.health(at, w, p).Buckets, a.core.Health(at, w, name)[0].Buckets)
		for _, tenant := range tenantNames {
			a.same("tenant "+tenant, a.n.tenantHealth(at, p, tenant), a.core.Tenant(at, name, tenant))
			want, wantErr := a.n.tenantStatus(at, p, tenant)
			got, gotErr := a.core.TenantStatus(at, name, tenant)
			if p.draining { // nothing new comes: which lane that would go to is open
				want.Share.Lane = got.Share.Lane
			}
			a.same("status of "+tenant, []any{want, wantErr}, []any{got, gotErr})
		}
	}
}
