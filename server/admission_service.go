package server

import (
	"context"
	"slices"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

type admissionService struct {
	admitv1.UnsafeAdmissionServiceServer
	store   Store
	metrics *metrics
	drain   *drain
}

func (s *admissionService) Acquire(ctx context.Context, in *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	req, err := readAcquire(in)
	if err != nil {
		return nil, err
	}
	waiting, end := s.drain.wait(ctx, waits(in))
	defer end()
	timer := s.metrics.start()
	answers, err := s.store.Do(waiting, req)
	if err != nil {
		return nil, s.drain.explain(ctx, err)
	}
	return answerAcquire(timer, in.GetPool(), answers[0])
}

func (s *admissionService) BatchAcquire(ctx context.Context, in *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	reqs, err := readBatchAcquire(in)
	if err != nil {
		return nil, err
	}
	waiting, end := s.drain.wait(ctx, slices.ContainsFunc(in.GetRequests(), waits))
	defer end()
	timer := s.metrics.start()
	answers, err := s.store.Do(waiting, reqs...)
	if err != nil {
		return nil, s.drain.explain(ctx, err)
	}
	out := &admitv1.BatchAcquireResponse{}
	for i, a := range answers {
		res, err := result[*admission.AcquireResult](a)
		if err != nil {
			return nil, err
		}
		if res.Err == nil {
			timer.acquired(a, in.GetRequests()[i].GetPool(), res.Decision)
		}
		out.Results = append(out.Results, writeBatchAcquire(i, a, res))
	}
	return out, nil
}

func waits(in *admitv1.AcquireRequest) bool { return in.GetMaxWait() != nil }

func (s *admissionService) ReportDemand(ctx context.Context, in *admitv1.ReportDemandRequest) (*admitv1.ReportDemandResponse, error) {
	op, err := readReportDemand(in)
	if err != nil {
		return nil, err
	}
	answer, res, err := do[*admission.ReportResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	return &admitv1.ReportDemandResponse{Shedding: showShedding(answer.Shedding), Decided: writePlace(answer.Place)}, nil
}

func (s *admissionService) Renew(ctx context.Context, in *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
	op, err := readRenew(in)
	if err != nil {
		return nil, err
	}
	answers, err := s.store.Do(ctx, raftstore.Request{Op: op})
	if err != nil {
		return nil, err
	}
	return answerRenew(answers[0])
}

func (s *admissionService) Release(ctx context.Context, in *admitv1.ReleaseRequest) (*admitv1.ReleaseResponse, error) {
	op, err := readRelease(in)
	if err != nil {
		return nil, err
	}
	answers, err := s.store.Do(ctx, raftstore.Request{Op: op})
	if err != nil {
		return nil, err
	}
	return answerRelease(answers[0])
}

func (s *admissionService) BatchRelease(ctx context.Context, in *admitv1.BatchReleaseRequest) (*admitv1.BatchReleaseResponse, error) {
	reqs, err := readBatchRelease(in)
	if err != nil {
		return nil, err
	}
	answers, err := s.store.Do(ctx, reqs...)
	if err != nil {
		return nil, err
	}
	out := &admitv1.BatchReleaseResponse{}
	for i, a := range answers {
		res, err := result[*admission.ReleaseResult](a)
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, writeBatchRelease(i, a, res))
	}
	return out, nil
}

func (s *admissionService) NextDue(ctx context.Context, in *admitv1.NextDueRequest) (*admitv1.NextDueResponse, error) {
	req, wait, err := readNextDue(in)
	if err != nil {
		return nil, err
	}
	poll, end := s.drain.wait(ctx, true)
	defer end()
	answer, err := s.store.NextDue(poll, req, wait)
	if err != nil {
		return nil, s.drain.explain(ctx, err)
	}
	res, err := result[*admission.NextDueResult](answer)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	s.metrics.claimed(in.GetPool(), res)
	return writeNextDue(answer, res), nil
}

// do has one operation decided.
func do[R admission.Result](ctx context.Context, s Store, op admission.Op) (raftstore.Answer, R, error) {
	answers, err := s.Do(ctx, raftstore.Request{Op: op})
	if err != nil {
		return raftstore.Answer{}, *new(R), err
	}
	res, err := result[R](answers[0])
	return answers[0], res, err
}
