package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/admitd/admit/admission"
)

// tally counts what happened, by name.
type tally map[string]int

func (c tally) log(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(c)) {
		t.Logf("%9d %s", c[name], name)
	}
}

func (c tally) held(rows []admission.HeldTenant) {
	for _, row := range rows {
		c["held "+row.Reason.String()]++
	}
}

func (c tally) result(res admission.Result) {
	switch r := res.(type) {
	case nil:
		c["term start"]++
	case *admission.PolicyResult:
		c.outcome("policy", r.Err, fmt.Sprintf("changed=%v", r.Changed))
	case *admission.PauseResult:
		c.outcome("pause", r.Err, "done")
	case *admission.AcquireResult:
		switch {
		case r.Decision.Shed != nil:
			c["acquire shed "+r.Decision.Shed.Reason.String()]++
		default:
			c.outcome("acquire", r.Err, fmt.Sprintf("granted replayed=%v state=%d", r.Decision.Replayed, r.Decision.Permit.State))
		}
	case *admission.NextDueResult:
		c.outcome("next due", r.Err, fmt.Sprintf("replayed=%v", r.Replayed))
		c["claim"] += len(r.Claims)
		for _, claim := range r.Claims {
			if claim.CatchUp {
				c["claim with more to catch up"]++
			}
		}
	case *admission.RenewResult:
		for _, renewal := range r.Renewals {
			c[fmt.Sprintf("renew %d", renewal.Result)]++
		}
	case *admission.ReleaseResult:
		c.outcome("release", r.Err, fmt.Sprint(r.Result))
	case *admission.ScheduleResult:
		c.outcome("schedule", r.Err, "done")
		for _, e := range r.Entries {
			c.outcome("schedule entry", e.Err, fmt.Sprintf("%d %v", e.Status, e.Reason))
		}
	case *admission.UnscheduleResult:
		c.outcome("unschedule", r.Err, fmt.Sprintf("claimed=%v", r.WasClaimed))
	}
}

func (c tally) outcome(op string, err *admission.Error, done string) {
	if err != nil {
		done = string(err.Reason)
	}
	c[op+" "+done]++
}
