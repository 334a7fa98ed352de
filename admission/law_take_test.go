package admission

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkTake checks that the answer to a Take makes sense by itself.
func (h *history) checkTake(op *Take, r *TakeResult) {
	if r.Err != nil {
		want(h, "an error stands alone", len(r.Held) == 0 && !r.Refused, true)
		return
	}
	want(h, "each part has an answer", len(r.Held), len(op.Parts))
	refused := false
	for i, held := range r.Held {
		if held == nil {
			continue
		}
		h.checkShed(held)
		want(h, "what gives back is not held", op.Parts[i].Tokens >= 0, true)
		refused = refused || !op.Parts[i].Shadow && !h.poolPolicy(op.Pool).Shadow
	}
	want(h, "it is refused for a part that does not only watch", r.Refused, refused)
}

// changes says whether a Take may have changed something.
func changes(op *Take, r *TakeResult) bool {
	for i, part := range op.Parts {
		if r.Err == nil && part.Tokens > 0 && !r.Refused && r.Held[i] == nil || part.Tokens < 0 {
			return true
		}
	}
	return false
}

// taken books what a Take took, or before that what it gave back.
func (r *rates) taken(h *history, op *Take, res *TakeResult, charges bool) {
	p := h.poolPolicy(op.Pool)
	if p == nil {
		return
	}
	for i, part := range op.Parts {
		for _, b := range p.Buckets {
			tokens := part.Tokens
			if b.PerPermit {
				tokens = max(min(tokens, 1), -1)
			}
			switch {
			case !slices.Contains(part.Buckets, b.Name) || b.Scope == ScopeTenant && part.Tenant == "":
			case !charges && tokens < 0:
				own := r.bucket(h, op.Pool, b, part.Tenant)
				own.events = append(own.events, bucketEvent{h.t, tokens})
				own.spend(h.t, tokens)
			case charges && tokens > 0 && res.Err == nil && !res.Refused && res.Held[i] == nil:
				r.bucket(h, op.Pool, b, part.Tenant).add(h, b.Name, tokens)
			}
		}
	}
}

// A Take that is decided without an entry says what an entry with it alone would, and
// what stands changes nothing. A told retry_after comes true for all parts together, and
// a millisecond earlier would have been too early [I12].
func TestTakesAreForetold(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawTake(t)
		h.apply(h.later(0)) // nothing is left for the entry to free
		p := h.pools.byName(op.Pool)
		if p != nil && p.yieldStale(h.w) {
			return
		}
		decided, stands := h.DecideTake(h.t, op)
		told, results := h.whatIf(t, 0, op)
		applied := results[0].(*TakeResult)
		if op.givesBack() {
			want(t, "what gives back is logged", stands && decided.Err == nil, false)
			return
		}
		if !reflect.DeepEqual(decided, applied) {
			t.Fatalf("%+v\ndecided: %+v\napplied: %+v", op, decided, applied)
		}
		if stands {
			want(t, "what stands changes nothing", changes(op, applied), false)
		}
		after := time.Duration(Absent)
		for _, held := range applied.Held {
			if held != nil {
				if held.RetryAfter == Absent {
					return
				}
				after = max(after, held.RetryAfter)
			}
		}
		if !applied.Refused || !p.quiet() || p.shadow || op.someWatch() {
			return
		}
		next := *h
		next.State = told
		_, results = next.whatIf(t, after, op)
		if results[0].(*TakeResult).Refused {
			t.Fatalf("%+v was told to retry after %s and then refused: %+v", op, after, results[0])
		}
		_, results = next.whatIf(t, after-time.Millisecond, op)
		if !results[0].(*TakeResult).Refused {
			t.Fatalf("%+v was told to retry after %s and could have a millisecond before", op, after)
		}
	})
}

func (op *Take) someWatch() bool {
	for i := range op.Parts {
		if op.Parts[i].Shadow {
			return true
		}
	}
	return false
}

func (op *Take) givesBack() bool {
	for i := range op.Parts {
		if op.Parts[i].Tokens < 0 {
			return true
		}
	}
	return false
}

func site(p PoolPolicy, change ...func(*PoolPolicy)) PoolPolicy {
	p.Buckets = []BucketPolicy{
		{Name: "all", Scope: ScopePool, Capacity: 3, Refill: 1, Period: time.Second},
		{Name: "each", Scope: ScopeTenant, Capacity: 2, Refill: 1, Period: time.Second},
		{Name: "shut", Scope: ScopePool, Blocked: true},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func (s *story) taken(parts ...TakePart) *TakeResult {
	s.Helper()
	return s.do(&Take{Pool: "p", Parts: parts})[0].(*TakeResult)
}

func (s *story) left(tenant, bucket string) int64 {
	s.Helper()
	levels := s.TakeLevels(s.t, &Take{Pool: "p", Parts: []TakePart{{Tenant: tenant, Buckets: []string{bucket}}}})
	return levels[0][0].Left
}

func part(tenant string, tokens int64, buckets ...string) TakePart {
	return TakePart{Tenant: tenant, Tokens: tokens, Buckets: buckets}
}

// All parts take, or none does; the same bucket gives their sum.
func TestATakeIsAllOrNothing(t *testing.T) {
	s := tell(t, site(PoolPolicy{}))
	if r := s.taken(part("", 1, "all"), part("a", 2, "each")); r.Refused {
		t.Fatalf("refused: %+v", r)
	}
	r := s.taken(part("", 1, "all"), part("a", 1, "each"))
	want(t, "refused", r.Refused, true)
	want(t, "the part that fits is not held", r.Held[0] == nil, true)
	want(t, "the other waits for a token", r.Held[1].RetryAfter, time.Second)
	want(t, "nothing was taken", s.left("", "all"), 2)
	r = s.taken(part("", 1, "all"), part("", 1, "all"), part("b", 1, "all"))
	want(t, "the third asks for the sum", r.Refused && r.Held[1] == nil && r.Held[2].Blocking[0].Asked == 3, true)
	want(t, "it is too much for the moment alone", r.Held[2].Reason, PoolRate)
	want(t, "two are there", s.taken(part("", 1, "all"), part("", 1, "all")).Refused, false)
	r = s.taken(part("", 2, "all"), part("", 2, "all"))
	want(t, "a sum that no bucket holds", r.Held[1].Reason, NeverGrantable)
}

// What is asked for 0 tokens only asks, and what is given back fills to the brim.
func TestATakeOfNothingOnlyAsks(t *testing.T) {
	s := tell(t, site(PoolPolicy{}))
	s.taken(part("a", 2, "each"))
	want(t, "there is none to ask for", s.taken(part("a", 0, "each")).Refused, true)
	want(t, "b has some", s.taken(part("b", 0, "each")).Refused, false)
	want(t, "asking makes nobody known", s.pools.byName("p").tenants.len(), 1)
	s.taken(part("a", -50, "each"))
	want(t, "full again", s.left("a", "each"), 2)
	s.taken(part("", -1, "all"), part("a", 5, "each"))
	want(t, "what comes back comes back beside a refusal", s.left("", "all"), 3)
}

// A part that only watches refuses nobody, takes nothing that is not there, and is
// decided after those that hold.
func TestAPartThatWatchesStandsInNobodysWay(t *testing.T) {
	s := tell(t, site(PoolPolicy{}))
	watch := part("a", 2, "all")
	watch.Shadow = true
	r := s.taken(watch, part("b", 2, "all"))
	want(t, "not refused", r.Refused, false)
	want(t, "the watcher would be", r.Held[0] != nil && r.Held[1] == nil, true)
	want(t, "one is left", s.left("", "all"), 1)
	shut := part("a", 1, "shut")
	shut.Shadow = true
	r = s.taken(shut)
	want(t, "blocked in vain", !r.Refused && r.Held[0].Reason == Blocked, true)
}

// Who waits in line for tokens of the pool goes first; a pause, a yield and what a lane
// leaves hold a part as they hold an Acquire.
func TestATakeKeepsTheLaws(t *testing.T) {
	s := tell(t, site(PoolPolicy{
		Lanes:      []LanePolicy{{Name: "high"}, {Name: "low", LeaveTokens: map[string]int64{"all": 1}}},
		Categories: map[string]string{"urgent": "high"},
	}, func(p *PoolPolicy) { p.Buckets = p.Buckets[:2] }))
	s.taken(part("", 2, "all"))
	r := s.taken(part("", 1, "all"))
	want(t, "a token is left for the lane above", r.Refused && r.Held[0].Reason == PoolRate, true)
	urgent := part("", 1, "all")
	urgent.Category = "urgent"
	want(t, "which takes it", s.taken(urgent).Refused, false)
	s.do(&Acquire{Pool: "p", Tenant: "w", Category: "urgent", Cost: 2, MaxWait: time.Minute})
	s.wait(time.Second)
	r = s.taken(urgent)
	want(t, "who waits has it reserved", r.Refused && r.Held[0].RetryAfter == Absent, true)
	s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a"})
	want(t, "a paused tenant", s.taken(part("a", 1, "each")).Held[0].Reason, Paused)
}

// Who brings more new tenants at once than come in within a second is told of no time: it
// would never come.
func TestTooManyNewTenantsAtOnceAreToldNoTime(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopeTenant, 9), Limits: LimitsPolicy{NewTenantsPerSecond: 2}})
	r := s.taken(part("a", 1, "rate"), part("b", 1, "rate"), part("c", 1, "rate"))
	if h := r.Held[2]; h == nil || h.Reason != Cardinality || h.RetryAfter != Absent {
		t.Errorf("the third: %+v, want CARDINALITY without a time", h)
	}
}
