package admission_test

import (
	"reflect"
	"slices"

	"github.com/admitd/admit/admission"
)

// naiveRequest is a call that was granted something, under the id it named.
type naiveRequest struct {
	pool   *naivePool
	tenant string // empty with NextDue
	id     string
	body   any // the operation without its nonce
	at     admission.Instant
	permit admission.Permit
	claims []admission.Claim
}

func (n *naive) request(p *naivePool, tenant, id string) (naiveRequest, bool) {
	for _, r := range n.requests {
		if r.pool == p && r.tenant == tenant && r.id == id && n.t.Sub(r.at) < naiveWindow {
			return r, true
		}
	}
	return naiveRequest{}, false
}

// requestsOf are the ids that a pool remembers, oldest first.
func (n *naive) requestsOf(p *naivePool) []naiveRequest {
	return deleteIf(n.requests, func(r naiveRequest) bool { return r.pool != p })
}

// highest is the highest lane that a call asks for.
func (p *naivePool) highest(op *admission.NextDue) string {
	i := slices.IndexFunc(p.lanes, func(l *naiveLane) bool {
		return len(op.Lanes) == 0 || slices.Contains(op.Lanes, l.name)
	})
	return p.lanes[i].name
}

// bodyOf is what has to be the same when an Acquire is sent again.
func bodyOf(op *admission.Acquire) admission.Acquire {
	body := *op
	body.Nonce, body.MaxWait, body.IssuedAt, body.Backlog = 0, 0, 0, 0
	return body
}

func mismatch() *admission.Error {
	return &admission.Error{Reason: admission.RequestMismatch, Field: "request_id"}
}

// replay answers a retried Acquire with its permit as that is now, if it is one.
func (n *naive) replay(p *naivePool, op *admission.Acquire, res *admission.AcquireResult) bool {
	r, ok := n.request(p, op.Tenant, op.RequestID)
	if op.RequestID == "" || !ok {
		return false
	}
	if r.body != bodyOf(op) {
		res.Err = mismatch()
		return true
	}
	res.Decision.Replayed = true
	res.Decision.Permit = r.permit
	if p := n.live(r.permit.Token); p != nil {
		res.Decision.Permit, res.Decision.Borrowed = n.holder(p), p.borrowed
		return true
	}
	res.Decision.Permit.Lane, _ = p.laneOf(op.Tenant, op.Category) // which may be another by now
	if r.permit.State == admission.PermitSpent {
		return true
	}
	res.Decision.Permit.ExpiresIn, res.Decision.Permit.State = 0, admission.PermitLost
	if _, ok := n.over(r.permit.Token); ok {
		res.Decision.Permit.State = admission.PermitReleased
	}
	return true
}

// replayCall answers a retried NextDue with those of its claims that still live.
func (n *naive) replayCall(call *naiveCall, r naiveRequest) {
	body := *call.op
	body.Nonce = 0
	if !reflect.DeepEqual(r.body, body) {
		call.res.Err = mismatch()
		return
	}
	call.res.Replayed = true
	var whole *naivePermit
	for _, c := range r.claims {
		if p := n.live(c.Permit.Token); p != nil && !p.cancelled {
			if p.whole != nil && p.whole != whole {
				whole = p.whole
				call.batches++
			}
			if c.Permit = n.holder(p); p.whole != nil {
				c.Batch = call.batches
			}
			call.res.Claims = append(call.res.Claims, c)
		}
	}
}

// closeCall remembers a call that claimed something under an id.
func (n *naive) closeCall(call *naiveCall) {
	if call.closed || call.op.RequestID == "" || len(call.res.Claims) == 0 {
		return
	}
	body := *call.op
	body.Nonce = 0
	n.requests = append(n.requests, naiveRequest{
		pool: call.pool, id: call.op.RequestID, body: body, at: n.t, claims: call.res.Claims,
	})
}

// holder is a live permit as its holder sees it.
func (n *naive) holder(p *naivePermit) admission.Permit {
	view := admission.Permit{
		Token: p.token, Fence: p.fence, ExpiresIn: max(0, p.expires.Sub(n.leaseNow())),
		Pool: p.pool.policy.Name, Tenant: p.tenant, Lane: p.lane, State: admission.PermitLive,
	}
	if p.cancelled {
		view.State = admission.PermitCancelled
	}
	return view
}
