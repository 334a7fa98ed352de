package admission

import (
	"testing"
	"time"
)

// A job that is done is told until it is remembered no longer, to the instant, whether or
// not an entry comes just then.
func TestAJobIsDoneForItsRetention(t *testing.T) {
	s := tell(t, PoolPolicy{DoneRetention: time.Minute})
	ask := &Acquire{Pool: "p", Tenant: "a", Cost: 1, DedupeKey: "job"}
	s.release(s.acquire(ask).Permit.Token)
	for _, test := range []struct {
		after time.Duration
		shed  bool
	}{{time.Minute - 1, true}, {time.Minute, false}} {
		shed := s.Decide(s.t.Add(test.after), ask).Decision.Shed
		want(t, "shed after "+test.after.String(), shed != nil && shed.Reason == Duplicate, test.shed)
	}
	s.wait(time.Minute)
	want(t, "shed by the entry", s.acquire(ask).Shed != nil, false)
}
