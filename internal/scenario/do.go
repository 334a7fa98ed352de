package scenario

import (
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

func (r *run) acquire(c *call, s scope, o *outcome) {
	op := &admission.Acquire{
		Pool:      s.expand(c.texts["pool"]),
		Tenant:    s.expand(c.texts["tenant"]),
		Category:  s.expand(c.texts["category"]),
		Cost:      c.number("cost", 1),
		TTL:       c.durations["ttl"],
		MaxWait:   c.durations["max_wait"],
		LockKey:   s.expand(c.texts["lock_key"]),
		DedupeKey: s.expand(c.texts["dedupe_key"]),
		RequestID: s.expand(c.texts["request_id"]),
		RateOnly:  c.flags["rate_only"],
		Settle:    c.flags["settle"],
		Backlog:   c.number("backlog", 0),
		Nonce:     r.nextNonce(),
	}
	o.pool = op.Pool
	res := r.apply(op).(*admission.AcquireResult)
	if o.refuse(res.Err) {
		return
	}
	o.decided(&res.Decision)
	name := s.expand(c.texts["as"])
	switch {
	case res.Decision.Waiter != admission.WaiterKey{}:
		r.waits[res.Decision.Waiter] = name
	case name != "" && res.Decision.Shed == nil:
		r.permits[name] = res.Decision.Permit.Token
	}
}

func (r *run) reportDemand(c *call, s scope, o *outcome) {
	op := &admission.ReportDemand{
		Pool:     s.expand(c.texts["pool"]),
		Tenant:   s.expand(c.texts["tenant"]),
		Category: s.expand(c.texts["category"]),
		Backlog:  c.number("backlog", 0),
		TTL:      c.durations["ttl"],
	}
	o.pool = op.Pool
	o.refuse(r.apply(op).(*admission.ReportResult).Err)
}

func (r *run) nextDue(c *call, s scope, o *outcome) {
	op := &admission.NextDue{
		Pool:       s.expand(c.texts["pool"]),
		MaxItems:   int(c.number("max_items", 1)),
		TTL:        c.durations["ttl"],
		Tenant:     s.expand(c.texts["tenant"]),
		LaneLimits: c.limits,
		Node:       c.node,
		Batch:      c.batch,
		RequestID:  s.expand(c.texts["request_id"]),
		Nonce:      r.nextNonce(),
	}
	for _, lane := range c.lists["lanes"] {
		op.Lanes = append(op.Lanes, s.expand(lane))
	}
	o.pool = op.Pool
	res := r.apply(op).(*admission.NextDueResult)
	o.lastCall = res
	o.nextDueIn = admission.Absent
	if o.refuse(res.Err) {
		return
	}
	o.nextDueIn = r.state.NextDueIn(op.Pool, r.wall())
	if res.Replayed {
		o.replayed++
	}
	for i := range res.Claims {
		claim := &res.Claims[i]
		o.claimed(claim, res.Replayed)
		if name := c.texts["as"]; name != "" {
			r.permits[s.expand(name)+"."+claim.Key] = claim.Permit.Token
		}
	}
}

func (r *run) schedule(c *call, s scope, o *outcome) {
	spec := admission.EntrySpec{
		Tenant:      s.expand(c.texts["tenant"]),
		Key:         s.expand(c.texts["key"]),
		Category:    s.expand(c.texts["category"]),
		Route:       s.expand(c.texts["route"]),
		Group:       s.expand(c.texts["group"]),
		DueIn:       c.durations["due_in"],
		Relative:    true,
		Every:       c.durations["every"],
		Cadence:     s.expand(c.texts["cadence"]),
		MaxAttempts: int32(c.number("max_attempts", 0)),
	}
	o.pool = s.expand(c.texts["pool"])
	res := r.apply(&admission.Schedule{Pool: o.pool, Entries: []admission.EntrySpec{spec}}).(*admission.ScheduleResult)
	if o.refuse(res.Err) || o.refuse(res.Entries[0].Err) {
		return
	}
	if row := res.Entries[0]; row.Status == admission.ScheduleShed {
		o.refusal, o.message = row.Reason.String(), "the entry was shed"
	}
}

func (r *run) unschedule(c *call, s scope, o *outcome) {
	o.pool = s.expand(c.texts["pool"])
	op := admission.Unschedule{Pool: o.pool, Tenant: s.expand(c.texts["tenant"]), Key: s.expand(c.texts["key"])}
	o.refuse(r.apply(op).(*admission.UnscheduleResult).Err)
}

func (r *run) renew(c *call, s scope, o *outcome) {
	token, ok := r.permit(c, s, o)
	if !ok {
		return
	}
	res := r.apply(&admission.Renew{Tokens: []admission.Token{token}, TTL: c.durations["ttl"]}).(*admission.RenewResult)
	o.leases = append(o.leases, res.Renewals[0].Result)
}

func (r *run) release(c *call, s scope, o *outcome) {
	token, ok := r.permit(c, s, o)
	if !ok {
		return
	}
	op := &admission.Release{
		Token:      token,
		Outcome:    admission.OutcomeDone,
		Miss:       c.texts["result"] == "miss",
		ActualCost: c.number("actual_cost", admission.Absent),
		RetryAfter: admission.Absent,
		Bucket:     s.expand(c.texts["bucket"]),
	}
	if name := c.texts["outcome"]; name != "" {
		op.Outcome = outcomes[name]
	}
	if d, ok := c.durations["retry_after"]; ok {
		op.RetryAfter = d
	}
	res := r.apply(op).(*admission.ReleaseResult)
	if !o.refuse(res.Err) {
		o.leases = append(o.leases, res.Result)
	}
}

// permit returns the token of the permit that the call names.
func (r *run) permit(c *call, s scope, o *outcome) (admission.Token, bool) {
	name := s.expand(c.texts["permit"])
	token, ok := r.permits[name]
	if !ok {
		o.fail(fmt.Sprintf("a permit called %q", name), "none")
	}
	return token, ok
}

func (r *run) pause(c *call, s scope, o *outcome) { r.setPause(c, s, o, false) }

func (r *run) resume(c *call, s scope, o *outcome) { r.setPause(c, s, o, true) }

func (r *run) setPause(c *call, s scope, o *outcome, resume bool) {
	op := admission.Pause{Pool: s.expand(c.texts["pool"]), Resume: resume}
	for _, t := range targets {
		if name, given := c.texts[t.field]; given {
			op.Kind, op.Name = t.kind, s.expand(name)
		}
	}
	if op.Kind == admission.TargetGroup {
		op.Tenant = s.expand(c.texts["tenant"])
	}
	o.pool = op.Pool
	o.refuse(r.apply(op).(*admission.PauseResult).Err)
}

func (r *run) applyPolicy(c *call, _ scope, o *outcome) {
	if c.policy.invalid {
		o.refusal, o.message = string(admission.PolicyInvalid), "the policy breaks a rule"
		return
	}
	op := admission.ApplyPolicy{Policy: c.policy.core, ExpectedRevision: admission.AnyRevision}
	o.refuse(r.apply(op).(*admission.PolicyResult).Err)
}

func (r *run) tick(*call, scope, *outcome) { r.apply() }

func (r *run) newLeader(c *call, _ scope, _ *outcome) {
	gap := c.durations["gap"]
	r.apply(admission.TermStart{Gap: gap})
	r.now = min(r.now.Add(gap), latest)
}

// restore goes on with what a snapshot holds.
func (r *run) restore(_ *call, _ scope, o *outcome) {
	image := r.state.Snapshot()
	restored, err := restored(image)
	if err != nil {
		o.fail("a snapshot that restores", err.Error())
		return
	}
	if got, want := restored.Snapshot().Digest(), image.Digest(); got != want {
		o.fail(fmt.Sprintf("digest %x", want), fmt.Sprintf("%x after the restore", got))
		return
	}
	r.state = restored
}

// restored returns the state that an image holds.
func restored(image *admission.Image) (*admission.State, error) {
	return admission.Restore(image.Header(), func(yield func(admission.Row, error) bool) {
		for row := range image.Rows() {
			if !yield(row, nil) {
				return
			}
		}
	})
}

// look lets time move on, as any verb does; what it expects reads the state.
func (r *run) look(c *call, s scope, o *outcome) {
	o.pool = s.expand(c.texts["pool"])
	r.apply()
}

func (c *call) number(name string, absent int64) int64 {
	if n, ok := c.numbers[name]; ok {
		return n
	}
	return absent
}

func roundUp(d time.Duration) time.Duration {
	if d == admission.Absent {
		return d
	}
	return (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
}
