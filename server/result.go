package server

import (
	"fmt"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// result is an answer's result as the type that its operation has. Another type
// is a fault of ours, which must not take the process down.
func result[R admission.Result](a raftstore.Answer) (R, error) {
	res, ok := a.Result.(R)
	if !ok {
		return res, fmt.Errorf("read the result of log index %d: it is a %T, not a %T", a.Index, a.Result, res)
	}
	return res, nil
}

// answerAcquire counts a decision and writes it.
func answerAcquire(t timer, pool string, a raftstore.Answer) (*admitv1.AcquireResponse, error) {
	res, err := result[*admission.AcquireResult](a)
	switch {
	case err != nil:
		return nil, err
	case res.Err != nil:
		return nil, res.Err
	}
	t.acquired(a, pool, res.Decision)
	return writeAcquire(a, res), nil
}

func answerRenew(a raftstore.Answer) (*admitv1.RenewResponse, error) {
	res, err := result[*admission.RenewResult](a)
	if err != nil {
		return nil, err
	}
	return writeRenew(a, res), nil
}

func answerRelease(a raftstore.Answer) (*admitv1.ReleaseResponse, error) {
	res, err := result[*admission.ReleaseResult](a)
	switch {
	case err != nil:
		return nil, err
	case res.Err != nil:
		return nil, res.Err
	}
	return writeRelease(a, res), nil
}

func writeBatchAcquire(i int, a raftstore.Answer, r *admission.AcquireResult) *admitv1.BatchAcquireResult {
	if r.Err != nil {
		return &admitv1.BatchAcquireResult{
			Result: &admitv1.BatchAcquireResult_Error{Error: itemError(r.Err, "requests", i)},
		}
	}
	return &admitv1.BatchAcquireResult{
		Result: &admitv1.BatchAcquireResult_Response{Response: writeAcquire(a, r)},
	}
}

func writeBatchRelease(i int, a raftstore.Answer, r *admission.ReleaseResult) *admitv1.BatchReleaseResult {
	if r.Err != nil {
		return &admitv1.BatchReleaseResult{
			Result: &admitv1.BatchReleaseResult_Error{Error: itemError(r.Err, "requests", i)},
		}
	}
	return &admitv1.BatchReleaseResult{
		Result: &admitv1.BatchReleaseResult_Response{Response: writeRelease(a, r)},
	}
}
