package judge

import (
	"cmp"
	"maps"
	"slices"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// maxGivenBack is how often an entry's attempt is given back as NOT_STARTED.
const maxGivenBack = 3

type entryID struct{ tenant, key string }

// oneAnswerPerRequest: a request that is sent again has the effect of one. An
// Acquire tells the same permit again. A NextDue tells none that it didn't tell
// before, and all that its client still held while it asked.
func (t *trial) oneAnswerPerRequest() {
	const rule = "one answer per request"
	first := map[string]Answer{}
	for _, a := range t.h.Answers {
		f, again := first[a.RequestID]
		if !again {
			first[a.RequestID] = a
			continue
		}
		told, now := tokens(f.Grants), tokens(a.Grants)
		for token := range now {
			if !told[token] {
				t.doubled(rule, "request %s was granted %s and, asked again, %v", a.RequestID, token, slices.Sorted(maps.Keys(told)))
			}
		}
		for token := range told {
			stillHeld := !a.Claims || t.byToken[token].to >= a.Got
			if stillHeld && !now[token] {
				t.lost(rule, "request %s was granted %s, which is missing when asked again", a.RequestID, token)
			}
		}
	}
}

func tokens(gs []Grant) map[string]bool {
	m := make(map[string]bool, len(gs))
	for _, g := range gs {
		m[g.Token] = true
	}
	return m
}

// noGrantIsLost: a permit that was told lives until it is released, at least
// until its time to live, counted from before it was asked for, is over.
func (t *trial) noGrantIsLost() {
	const rule = "no grant is lost"
	for _, p := range t.held {
		switch r := p.release; {
		case r == nil:
			t.object(rule, "permit %s was never released: the history is not finished", p.Token)
		case r.Result == admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST && r.LastSent < p.asked+p.TTL:
			t.lost(rule, "permit %s of %s was lost %v after it was asked for, with a time to live of %v", p.Token, p.Tenant, r.LastSent-p.asked, p.TTL)
		case r.Result == admitv1.LeaseResult_LEASE_RESULT_CANCELLED:
			t.object(rule, "permit %s of %s was cancelled, but nobody unscheduled its entry", p.Token, p.Tenant)
		}
	}
}

// oneReleasePerGrant: a permit is released once. The first release says RELEASED
// (or, if a try before had no answer, ALREADY_RELEASED), every later one
// ALREADY_RELEASED.
func (t *trial) oneReleasePerGrant() {
	const rule = "one release per grant"
	for token, rs := range t.releases {
		if t.byToken[token] == nil {
			t.object(rule, "permit %s was released, but nobody was granted it", token)
		}
		for i, r := range rs {
			switch r.Result {
			case admitv1.LeaseResult_LEASE_RESULT_RELEASED:
				if i > 0 {
					t.doubled(rule, "permit %s was released again: the acknowledged release before was lost", token)
				}
			case admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED:
				if i == 0 && r.Unknown == 0 {
					t.object(rule, "permit %s had been released before its holder did", token)
				}
			default:
				if i > 0 {
					t.lost(rule, "permit %s was released and is now %v", token, r.Result)
				}
			}
		}
	}
}

// capsHold: clients never hold more permits than the caps allow.
func (t *trial) capsHold() {
	t.capHolds("all", t.held, t.limits.PoolActive)
	byTenant := map[string][]*held{}
	for _, p := range t.held {
		byTenant[p.Tenant] = append(byTenant[p.Tenant], p)
	}
	for tenant, ps := range byTenant {
		t.capHolds(tenant, ps, t.limits.TenantActive)
	}
}

func (t *trial) capHolds(who string, ps []*held, allowed int) {
	if allowed == 0 {
		return
	}
	n, at := mostHeld(ps)
	t.verdict.Cap.note(Use{int64(n), int64(allowed)})
	if n > allowed {
		t.object("caps hold", "%s held %d permits at %v, %d are allowed", who, n, at, allowed)
	}
}

// mostHeld is the greatest number of permits that were certainly held at a time.
func mostHeld(ps []*held) (most int, at Moment) {
	type step struct {
		at Moment
		by int
	}
	steps := make([]step, 0, 2*len(ps))
	for _, p := range ps {
		steps = append(steps, step{p.from, +1}, step{p.to, -1})
	}
	// Where one ends as another begins, the end comes first: not certain.
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	n := 0
	for _, s := range steps {
		if n += s.by; n > most {
			most, at = n, s.at
		}
	}
	return most, at
}

// bucketHolds: in any span the permits that were both asked for and granted
// within it are at most capacity + refill × span / period.
func (t *trial) bucketHolds() {
	const rule = "bucket holds"
	if t.limits.Refill == 0 {
		return
	}
	byGot := slices.SortedFunc(slices.Values(t.held), func(a, b *held) int { return cmp.Compare(a.from, b.from) })
	for _, first := range t.held {
		begin := first.asked
		var n int64
		for _, p := range byGot {
			if p.asked < begin {
				continue
			}
			n++
			span := p.from - begin
			allowed := t.limits.Capacity + int64(span)*t.limits.Refill/int64(t.limits.Period)
			t.verdict.Bucket.note(Use{n, allowed})
			if n > allowed {
				t.object(rule, "%d permits within %v from %v, %d are allowed", n, span, begin, allowed)
				return
			}
		}
	}
}

// fencesGrow: no two permits share a fence, and a permit that was asked for after
// another was granted has the greater one.
func (t *trial) fencesGrow() {
	const rule = "fences grow"
	byAsked := slices.SortedFunc(slices.Values(t.held), func(a, b *held) int { return cmp.Compare(a.asked, b.asked) })
	owner := map[int64]string{}
	var highest *held // the highest fence among those granted before p was asked for
	granted := 0
	for _, p := range byAsked {
		for ; granted < len(t.held) && t.held[granted].from < p.asked; granted++ {
			if g := t.held[granted]; highest == nil || g.Fence > highest.Fence {
				highest = g
			}
		}
		if highest != nil && p.Fence <= highest.Fence {
			t.object(rule, "fence %d was granted before fence %d was asked for", highest.Fence, p.Fence)
		}
		if other, taken := owner[p.Fence]; taken {
			t.object(rule, "permits %s and %s share fence %d", other, p.Token, p.Fence)
		}
		owner[p.Fence] = p.Token
	}
}

// claims returns the claims of each entry, in the order of their answers.
func (t *trial) claims() map[entryID][]*held {
	m := map[entryID][]*held{}
	for _, p := range t.held {
		if p.Key != "" {
			id := entryID{p.Tenant, p.Key}
			m[id] = append(m[id], p)
		}
	}
	return m
}

// entriesAreClaimedOneAtATime: no two clients hold claims on one entry.
func (t *trial) entriesAreClaimedOneAtATime() {
	for id, ps := range t.claims() {
		if n, at := mostHeld(ps); n > 1 {
			t.doubled("entries are claimed one at a time", "%s/%s was held %d times at %v", id.tenant, id.key, n, at)
		}
	}
}

// attemptsCount: an attempt that failed is spent and one that was not begun is
// given back, so an acknowledged outcome shows in the next claim.
func (t *trial) attemptsCount() {
	lives := t.lives()
	for id, ps := range t.claims() {
		if lives[id] != 1 {
			continue // a second life of the entry starts over
		}
		attempt, givenBack := int32(1), 0
		for _, p := range ps {
			if p.Attempt != attempt {
				t.object("attempts count", "%s/%s was claimed as attempt %d, expected %d", id.tenant, id.key, p.Attempt, attempt)
			}
			switch {
			case p.release == nil:
			case p.release.Outcome == admitv1.Outcome_OUTCOME_NOT_STARTED && givenBack < maxGivenBack:
				givenBack++
			default:
				attempt++
			}
		}
	}
}

// lives is how often each entry may have been created: once for each time that
// its schedule was answered SCHEDULED and for each try without an answer.
func (t *trial) lives() map[entryID]int {
	m := map[entryID]int{}
	for _, s := range t.h.Schedules {
		m[entryID{s.Tenant, s.Key}] += s.Unknown
		if s.Status == admitv1.ScheduleResult_STATUS_SCHEDULED {
			m[entryID{s.Tenant, s.Key}]++
		}
	}
	return m
}

// everyScheduleIsDoneOnce: an acknowledged schedule is worked off once, and
// nothing is worked off that nobody scheduled. An entry is gone when it is done,
// so a try without an answer may have been worked off before the next try
// created the entry anew; but of what was done after the last answer, there is
// exactly one or, if it was done before that answer came, none.
func (t *trial) everyScheduleIsDoneOnce() {
	const rule = "every schedule is done once"
	lives := t.lives()
	answered := map[entryID]Moment{}
	for _, s := range t.h.Schedules {
		id := entryID{s.Tenant, s.Key}
		answered[id] = s.Got
		switch s.Status {
		case admitv1.ScheduleResult_STATUS_SCHEDULED:
		case admitv1.ScheduleResult_STATUS_UNCHANGED:
			if s.Unknown == 0 {
				t.object(rule, "%s/%s was there before it was scheduled", id.tenant, id.key)
			}
		default:
			t.object(rule, "scheduling %s/%s was answered %v", id.tenant, id.key, s.Status)
		}
	}
	done, late := t.done(answered)
	for id := range answered {
		switch {
		case done[id] == 0:
			t.lost(rule, "%s/%s was scheduled and never done", id.tenant, id.key)
		case done[id] > lives[id], late[id] > 1:
			t.doubled(rule, "%s/%s was done %d times, %d of them after its schedule was answered; it was created at most %d times", id.tenant, id.key, done[id], late[id], lives[id])
		}
	}
	for id := range t.claims() {
		if _, known := answered[id]; !known {
			t.object(rule, "%s/%s was claimed, but nobody scheduled it", id.tenant, id.key)
		}
	}
}

// done counts the claims of each entry that were released as DONE, and those
// whose release was sent after the entry's schedule was answered.
func (t *trial) done(answered map[entryID]Moment) (all, late map[entryID]int) {
	all, late = map[entryID]int{}, map[entryID]int{}
	for id, ps := range t.claims() {
		for _, p := range ps {
			if p.release == nil || p.release.Outcome != admitv1.Outcome_OUTCOME_DONE {
				continue
			}
			all[id]++
			if p.release.Sent >= answered[id] {
				late[id]++
			}
		}
	}
	return all, late
}
