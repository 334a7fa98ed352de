package admission_test

import (
	"slices"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// claimed takes one entry at a time and returns their keys.
func (s *scripted) claimed(times int) (keys []string) {
	s.t.Helper()
	for range times {
		call := s.do(0, &admission.NextDue{Pool: "p", MaxItems: 1})[0].(*admission.NextDueResult)
		for _, c := range call.Claims {
			keys = append(keys, c.Key)
		}
	}
	return keys
}

// A third of a unit leaves a remainder. It is a third's and is not carried into
// another weight: after one grant at 3 and one at 1 a is where c is after four
// at 3, and was there first.
func TestARemainderIsNotCarriedIntoAnotherWeight(t *testing.T) {
	weighing := func(a int64) admission.PoolPolicy {
		return admission.PoolPolicy{
			Defaults:  admission.TenantPolicy{Weight: 3},
			Overrides: []admission.TenantPolicy{{ID: "a", Weight: a}},
		}
	}
	s := script(t, weighing(3))
	s.do(0, plan("a", "a1", "a2", "a3", "a4"), plan("c", "c1", "c2", "c3", "c4", "c5"))
	keys := s.claimed(2)
	s.apply(weighing(1))
	keys = append(keys, s.claimed(5)...)
	if order := []string{"a1", "c1", "a2", "c2", "c3", "c4", "a3"}; !slices.Equal(keys, order) {
		t.Errorf("claimed %v, want %v", keys, order)
	}
}

func TestTheFourthReturnUnstartedCountsAsAFailure(t *testing.T) {
	s := script(t, admission.PoolPolicy{Retry: admission.RetryPolicy{MaxAttempts: 1}})
	s.do(0, plan("a", "k"))
	for range 4 {
		call := s.do(time.Second, &admission.NextDue{Pool: "p", MaxItems: 1})[0].(*admission.NextDueResult)
		s.do(0, &admission.Release{
			Token: call.Claims[0].Permit.Token, Outcome: admission.OutcomeNotStarted,
			ActualCost: admission.Absent, RetryAfter: admission.Absent,
		})
	}
	want(t, "dead", s.core.Health(s.at, s.wall, "p")[0].Dead, 1)
}
