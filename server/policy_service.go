package server

import (
	"context"
	"log/slog"
	"math"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

type policyService struct {
	admitv1.UnsafePolicyServiceServer
	store Store
	reads reads
	log   *slog.Logger
}

func (s *policyService) ApplyPolicy(ctx context.Context, in *admitv1.ApplyPolicyRequest) (*admitv1.ApplyPolicyResponse, error) {
	op, err := readApplyPolicy(in)
	if err != nil {
		return nil, err
	}
	if in.GetDryRun() {
		return s.checkPolicy(ctx, op)
	}
	answer, res, err := do[*admission.PolicyResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	if res.Changed {
		s.log.InfoContext(ctx, "applied a policy", "policy", res.Revision)
	}
	out := writeApplied(res)
	out.Decided = writePlace(answer.Place)
	return out, nil
}

// checkPolicy says what would come of a policy.
func (s *policyService) checkPolicy(ctx context.Context, op admission.ApplyPolicy) (*admitv1.ApplyPolicyResponse, error) {
	var res *admission.PolicyResult
	_, err := s.reads.view(ctx, false, func(st *admission.State, _ admission.Instant, _ admission.Wall) { res = st.CheckPolicy(op) })
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	return writeApplied(res), nil
}

func (s *policyService) PutTenants(ctx context.Context, in *admitv1.PutTenantsRequest) (*admitv1.PutTenantsResponse, error) {
	op, err := readPutTenants(in)
	if err != nil {
		return nil, err
	}
	answer, res, err := do[*admission.PutTenantsResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	if res.Changed > 0 {
		s.log.InfoContext(ctx, "put tenants", "pool", op.Pool, "changed", res.Changed)
	}
	return &admitv1.PutTenantsResponse{Changed: int64(res.Changed), Decided: writePlace(answer.Place)}, nil
}

func (s *policyService) GetPolicy(ctx context.Context, in *admitv1.GetPolicyRequest) (*admitv1.GetPolicyResponse, error) {
	c := newChecker()
	c.between("revision", in.GetRevision(), 0, math.MaxInt64)
	if err := c.err(); err != nil {
		return nil, err
	}
	var found admission.RevisionRow
	var missing *admission.Error
	var index uint64
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		// A policy is replaced as a whole, never changed, so it may be kept.
		found, missing = st.RevisionOf(in.GetRevision())
		index = st.Index()
	})
	if err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	out := writePolicy(found)
	out.LogIndex, out.Age = index, old
	return out, nil
}

func (s *policyService) ListRevisions(ctx context.Context, in *admitv1.ListRevisionsRequest) (*admitv1.ListRevisionsResponse, error) {
	var all []admission.RevisionRow
	var index uint64
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		all, index = st.Revisions(), st.Index()
	})
	if err != nil {
		return nil, err
	}
	out := writeRevisions(all)
	out.LogIndex, out.Age = index, old
	return out, nil
}

func (s *policyService) Pause(ctx context.Context, in *admitv1.PauseRequest) (*admitv1.PauseResponse, error) {
	op, err := readPause(in)
	if err != nil {
		return nil, err
	}
	at, err := s.setPause(ctx, op, "paused")
	if err != nil {
		return nil, err
	}
	return &admitv1.PauseResponse{Decided: at}, nil
}

func (s *policyService) Resume(ctx context.Context, in *admitv1.ResumeRequest) (*admitv1.ResumeResponse, error) {
	op, err := readResume(in)
	if err != nil {
		return nil, err
	}
	at, err := s.setPause(ctx, op, "resumed")
	if err != nil {
		return nil, err
	}
	return &admitv1.ResumeResponse{Decided: at}, nil
}

func (s *policyService) setPause(ctx context.Context, op admission.Pause, done string) (*admitv1.LogPosition, error) {
	answer, res, err := do[*admission.PauseResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	target := []any{"pool", op.Pool, targetNames[op.Kind], op.Name}
	if op.Tenant != "" {
		target = append(target, "tenant", op.Tenant)
	}
	s.log.InfoContext(ctx, done, target...)
	return writePlace(answer.Place), nil
}

var targetNames = map[admission.TargetKind]string{
	admission.TargetTenant: "tenant",
	admission.TargetLane:   "lane",
	admission.TargetBucket: "bucket",
	admission.TargetGroup:  "group",
}
