package oracle

import (
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// lockLimit bounds the search for an order of one lock's history.
const lockLimit = 5 * time.Second

// lockStep is a grant under a lock key, or the end of one.
type lockStep struct {
	token    string
	released bool
}

// lockModel is one lock that one permit may hold: the state is its token, or "".
var lockModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		holder, step := state.(string), input.(lockStep)
		if step.released {
			return holder == step.token, ""
		}
		return holder == "", step.token
	},
}

// locksAreLinearizable knows nothing of the log: there is an order of all grants and
// releases of a lock key, each within the span of its call, in which the lock has
// one holder at a time. Refusals may be a little old, and are left out.
func (t *trial) locksAreLinearizable() {
	history := map[string][]porcupine.Operation{}
	lockOf := map[string]string{}
	step := func(lock string, c Call, s lockStep) {
		history[lock] = append(history[lock], porcupine.Operation{Input: s, Call: int64(c.First), Return: int64(c.Got)})
	}
	byGot := slices.SortedFunc(slices.Values(t.calls), func(a, b Call) int { return int(a.Got - b.Got) })
	for _, c := range byGot {
		req, ok := c.Request.(*admitv1.AcquireRequest)
		if !ok || req.GetLockKey() == "" {
			continue
		}
		token := c.Response.(*admitv1.AcquireResponse).GetDecision().GetPermit().GetToken()
		if token != "" && lockOf[token] == "" {
			lockOf[token] = req.GetPool() + " " + req.GetTenant() + " " + req.GetLockKey()
			step(lockOf[token], c, lockStep{token: token})
		}
	}
	released := map[string]bool{}
	for _, c := range byGot {
		req, ok := c.Request.(*admitv1.ReleaseRequest)
		if !ok || lockOf[req.GetToken()] == "" || released[req.GetToken()] {
			continue
		}
		released[req.GetToken()] = true
		step(lockOf[req.GetToken()], c, lockStep{token: req.GetToken(), released: true})
	}
	for _, lock := range slices.Sorted(maps.Keys(history)) {
		switch porcupine.CheckOperationsTimeout(lockModel, history[lock], lockLimit) {
		case porcupine.Illegal:
			t.object("locks are linearizable", "%s has no order: %v", lock, history[lock])
		case porcupine.Unknown:
			t.verdict.Undecided++
		}
	}
}
