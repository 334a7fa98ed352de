package server

import (
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// maxPolicyBytes bounds a policy as a message; a file has the same limit.
const maxPolicyBytes = 256 << 10

func readApplyPolicy(in *admitv1.ApplyPolicyRequest) (admission.ApplyPolicy, error) {
	c := newChecker()
	op := admission.ApplyPolicy{
		ExpectedRevision: c.revision("expected_revision", in.ExpectedRevision),
		Drain:            in.GetDrain(),
	}
	if in.GetPolicy() == nil {
		c.fail("policy", "is required")
	}
	if n := proto.Size(in.GetPolicy()); n > maxPolicyBytes {
		c.fail("policy", "has %d bytes, at most %d are allowed", n, maxPolicyBytes)
	}
	if err := c.err(); err != nil {
		return op, err
	}
	p, violations := policy.FromProto(in.GetPolicy())
	violations = append(violations, p.Validate()...)
	if len(violations) > 0 {
		return op, &fieldError{reason: admission.PolicyInvalid, violations: violations}
	}
	op.Policy = p
	return op, nil
}

// readPutTenants leaves to the core what depends on the policy in force: almost
// all of it.
func readPutTenants(in *admitv1.PutTenantsRequest) (*admission.PutTenants, error) {
	c := newChecker()
	op := &admission.PutTenants{Pool: c.name("pool", in.GetPool())}
	if n := proto.Size(in); n > maxPolicyBytes {
		c.fail("rows", "have %d bytes, at most %d are allowed", n, maxPolicyBytes)
	}
	if !c.count("rows", len(in.GetRows()), admission.MaxTenantRows) {
		return nil, c.err()
	}
	op.Rows = make([]admission.TenantPut, len(in.GetRows()))
	for i, row := range in.GetRows() {
		put := &op.Rows[i]
		put.Remove = row.GetRemove()
		put.Tenant.ID = c.in("rows", i).identity("tenant.id", row.GetTenant().GetId())
		if !put.Remove {
			put.Tenant = policy.TenantFromProto(row.GetTenant())
		}
	}
	return op, c.err()
}

// target is what Pause and Resume have in common.
type target interface {
	GetPool() string
	GetTenant() string
	GetLane() string
	GetBucket() string
	GetGroup() *admitv1.GroupTarget
}

func readPause(in *admitv1.PauseRequest) (admission.Pause, error) {
	var kind admission.TargetKind
	switch in.GetTarget().(type) {
	case *admitv1.PauseRequest_Tenant:
		kind = admission.TargetTenant
	case *admitv1.PauseRequest_Lane:
		kind = admission.TargetLane
	case *admitv1.PauseRequest_Bucket:
		kind = admission.TargetBucket
	case *admitv1.PauseRequest_Group:
		kind = admission.TargetGroup
	}
	return readTarget(in, kind)
}

func readResume(in *admitv1.ResumeRequest) (admission.Pause, error) {
	var kind admission.TargetKind
	switch in.GetTarget().(type) {
	case *admitv1.ResumeRequest_Tenant:
		kind = admission.TargetTenant
	case *admitv1.ResumeRequest_Lane:
		kind = admission.TargetLane
	case *admitv1.ResumeRequest_Bucket:
		kind = admission.TargetBucket
	case *admitv1.ResumeRequest_Group:
		kind = admission.TargetGroup
	}
	op, err := readTarget(in, kind)
	op.Resume = true
	return op, err
}

func readTarget(in target, kind admission.TargetKind) (admission.Pause, error) {
	c := newChecker()
	op := admission.Pause{Pool: c.name("pool", in.GetPool()), Kind: kind}
	switch kind {
	case admission.TargetTenant:
		op.Name = c.identity("tenant", in.GetTenant())
	case admission.TargetLane:
		op.Name = c.name("lane", in.GetLane())
	case admission.TargetBucket:
		op.Name = c.name("bucket", in.GetBucket())
	case admission.TargetGroup:
		op.Tenant = c.identity("group.tenant", in.GetGroup().GetTenant())
		op.Name = c.identity("group.group", in.GetGroup().GetGroup())
	default:
		c.fail("target", "is required: a tenant, a lane, a bucket or a group")
	}
	return op, c.err()
}

func readGetTenant(in *admitv1.GetTenantRequest) (pool, tenant string, err error) {
	c := newChecker()
	return c.name("pool", in.GetPool()), c.identity("tenant", in.GetTenant()), c.err()
}

// tenantListing is a page of tenants that was asked for.
type tenantListing struct {
	pool, after string
	size        int
}

func readListTenants(in *admitv1.ListTenantsRequest) (tenantListing, error) {
	c := newChecker()
	l := tenantListing{
		pool: c.name("pool", in.GetPool()),
		size: c.orDefault("page_size", in.GetPageSize(), maxItems, defaultPage),
	}
	l.after = c.tenantPage("page_token", in.GetPageToken(), l.pool)
	return l, c.err()
}

func readLaneHistory(in *admitv1.LaneHistoryRequest) (pool string, err error) {
	c := newChecker()
	return c.name("pool", in.GetPool()), c.err()
}

func readQueueHealth(in *admitv1.QueueHealthRequest) (pool string, err error) {
	c := newChecker()
	return c.optional(c.name, "pool", in.GetPool()), c.err()
}
