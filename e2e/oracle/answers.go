package oracle

import (
	"fmt"
	"strings"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const answersRule = "answers are the model's"

// answersAreTheModels: an answer is what the model says where it was decided, about
// the operation that the call asked for. One that no entry decided grants nothing.
func (t *trial) answersAreTheModels() {
	for _, c := range t.calls {
		at := c.places()
		if len(at) == 0 {
			if granted(c) {
				t.object(answersRule, "%v does not say where it was decided", c)
			}
			continue
		}
		if !at[0].logged {
			if granted(c) {
				t.object(answersRule, "%v was granted something without an entry: %v", c, c.Response)
			}
			continue
		}
		t.compare(c, at)
	}
}

// granted says whether an answer gives something that must be in the log.
func granted(c Call) bool {
	switch r := c.Response.(type) {
	case *admitv1.AcquireResponse:
		return r.GetDecision().GetPermit() != nil
	case *admitv1.NextDueResponse:
		return len(r.GetClaims()) > 0
	case *admitv1.RenewResponse, *admitv1.ReleaseResponse, *admitv1.ScheduleResponse:
		return true
	}
	return false
}

// compare compares an answer with what the model says at its places.
func (t *trial) compare(c Call, at []decidedAt) {
	var asked, said []string
	for _, p := range at {
		op, result, known := t.lookUp(p)
		if !known {
			t.object(answersRule, "%v says it was decided at %d.%d, where the log has nothing", c, p.index, p.position)
			return
		}
		asked = append(asked, askedOf(op)...)
		said = append(said, saidOf(result)...)
	}
	wantAsked, known := askedBy(c)
	if !known {
		return // a call that is not of the load's: a policy, a read
	}
	if got := strings.Join(asked, "\n"); got != strings.Join(wantAsked, "\n") {
		t.object(answersRule, "%v says it was decided at %d.%d, which is about %s", c, at[0].index, at[0].position, got)
		return
	}
	if got, want := strings.Join(told(c), "\n"), strings.Join(said, "\n"); got != want {
		t.object(answersRule, "%v at %d.%d was told\n%s\nand the model says\n%s", c, at[0].index, at[0].position, got, want)
	}
}

func (t *trial) lookUp(p decidedAt) (admission.Op, admission.Result, bool) {
	if p.waitEnd {
		end, known := t.ends[p.place]
		op := t.waited[end.Waiter]
		return op, end.Result, known && op != nil
	}
	d, known := t.decisions[p.place]
	return d.op, d.result, known
}

// askedOf says what an operation is about, askedBy what a call is.
func askedOf(op admission.Op) []string {
	switch op := op.(type) {
	case *admission.Acquire:
		return []string{fmt.Sprintf("acquire %s %s %s %s", op.Pool, op.Tenant, op.RequestID, op.LockKey)}
	case *admission.NextDue:
		return []string{fmt.Sprintf("claim %s %d %s", op.Pool, op.MaxItems, op.RequestID)}
	case *admission.Release:
		return []string{fmt.Sprintf("release %s %d", op.Token, op.Outcome)}
	case *admission.Renew:
		var lines []string
		for _, token := range op.Tokens {
			lines = append(lines, "renew "+token.String())
		}
		return lines
	case *admission.Schedule:
		var lines []string
		for _, e := range op.Entries {
			lines = append(lines, fmt.Sprintf("schedule %s %s %s", op.Pool, e.Tenant, e.Key))
		}
		return lines
	}
	return []string{fmt.Sprintf("%T", op)}
}

func askedBy(c Call) (lines []string, known bool) {
	switch r := c.Request.(type) {
	case *admitv1.AcquireRequest:
		lines = append(lines, fmt.Sprintf("acquire %s %s %s %s", r.GetPool(), r.GetTenant(), r.GetRequestId(), r.GetLockKey()))
	case *admitv1.NextDueRequest:
		lines = append(lines, fmt.Sprintf("claim %s %d %s", r.GetPool(), max(r.GetMaxItems(), 1), r.GetRequestId()))
	case *admitv1.ReleaseRequest:
		lines = append(lines, fmt.Sprintf("release %s %d", r.GetToken(), max(r.GetOutcome(), admitv1.Outcome_OUTCOME_DONE)))
	case *admitv1.RenewRequest:
		for _, token := range r.GetTokens() {
			lines = append(lines, "renew "+token)
		}
	case *admitv1.ScheduleRequest:
		for _, e := range r.GetEntries() {
			lines = append(lines, fmt.Sprintf("schedule %s %s %s", r.GetPool(), e.GetTenant(), e.GetKey()))
		}
	default:
		return nil, false
	}
	return lines, true
}

// saidOf is what a model's result tells a caller, told what an answer did, in the
// same words. The API numbers states, results and statuses as the core does.
func saidOf(result admission.Result) []string {
	switch r := result.(type) {
	case *admission.AcquireResult:
		d := r.Decision
		switch {
		case r.Err != nil:
			return []string{"error " + string(r.Err.Reason)}
		case d.Shed != nil:
			return []string{fmt.Sprintf("shed %s after %d", d.Shed.Reason, d.Shed.RetryAfter)}
		case d.Waiter != admission.WaiterKey{}:
			return []string{"waits"}
		}
		return []string{saidPermit(d.Permit), fmt.Sprintf("borrowed %t replayed %t", d.Borrowed, d.Replayed)}
	case *admission.NextDueResult:
		lines := []string{fmt.Sprintf("replayed %t", r.Replayed)}
		for _, c := range r.Claims {
			lines = append(lines, fmt.Sprintf("%s of %s attempt %d", saidPermit(c.Permit), c.Key, c.Attempt))
		}
		return lines
	case *admission.RenewResult:
		var lines []string
		for _, n := range r.Renewals {
			lines = append(lines, fmt.Sprintf("%d for %d", n.Result, n.ExpiresIn))
		}
		return lines
	case *admission.ReleaseResult:
		return []string{fmt.Sprint(uint8(r.Result))}
	case *admission.ScheduleResult:
		var lines []string
		for _, e := range r.Entries {
			lines = append(lines, fmt.Sprint(uint8(e.Status)))
		}
		return lines
	}
	return nil
}

func told(c Call) []string {
	switch r := c.Response.(type) {
	case *admitv1.AcquireResponse:
		d := r.GetDecision()
		if s := d.GetShed(); s != nil {
			after := int64(admission.Absent)
			if s.GetRetryAfter() != nil {
				after = int64(s.GetRetryAfter().AsDuration())
			}
			return []string{fmt.Sprintf("shed %s after %d", strings.TrimPrefix(s.GetReason().String(), "REASON_"), after)}
		}
		return []string{toldPermit(d.GetPermit()), fmt.Sprintf("borrowed %t replayed %t", d.GetBorrowed(), d.GetReplayed())}
	case *admitv1.NextDueResponse:
		lines := []string{fmt.Sprintf("replayed %t", r.GetReplayed())}
		for _, c := range r.GetClaims() {
			lines = append(lines, fmt.Sprintf("%s of %s attempt %d", toldPermit(c.GetPermit()), c.GetKey(), c.GetAttempt()))
		}
		return lines
	case *admitv1.RenewResponse:
		var lines []string
		for _, n := range r.GetResults() {
			lines = append(lines, fmt.Sprintf("%d for %d", n.GetResult(), n.GetExpiresIn().AsDuration()))
		}
		return lines
	case *admitv1.ReleaseResponse:
		return []string{fmt.Sprint(int32(r.GetResult()))}
	case *admitv1.ScheduleResponse:
		var lines []string
		for _, e := range r.GetResults() {
			lines = append(lines, fmt.Sprint(int32(e.GetStatus())))
		}
		return lines
	}
	return nil
}

func saidPermit(p admission.Permit) string {
	return fmt.Sprintf("permit %s fence %d for %d in %s %s %s state %d", p.Token, p.Fence, p.ExpiresIn, p.Pool, p.Tenant, p.Lane, p.State)
}

func toldPermit(p *admitv1.Permit) string {
	return fmt.Sprintf("permit %s fence %d for %d in %s %s %s state %d",
		p.GetToken(), p.GetFence(), p.GetExpiresIn().AsDuration(), p.GetPool(), p.GetTenant(), p.GetLane(), p.GetState())
}
