// Package judge decides from outside whether admit kept its word.
//
// Its only evidence is what clients wrote down themselves: when they sent a
// request, when they were answered, and what the answer was. It knows nothing of
// logs, snapshots or states, so no fault in those can talk it into agreeing.
//
// Every rule is one function of rules.go. A rule may only object to what no
// correct system could have done: where an answer was lost the call may have had
// effect at any moment since it was first sent, and the rules allow for that.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits are the limits that the policy set, 0 for none.
type Limits struct {
	// PoolActive and TenantActive are the most live permits.
	PoolActive, TenantActive int
	// Capacity and Refill, in tokens for each Period, are those of a pool's
	// bucket that every permit charges with 1.
	Capacity, Refill int64
	Period           time.Duration
}

// Objection is something that a correct system can't have done.
type Objection struct {
	// Rule names the rule that was broken.
	Rule string
	// What says what was seen.
	What string
}

// String is the objection in one line.
func (o Objection) String() string { return o.Rule + ": " + o.What }

// Verdict is what a history comes to.
type Verdict struct {
	Objections []Objection
	// Cap is the cap, and Bucket the span of time, that came nearest to its limit.
	Cap, Bucket Use
	// Lost are grants, releases and schedules that were acknowledged and forgotten;
	// Doubled are effects that happened again. Each is an objection too.
	Lost, Doubled int
}

// String is the verdict in one line.
func (v Verdict) String() string {
	return fmt.Sprintf("admitted/allowed %v in a bucket and %v under a cap; %d lost, %d doubled", v.Bucket, v.Cap, v.Lost, v.Doubled)
}

// Use is how many were admitted where so many were allowed, 0 where nothing was
// limited.
type Use struct{ Admitted, Allowed int64 }

// String is the use as a fraction.
func (u Use) String() string { return fmt.Sprintf("%d/%d", u.Admitted, u.Allowed) }

// note takes another use of the same kind of limit, and keeps the worse.
func (u *Use) note(other Use) {
	if u.Allowed == 0 || other.Admitted*u.Allowed > u.Admitted*other.Allowed {
		*u = other
	}
}

// Judge judges a finished history: one in which every permit was released and every
// schedule worked off.
func Judge(h History, l Limits) Verdict {
	t := newTrial(h, l)
	for _, rule := range []func(){
		t.oneAnswerPerRequest,
		t.noGrantIsLost,
		t.oneReleasePerGrant,
		t.capsHold,
		t.bucketHolds,
		t.fencesGrow,
		t.entriesAreClaimedOneAtATime,
		t.attemptsCount,
		t.everyScheduleIsDoneOnce,
	} {
		rule()
	}
	return t.verdict
}

// held is a grant with the span in which its client certainly held it: from its
// answer to the first try of its release.
type held struct {
	Grant
	asked, from, to Moment
	release         *Release
}

// trial is a history, looked up by what the rules need.
type trial struct {
	h        History
	limits   Limits
	held     []*held // one for each token, by the first answer that told it
	byToken  map[string]*held
	releases map[string][]*Release
	verdict  Verdict
}

func newTrial(h History, l Limits) *trial {
	t := &trial{h: h, limits: l, byToken: map[string]*held{}, releases: map[string][]*Release{}}
	slices.SortStableFunc(t.h.Answers, func(a, b Answer) int { return cmp.Compare(a.Got, b.Got) })
	slices.SortStableFunc(t.h.Releases, func(a, b Release) int { return cmp.Compare(a.Sent, b.Sent) })
	slices.SortStableFunc(t.h.Schedules, func(a, b Schedule) int { return cmp.Compare(a.Got, b.Got) })
	for i := range t.h.Releases {
		r := &t.h.Releases[i]
		t.releases[r.Token] = append(t.releases[r.Token], r)
	}
	for _, a := range t.h.Answers {
		for _, g := range a.Grants {
			if t.byToken[g.Token] != nil {
				continue
			}
			p := &held{Grant: g, asked: a.Sent, from: a.Got, to: a.Got}
			if rs := t.releases[g.Token]; len(rs) > 0 {
				p.release, p.to = rs[0], max(a.Got, rs[0].Sent)
			}
			t.byToken[g.Token] = p
			t.held = append(t.held, p)
		}
	}
	return t
}

func (t *trial) object(rule, format string, args ...any) {
	t.verdict.Objections = append(t.verdict.Objections, Objection{Rule: rule, What: fmt.Sprintf(format, args...)})
}

// lost objects to something that was forgotten.
func (t *trial) lost(rule, format string, args ...any) {
	t.verdict.Lost++
	t.object(rule, format, args...)
}

// doubled objects to an effect that happened again.
func (t *trial) doubled(rule, format string, args ...any) {
	t.verdict.Doubled++
	t.object(rule, format, args...)
}
