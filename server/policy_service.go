package server

import (
	"context"
	"log/slog"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

type policyService struct {
	admitv1.UnsafePolicyServiceServer
	store Store
	log   *slog.Logger
}

func (s *policyService) ApplyPolicy(ctx context.Context, in *admitv1.ApplyPolicyRequest) (*admitv1.ApplyPolicyResponse, error) {
	op, err := readApplyPolicy(in)
	if err != nil {
		return nil, err
	}
	if in.GetDryRun() {
		return s.checkPolicy(op)
	}
	_, res, err := do[*admission.PolicyResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	if res.Changed {
		s.log.InfoContext(ctx, "applied a policy", "policy", res.Revision)
	}
	return writeApplied(res), nil
}

// checkPolicy says what would come of a policy, where the one in force is known.
func (s *policyService) checkPolicy(op admission.ApplyPolicy) (*admitv1.ApplyPolicyResponse, error) {
	if !s.store.Ready() {
		return nil, raftstore.ErrNoQuorum
	}
	var res *admission.PolicyResult
	s.store.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) { res = st.CheckPolicy(op) })
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
	_, res, err := do[*admission.PutTenantsResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	if res.Changed > 0 {
		s.log.InfoContext(ctx, "put tenants", "pool", op.Pool, "changed", res.Changed)
	}
	return &admitv1.PutTenantsResponse{Changed: int64(res.Changed)}, nil
}

// GetPolicy has no index to say how much it has seen, so it answers only where
// the newest is known.
func (s *policyService) GetPolicy(context.Context, *admitv1.GetPolicyRequest) (*admitv1.GetPolicyResponse, error) {
	if !s.store.Ready() {
		return nil, raftstore.ErrNoQuorum
	}
	var p admission.Policy
	var revision int64
	var applied admission.Wall
	s.store.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		// A policy is replaced as a whole, never changed, so it may be kept.
		p, revision, applied = st.Policy()
	})
	return writePolicy(p, revision, applied), nil
}

func (s *policyService) Pause(ctx context.Context, in *admitv1.PauseRequest) (*admitv1.PauseResponse, error) {
	op, err := readPause(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.PauseResponse{}, s.setPause(ctx, op, "paused")
}

func (s *policyService) Resume(ctx context.Context, in *admitv1.ResumeRequest) (*admitv1.ResumeResponse, error) {
	op, err := readResume(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.ResumeResponse{}, s.setPause(ctx, op, "resumed")
}

func (s *policyService) setPause(ctx context.Context, op admission.Pause, done string) error {
	_, res, err := do[*admission.PauseResult](ctx, s.store, op)
	if err != nil {
		return err
	}
	if res.Err != nil {
		return res.Err
	}
	target := []any{"pool", op.Pool, targetNames[op.Kind], op.Name}
	if op.Tenant != "" {
		target = append(target, "tenant", op.Tenant)
	}
	s.log.InfoContext(ctx, done, target...)
	return nil
}

var targetNames = map[admission.TargetKind]string{
	admission.TargetTenant: "tenant",
	admission.TargetLane:   "lane",
	admission.TargetBucket: "bucket",
	admission.TargetGroup:  "group",
}
