package admission

import (
	"fmt"
	"testing"
	"time"
)

// status is what became of the one entry that was scheduled.
func (s *story) status(spec EntrySpec) ScheduledEntry {
	s.Helper()
	return s.plan(spec)[0]
}

// Scheduling an entry again as it was given changes nothing; any other field does.
func TestScheduleAgain(t *testing.T) {
	given := EntrySpec{Tenant: "a", Key: "k", Category: "x", Route: "r", Group: "g", Relative: true, DueIn: time.Minute, MaxAttempts: 2}
	for what, change := range map[string]func(*EntrySpec){
		"category":     func(e *EntrySpec) { e.Category = "y" },
		"route":        func(e *EntrySpec) { e.Route = "" },
		"group":        func(e *EntrySpec) { e.Group = "" },
		"max_attempts": func(e *EntrySpec) { e.MaxAttempts = 0 },
		"due_in":       func(e *EntrySpec) { e.DueIn++ },
		"due_at":       func(e *EntrySpec) { e.Relative, e.DueAt = false, birth.Add(time.Minute) },
	} {
		t.Run(what, func(t *testing.T) {
			s := tell(t, PoolPolicy{Lanes: []LanePolicy{{Name: "l"}}, Categories: map[string]string{"x": "l", "y": "l"}})
			want(t, "at first", s.status(given), ScheduledEntry{Status: Scheduled})
			s.wait(10 * time.Second)
			want(t, "as it was given", s.status(given), ScheduledEntry{Status: ScheduleUnchanged})
			want(t, "due", s.found("a", "k").due, birth.Add(time.Minute))
			changed := given
			change(&changed)
			want(t, "changed", s.status(changed), ScheduledEntry{Status: ScheduleReplaced})
			want(t, "entries", s.entries.Len(), 1)
			want(t, "as it was given before", s.status(given), ScheduledEntry{Status: ScheduleReplaced})
			want(t, "due from then", s.found("a", "k").due, birth.Add(70*time.Second))
		})
	}
}

// found returns a tenant's entry.
func (s *story) found(tenant, key string) *entryRow {
	return s.State.entry(s.pools.byName("p").tenant(tenant), key)
}

// Replacing a claimed entry cancels the claim, whose slot stays taken, and queues
// the new form at once.
func TestReplacingAClaimedEntry(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 2})
	s.plan(in(0, "a", "k"))
	old := s.poll(1)[0].Permit.Token
	want(t, "unchanged while claimed", s.status(in(0, "a", "k")).Status, ScheduleUnchanged)
	changed := in(0, "a", "k")
	changed.Group = "other"
	want(t, "changed while claimed", s.status(changed).Status, ScheduleReplaced)
	next := s.poll(1)
	want(t, "claims of the new form", len(next), 1)
	want(t, "its attempt", next[0].Attempt, 1)
	s.shed("b", PoolCap)
	r := s.do(&Renew{Tokens: []Token{old}})[0].(*RenewResult)
	want(t, "renewing the old claim", r.Renewals[0].Result, LeaseCancelled)
	want(t, "releasing the old claim", s.release(old).Result, LeaseCancelled)
	want(t, "releasing it again", s.release(old).Result, LeaseAlreadyReleased)
	want(t, "the new form is still claimed", s.found("a", "k").state, entryClaimed)
	s.granted("b")
}

// A dead entry stays dead when it is scheduled as it was, and lives anew when
// anything changed.
func TestRevivingADeadEntry(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "k"))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeDead))
	want(t, "as it was", s.status(in(0, "a", "k")).Status, ScheduleUnchanged)
	want(t, "claims", len(s.poll(1)), 0)
	changed := in(0, "a", "k")
	changed.MaxAttempts = 9
	want(t, "changed", s.status(changed).Status, ScheduleReplaced)
	want(t, "dead", s.pools.byName("p").graves.Len(), 0)
	claims := s.poll(1)
	want(t, "claims", len(claims), 1)
	want(t, "attempt", claims[0].Attempt, 1)
}

// A finished entry is gone: its key is free.
func TestSchedulingAFinishedEntry(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "k"))
	s.release(s.poll(1)[0].Permit.Token)
	want(t, "again", s.status(in(0, "a", "k")).Status, Scheduled)
}

// Limits on entries hold dead ones too, count a tenant's and all, and let what is
// there be replaced.
func TestEntriesAreLimited(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{Entries: 3, EntriesPerTenant: 2, Tenants: 2}})
	full := ScheduledEntry{Status: ScheduleShed, Reason: QueueFull}
	s.plan(in(0, "a", "1"), in(time.Hour, "a", "2"))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeDead))
	want(t, "a third of one tenant", s.status(in(0, "a", "3")), full)
	want(t, "a replacement", s.status(in(time.Minute, "a", "2")).Status, ScheduleReplaced)
	want(t, "another tenant's", s.status(in(0, "b", "1")).Status, Scheduled)
	want(t, "a fourth of the pool", s.status(in(0, "b", "2")), full)
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "1"})
	want(t, "a third tenant", s.status(in(0, "c", "1")), ScheduledEntry{Status: ScheduleShed, Reason: Cardinality})
	want(t, "a known tenant", s.status(in(0, "b", "2")).Status, Scheduled)
}

// Each entry of a call is decided on its own.
func TestEntriesOfACallAreDecidedEachOnItsOwn(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{EntriesPerTenant: 1}})
	lost := in(0, "a", "k")
	lost.Category = "none"
	rows := s.plan(lost, in(0, "a", "k"), in(0, "a", "k"), in(0, "a", "l"))
	got := []ScheduleStatus{}
	for _, row := range rows {
		got = append(got, row.Status)
	}
	want(t, "statuses", fmt.Sprint(got), fmt.Sprint([]ScheduleStatus{ScheduleError, Scheduled, ScheduleUnchanged, ScheduleShed}))
	want(t, "error", rows[0].Err.Reason, UnknownCategory)
	r := s.do(&Schedule{Pool: "none", Entries: []EntrySpec{lost}}, Unschedule{Pool: "none"}, Unschedule{Pool: "p", Tenant: "x", Key: "k"})
	want(t, "no such pool", r[0].(*ScheduleResult).Err.Reason, PoolNotFound)
	want(t, "no such pool", r[1].(*UnscheduleResult).Err.Reason, PoolNotFound)
	want(t, "no such entry", r[2].(*UnscheduleResult).Err.Reason, EntryNotFound)
}

// Lane and retry are those of the moment an entry was scheduled, whatever the
// policy says later.
func TestLaneAndRetryAreStampedOnEntries(t *testing.T) {
	policy := PoolPolicy{
		Lanes: []LanePolicy{{Name: "a"}, {Name: "b"}}, Categories: map[string]string{"x": "a"},
		Retry: RetryPolicy{MaxAttempts: 2, Base: time.Minute},
	}
	s := tell(t, policy)
	spec := in(0, "t", "k")
	spec.Category = "x"
	s.plan(spec)
	policy.Categories, policy.Retry = map[string]string{"x": "b"}, RetryPolicy{MaxAttempts: 9, Base: time.Second}
	s.put(policy)
	claim := s.poll(1, "a")[0]
	want(t, "lane", claim.Permit.Lane, "a")
	s.release(claim.Permit.Token, with(OutcomeFailed))
	s.wait(30*time.Second - 1)
	want(t, "claims before half the delay", len(s.poll(1)), 0)
	s.wait(30*time.Second + 1)
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	want(t, "state after two attempts", s.found("t", "k").state, entryDead)
}

// Of a thousand entries those that fit are taken, and each of the others is told.
func TestScheduleUpToTheLimit(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{Entries: 300, EntriesPerTenant: 200}})
	var specs []EntrySpec
	for i := range 1000 {
		specs = append(specs, in(0, fmt.Sprint("t", i%3), fmt.Sprint(i)))
	}
	taken := 0
	for i, row := range s.plan(specs...) {
		switch {
		case row == ScheduledEntry{Status: Scheduled} && i < 300:
			taken++
		case row != ScheduledEntry{Status: ScheduleShed, Reason: QueueFull}:
			t.Errorf("entry %d: %+v", i, row)
		}
	}
	want(t, "taken", taken, 300)
}
