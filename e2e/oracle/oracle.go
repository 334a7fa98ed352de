// Package oracle decides from inside whether a cluster kept its word: from the log
// that its members agreed on, and from what clients were told.
//
// The log is applied once more to a model, entry by entry, and each answer that a
// client got must be what the model says at the place where the answer claims to
// have been decided. What judge finds out without the log, by the clients' own
// clocks, is not repeated here.
package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/e2e/judge"
	"github.com/admitd/admit/internal/logline"
)

// Model decides the entries of a log, in order.
type Model interface {
	// Apply returns the result of each operation, and how waits ended that the
	// entry ended, in the order in which they did.
	Apply(e admission.Entry) ([]admission.Result, []admission.WaitEnd)
}

// Core is the core itself as a model: it shows that answers came from the log and
// that deciding again decides the same.
type Core struct{ state *admission.State }

// NewCore returns a core to which nothing was applied.
func NewCore() *Core { return &Core{admission.New()} }

// Apply is Model's.
func (c *Core) Apply(e admission.Entry) ([]admission.Result, []admission.WaitEnd) {
	return c.state.Apply(e), slices.Clone(c.state.Ended())
}

// place is where something was decided.
type place struct {
	index    uint64
	position int
}

// decision is what the model says of one operation.
type decision struct {
	op     admission.Op
	result admission.Result
}

// trial is a log that was decided again.
type trial struct {
	calls     []Call
	decisions map[place]decision
	ends      map[place]admission.WaitEnd
	// waited are the operations that began waits.
	waited  map[admission.WaiterKey]admission.Op
	verdict Verdict
}

// Verdict is what a run comes to.
type Verdict struct {
	Objections []judge.Objection
	// Undecided are the locks of which nobody can say within the time whether their
	// history has an order. The log was checked all the same.
	Undecided int
}

// Check judges a run: the log as one member has it, from its first entry on, and the
// answers to calls.
func Check(log []logline.Line, calls []Call, m Model) Verdict {
	t := &trial{calls: calls, decisions: map[place]decision{}, ends: map[place]admission.WaitEnd{}, waited: map[admission.WaiterKey]admission.Op{}}
	for _, l := range log {
		results, ends := m.Apply(l.Entry)
		for i, r := range results {
			t.decisions[place{l.Entry.Index, i}] = decision{l.Entry.Ops[i], r}
			if a, ok := r.(*admission.AcquireResult); ok && a.Err == nil && a.Decision.Waiter != (admission.WaiterKey{}) {
				t.waited[a.Decision.Waiter] = l.Entry.Ops[i]
			}
		}
		for i, end := range ends {
			t.ends[place{l.Entry.Index, i}] = end
		}
	}
	t.answersAreTheModels()
	t.effectsHappenOnce()
	t.orderIsReal()
	t.locksAreLinearizable()
	return t.verdict
}

func (t *trial) object(rule, format string, args ...any) {
	t.verdict.Objections = append(t.verdict.Objections, judge.Objection{Rule: rule, What: fmt.Sprintf(format, args...)})
}

// effectsHappenOnce: of all calls with one request id one was granted something,
// and a permit is released once.
func (t *trial) effectsHappenOnce() {
	effects := map[string]int{}
	for _, d := range t.decisions {
		if name := effect(d.op, d.result); name != "" {
			effects[name]++
		}
	}
	for _, end := range t.ends {
		if name := effect(t.waited[end.Waiter], end.Result); name != "" {
			effects[name]++
		}
	}
	for name, n := range effects {
		if n > 1 {
			t.object("effects happen once", "%s %d times", name, n)
		}
	}
}

// effect names what an operation may have done once, if it did it.
func effect(op admission.Op, result admission.Result) string {
	switch op := op.(type) {
	case *admission.Acquire:
		r := result.(*admission.AcquireResult)
		if r.Err == nil && r.Decision.Granted() && !r.Decision.Replayed && op.RequestID != "" {
			return "granted request " + strconv.Quote(op.Pool+" "+op.Tenant+" "+op.RequestID)
		}
	case *admission.NextDue:
		r := result.(*admission.NextDueResult)
		if r.Err == nil && len(r.Claims) > 0 && !r.Replayed && op.RequestID != "" {
			return "claimed for request " + strconv.Quote(op.Pool+" "+op.RequestID)
		}
	case *admission.Release:
		if r := result.(*admission.ReleaseResult); r.Result == admission.LeaseReleased {
			return "released " + op.Token.String()
		}
	}
	return ""
}

// orderIsReal: what was answered before another call was sent was decided before
// that. Answers that needed no entry may be a little old.
func (t *trial) orderIsReal() {
	type moment struct {
		call  int
		index uint64
	}
	var decided []moment
	for i, c := range t.calls {
		for _, p := range c.places() {
			if p.logged {
				decided = append(decided, moment{i, p.index})
			}
		}
	}
	bySent := slices.SortedFunc(slices.Values(decided), func(a, b moment) int { return cmp.Compare(t.calls[a.call].Sent, t.calls[b.call].Sent) })
	byGot := slices.SortedFunc(slices.Values(decided), func(a, b moment) int { return cmp.Compare(t.calls[a.call].Got, t.calls[b.call].Got) })
	var last moment // of those answered before the call was sent
	for _, m := range bySent {
		for len(byGot) > 0 && t.calls[byGot[0].call].Got < t.calls[m.call].Sent {
			if byGot[0].index > last.index {
				last = byGot[0]
			}
			byGot = byGot[1:]
		}
		if m.index <= last.index {
			t.object("order is real", "%v was decided at %d, after the answer to %v from %d", t.calls[m.call], m.index, t.calls[last.call], last.index)
		}
	}
}
