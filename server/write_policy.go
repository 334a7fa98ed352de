package server

import (
	"slices"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func writeApplied(r *admission.PolicyResult) *admitv1.ApplyPolicyResponse {
	out := &admitv1.ApplyPolicyResponse{Revision: r.Revision, Changed: r.Changed}
	for _, d := range r.Draining {
		out.Draining = append(out.Draining, &admitv1.Draining{Pool: d.Pool, Lane: d.Lane, Permits: d.Permits, Entries: d.Entries, Waiting: d.Waiting})
	}
	return out
}

func writePolicy(r admission.RevisionRow) *admitv1.GetPolicyResponse {
	out := &admitv1.GetPolicyResponse{Policy: policy.ToProto(r.Policy), Revision: r.Revision}
	if r.Revision > 0 {
		out.AppliedAt = writeWall(r.AppliedAt)
	}
	return out
}

// writeRevisions lists policies, given oldest first, the other way round.
func writeRevisions(all []admission.RevisionRow) *admitv1.ListRevisionsResponse {
	out := &admitv1.ListRevisionsResponse{}
	for i, r := range slices.Backward(all) {
		var before admission.Policy
		if i > 0 {
			before = all[i-1].Policy
		}
		out.Revisions = append(out.Revisions, &admitv1.PolicyRevision{
			Revision: r.Revision, AppliedAt: writeWall(r.AppliedAt), ChangedPools: r.Policy.ChangedPools(before),
		})
	}
	return out
}
