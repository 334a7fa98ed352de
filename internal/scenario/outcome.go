package scenario

import (
	"time"

	"github.com/admitd/admit/admission"
)

// outcome is what came of a step: of all its repeats together.
type outcome struct {
	run  *run
	pool string

	granted, shed, replayed      int64
	waiting, borrowed, wouldShed int64
	// lastShed is why the last one was shed, or would have been.
	lastShed *admission.Shed

	// grants and expired are the names of the waits that ended.
	grants, expired []string

	claims    map[string]int64
	keys      []string
	attempts  map[string]int64
	lastCall  *admission.NextDueResult
	nextDueIn time.Duration

	leases []admission.LeaseResult

	// refusal is the last error's reason, message its words.
	refusal, message string

	// failedWant and failedGot say why the step could not be carried out.
	failedWant, failedGot string
}

// refuse notes that a call could not be decided.
func (o *outcome) refuse(err *admission.Error) bool {
	if err == nil {
		return false
	}
	o.refusal, o.message = string(err.Reason), err.Message
	return true
}

// fail notes that the step can't be carried out, which no test expects.
func (o *outcome) fail(want, got string) {
	o.failedWant, o.failedGot = want, got
}

func (o *outcome) decided(d *admission.Decision) {
	if d.Shed != nil {
		o.shed++
		o.lastShed = d.Shed
		return
	}
	if d.Waiter != (admission.WaiterKey{}) {
		o.waiting++
		return
	}
	o.granted++
	if d.Borrowed {
		o.borrowed++
	}
	if d.WouldShed != nil {
		o.wouldShed++
		o.lastShed = d.WouldShed
	}
	if d.Replayed {
		o.replayed++
		return
	}
	o.run.grants[owner{d.Permit.Pool, d.Permit.Tenant}]++
}

// ended notes how the wait of that name ended.
func (o *outcome) ended(name string, end admission.WaitEnd) {
	d := &end.Result.Decision
	if d.Shed != nil {
		o.expired = append(o.expired, name)
		return
	}
	o.grants = append(o.grants, name)
	o.run.grants[owner{end.Pool, end.Tenant}]++
	o.run.permits[name] = d.Permit.Token
}

func (o *outcome) claimed(c *admission.Claim, replayed bool) {
	if o.claims == nil {
		o.claims, o.attempts = map[string]int64{}, map[string]int64{}
	}
	o.claims[c.Permit.Tenant]++
	o.attempts[c.Key] = int64(c.Attempt)
	o.keys = append(o.keys, c.Key)
	if !replayed {
		o.run.grants[owner{c.Permit.Pool, c.Permit.Tenant}]++
	}
}

var leaseNames = map[admission.LeaseResult]string{
	admission.LeaseRenewed: "RENEWED", admission.LeaseReleased: "RELEASED",
	admission.LeaseAlreadyReleased: "ALREADY_RELEASED", admission.LeaseLost: "LEASE_LOST",
	admission.LeaseCancelled: "CANCELLED",
}
