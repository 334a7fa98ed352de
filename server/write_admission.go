package server

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// given converts a span of which admission.Absent means none.
func given(d time.Duration) *durationpb.Duration {
	if d == admission.Absent {
		return nil
	}
	return durationpb.New(d)
}

func writeWall(w admission.Wall) *timestamppb.Timestamp {
	return timestamppb.New(time.Unix(0, int64(w)))
}

func writePlace(p raftstore.Place) *admitv1.LogPosition {
	out := &admitv1.LogPosition{Index: p.Index, WaitEnd: p.WaitEnd}
	if p.Position != raftstore.OffLog {
		out.Position = proto.Uint32(uint32(p.Position))
	}
	return out
}

func writeAcquire(a raftstore.Answer, r *admission.AcquireResult) *admitv1.AcquireResponse {
	return &admitv1.AcquireResponse{
		Decision: writeDecision(r.Decision, a.DryRun), Shedding: showShedding(a.Shedding), Decided: writePlace(a.Place),
		Source: admitv1.DecisionSource_DECISION_SOURCE_CLUSTER,
	}
}

func writeDecision(d admission.Decision, dryRun bool) *admitv1.Decision {
	out := &admitv1.Decision{Replayed: d.Replayed, Borrowed: d.Borrowed}
	if d.WouldShed != nil {
		out.WouldShed = writeShed(d.WouldShed)
	}
	switch {
	case d.Shed != nil:
		out.Outcome = &admitv1.Decision_Shed{Shed: writeShed(d.Shed)}
	case dryRun:
		out.Outcome = &admitv1.Decision_WouldGrant{WouldGrant: &admitv1.WouldGrant{Lane: d.Permit.Lane}}
	default:
		out.Outcome = &admitv1.Decision_Permit{Permit: writePermit(d.Permit)}
	}
	return out
}

func writePermit(p admission.Permit) *admitv1.Permit {
	out := &admitv1.Permit{
		Fence:     p.Fence,
		ExpiresIn: durationpb.New(p.ExpiresIn),
		Pool:      p.Pool,
		Tenant:    p.Tenant,
		Lane:      p.Lane,
		State:     permitStates[p.State],
	}
	if p.State != admission.PermitSpent {
		out.Token = p.Token.String()
	}
	return out
}

var permitStates = map[admission.PermitState]admitv1.PermitState{
	admission.PermitLive:      admitv1.PermitState_PERMIT_STATE_LIVE,
	admission.PermitReleased:  admitv1.PermitState_PERMIT_STATE_RELEASED,
	admission.PermitLost:      admitv1.PermitState_PERMIT_STATE_LOST,
	admission.PermitCancelled: admitv1.PermitState_PERMIT_STATE_CANCELLED,
	admission.PermitSpent:     admitv1.PermitState_PERMIT_STATE_SPENT,
}

func writeShed(s *admission.Shed) *admitv1.Shed {
	out := &admitv1.Shed{
		Reason:         reasons[s.Reason],
		RetryAfter:     given(s.RetryAfter),
		PollAfter:      given(s.PollAfter),
		EarliestExpiry: given(s.EarliestExpiry),
		Lane:           s.Lane,
	}
	if s.MaxGrantable != admission.Absent {
		out.MaxGrantable = &s.MaxGrantable
	}
	for _, l := range s.Blocking {
		out.Blocking = append(out.Blocking, writeLimit(l))
	}
	return out
}

func writeLimit(l admission.Limit) *admitv1.Limit {
	return &admitv1.Limit{
		Name:       l.Name,
		Scope:      scopes[l.Scope],
		Capacity:   l.Capacity,
		Used:       l.Used,
		Asked:      l.Asked,
		Reserve:    l.Reserve,
		RetryAfter: given(l.RetryAfter),
		Holders:    l.Holders,
	}
}

var scopes = map[admission.Scope]admitv1.Limit_Scope{
	admission.ScopePool:   admitv1.Limit_SCOPE_POOL,
	admission.ScopeTenant: admitv1.Limit_SCOPE_TENANT,
	admission.ScopeLane:   admitv1.Limit_SCOPE_LANE,
}

func writeRenew(a raftstore.Answer, r *admission.RenewResult) *admitv1.RenewResponse {
	out := &admitv1.RenewResponse{Shedding: showShedding(a.Shedding), Decided: writePlace(a.Place)}
	for _, n := range r.Renewals {
		row := &admitv1.RenewResult{Result: leaseResults[n.Result]}
		if n.Result == admission.LeaseRenewed {
			row.ExpiresIn = durationpb.New(n.ExpiresIn)
		}
		out.Results = append(out.Results, row)
	}
	return out
}

func writeRelease(a raftstore.Answer, r *admission.ReleaseResult) *admitv1.ReleaseResponse {
	return &admitv1.ReleaseResponse{
		Result: leaseResults[r.Result], Shedding: showShedding(a.Shedding), Decided: writePlace(a.Place),
	}
}

var leaseResults = map[admission.LeaseResult]admitv1.LeaseResult{
	admission.LeaseRenewed:         admitv1.LeaseResult_LEASE_RESULT_RENEWED,
	admission.LeaseReleased:        admitv1.LeaseResult_LEASE_RESULT_RELEASED,
	admission.LeaseAlreadyReleased: admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED,
	admission.LeaseLost:            admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST,
	admission.LeaseCancelled:       admitv1.LeaseResult_LEASE_RESULT_CANCELLED,
}

func writeNextDue(a raftstore.Answer, r *admission.NextDueResult) *admitv1.NextDueResponse {
	out := &admitv1.NextDueResponse{
		Shedding:  showShedding(a.Shedding),
		NextDueIn: given(a.NextDueIn),
		Replayed:  r.Replayed,
		Decided:   writePlace(a.Place),
	}
	for _, c := range r.Claims {
		out.Claims = append(out.Claims, &admitv1.Claim{
			Permit:   writePermit(c.Permit),
			Key:      c.Key,
			Category: c.Category,
			Route:    c.Route,
			Group:    c.Group,
			DueAt:    writeWall(c.DueAt),
			Attempt:  c.Attempt,
			CatchUp:  c.CatchUp,
			Batch:    c.Batch,
		})
	}
	return out
}
