package server

import (
	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func writePolicy(p admission.Policy, revision int64, applied admission.Wall) *admitv1.GetPolicyResponse {
	out := &admitv1.GetPolicyResponse{Policy: policy.ToProto(p), Revision: revision}
	if revision > 0 {
		out.AppliedAt = writeWall(applied)
	}
	return out
}
