package server

import (
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

func writePolicy(p admission.Policy, revision int64, applied admission.Wall) *admitv1.GetPolicyResponse {
	out := &admitv1.GetPolicyResponse{Policy: policy.ToProto(p), Revision: revision}
	if revision > 0 {
		out.AppliedAt = writeWall(applied)
	}
	return out
}
