package server

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// sharedPolicy is a pool of which sidecars may hold tokens.
func sharedPolicy() *admitv1.Policy {
	policy := testPolicy()
	pool := policy.Pools[0]
	pool.Buckets[0].Charge = admitv1.Bucket_COST
	pool.Buckets[0].Share = &admitv1.TokenShare{Max: proto.Int64(3), OnLoss: admitv1.TokenShare_SAFE, Safe: proto.Int64(2)}
	pool.Buckets[1].Share = &admitv1.TokenShare{Max: proto.Int64(20), Ttl: durationpb.New(4 * time.Second), OnLoss: admitv1.TokenShare_OPEN}
	return policy
}

func lease(node string, tokens int64) *admitv1alpha1.LeaseShareRequest {
	return &admitv1alpha1.LeaseShareRequest{
		Pool: "email", Tenant: "acme", Category: "otp", Tokens: tokens, Node: &admitv1.NodeShare{Id: node, Owned: 1, Total: 1},
	}
}

func TestASidecarLeasesAndReturnsTokens(t *testing.T) {
	h, _ := startWithPolicy(t)
	_, err := h.shares.LeaseShare(soon(t), lease("n", 1))
	if got := tell(t, err); got.code != codes.FailedPrecondition || got.reason != "NOT_SHARED" {
		t.Fatalf("without a share in the policy: %+v", got)
	}
	if _, err := h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: sharedPolicy()}); err != nil {
		t.Fatal(err)
	}
	resp, err := h.shares.LeaseShare(soon(t), lease("n", 10))
	if err != nil {
		t.Fatal(err)
	}
	share := resp.GetShare()
	want := &admitv1alpha1.Share{
		Token: share.GetToken(), Tokens: 3, ExpiresIn: durationpb.New(4 * time.Second), IdleReturn: durationpb.New(2 * time.Second),
		OnLoss: admitv1.TokenShare_SAFE, Safe: 2, SafePeriod: durationpb.New(time.Second), Lane: "transactional",
	}
	if !proto.Equal(share, want) || share.GetToken() == "" || resp.GetPolicyRevision() != 2 || resp.GetDecided() == nil {
		t.Errorf("leased %v, want %v", resp, want)
	}
	resp, err = h.shares.LeaseShare(soon(t), lease("m", 1))
	if shed := resp.GetShed(); err != nil || shed.GetReason() != admitv1.Reason_REASON_POOL_RATE || len(shed.GetBlocking()) != 0 ||
		shed.GetEarliestExpiry().AsDuration() != 4*time.Second {
		t.Errorf("while another holds all that may be held: %v, %v", resp, err)
	}
	granted, err := h.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp"})
	if err != nil || granted.GetDecision().GetPermit() == nil || granted.GetSource() != admitv1.DecisionSource_DECISION_SOURCE_CLUSTER {
		t.Errorf("from the cluster: %v, %v", granted, err)
	}
	renewed, err := h.Renew(soon(t), &admitv1.RenewRequest{Tokens: []string{share.GetToken()}})
	if err != nil || renewed.GetResults()[0].GetResult() != admitv1.LeaseResult_LEASE_RESULT_CANCELLED {
		t.Errorf("renewed: %v, %v", renewed, err)
	}
	if _, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: share.GetToken(), ActualCost: proto.Int64(1)}); err != nil {
		t.Fatal(err)
	}
	if resp, err = h.shares.LeaseShare(soon(t), lease("m", 10)); err != nil || resp.GetShare().GetTokens() != 3 {
		t.Errorf("when it is back: %v, %v", resp, err)
	}
}
