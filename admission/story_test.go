package admission

import (
	"testing"
	"time"
)

// story is a state with one pool "p" to which things happen, each in an entry of
// its own. What is kept twice is checked after each.
type story struct {
	*testing.T
	*State
	quick bool // too big to be checked each time
}

// birth is the wall at the beginning of a story.
const birth = Wall(1_700_000_000_000_000_000)

func tell(t *testing.T, p PoolPolicy) *story {
	t.Helper()
	s := &story{T: t, State: New()}
	s.w = birth
	s.put(p)
	return s
}

// put puts a policy of this pool into force.
func (s *story) put(p PoolPolicy) {
	s.Helper()
	p.Name = "p"
	if r := s.do(ApplyPolicy{Policy: Policy{Pools: []PoolPolicy{p}}, ExpectedRevision: AnyRevision})[0].(*PolicyResult); r.Err != nil {
		s.Fatalf("policy: %v", r.Err)
	}
}

// wait lets time pass.
func (s *story) wait(d time.Duration) {
	s.Helper()
	s.entry(Entry{Index: s.index + 1, T: s.t.Add(d), W: s.w.Add(d)})
}

// do applies the operations in one entry, at the moment of the last one.
func (s *story) do(ops ...Op) []Result {
	s.Helper()
	return s.entry(Entry{Index: s.index + 1, T: s.t, W: s.w, Ops: ops})
}

func (s *story) entry(e Entry) []Result {
	s.Helper()
	results := s.Apply(e)
	if !s.quick {
		check(s, s.State)
	}
	return results
}

// ask asks for one permit of cost 1.
func (s *story) ask(tenant string) Decision {
	s.Helper()
	return s.acquire(&Acquire{Pool: "p", Tenant: tenant, Cost: 1})
}

func (s *story) acquire(op *Acquire) Decision {
	s.Helper()
	r := s.do(op)[0].(*AcquireResult)
	if r.Err != nil {
		s.Fatalf("acquire: %v", r.Err)
	}
	return r.Decision
}

// granted asks for a permit that must be granted.
func (s *story) granted(tenant string) Permit {
	s.Helper()
	d := s.ask(tenant)
	if d.Shed != nil {
		s.Fatalf("acquire of %s: shed %s, want a permit", tenant, d.Shed.Reason)
	}
	return d.Permit
}

// shed asks for a permit that must be refused for that reason.
func (s *story) shed(tenant string, want Reason) *Shed {
	s.Helper()
	d := s.ask(tenant)
	if d.Shed == nil || d.Shed.Reason != want {
		s.Fatalf("acquire of %s: %+v, want it shed with %s", tenant, d, want)
	}
	return d.Shed
}

// release gives a permit back, done unless changed.
func (s *story) release(token Token, change ...func(*Release)) *ReleaseResult {
	s.Helper()
	op := &Release{Token: token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent}
	for _, f := range change {
		f(op)
	}
	return s.do(op)[0].(*ReleaseResult)
}

// with sets a release's outcome.
func with(o Outcome) func(*Release) { return func(r *Release) { r.Outcome = o } }

// plan schedules entries, and returns what became of each.
func (s *story) plan(specs ...EntrySpec) []ScheduledEntry {
	s.Helper()
	r := s.do(&Schedule{Pool: "p", Entries: specs})[0].(*ScheduleResult)
	if r.Err != nil {
		s.Fatalf("schedule: %v", r.Err)
	}
	return r.Entries
}

// in is an entry that is due after d.
func in(d time.Duration, tenant, key string) EntrySpec {
	return EntrySpec{Tenant: tenant, Key: key, Relative: true, DueIn: d}
}

// poll claims up to n due entries.
func (s *story) poll(n int, lanes ...string) []Claim {
	s.Helper()
	r := s.do(&NextDue{Pool: "p", MaxItems: n, Lanes: lanes})[0].(*NextDueResult)
	if r.Err != nil {
		s.Fatalf("next due: %v", r.Err)
	}
	return r.Claims
}

// keys are those of the claims.
func keys(claims []Claim) []string {
	keys := []string{}
	for _, c := range claims {
		keys = append(keys, c.Key)
	}
	return keys
}

// want fails unless got is what was wanted.
func want[T comparable](t tester, what string, got, wanted T) {
	t.Helper()
	if got != wanted {
		t.Errorf("%s: %v, want %v", what, got, wanted)
	}
}
