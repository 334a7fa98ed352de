package server

import (
	"context"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

type dueWorkService struct {
	admitv1.UnsafeDueWorkServiceServer
	store Store
}

func (s *dueWorkService) Schedule(ctx context.Context, in *admitv1.ScheduleRequest) (*admitv1.ScheduleResponse, error) {
	op, err := readSchedule(in)
	if err != nil {
		return nil, err
	}
	answer, res, err := do[*admission.ScheduleResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	return writeSchedule(answer, res), nil
}

func (s *dueWorkService) Unschedule(ctx context.Context, in *admitv1.UnscheduleRequest) (*admitv1.UnscheduleResponse, error) {
	op, err := readUnschedule(in)
	if err != nil {
		return nil, err
	}
	_, res, err := do[*admission.UnscheduleResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	return &admitv1.UnscheduleResponse{WasClaimed: res.WasClaimed}, nil
}

func (s *dueWorkService) ListEntries(ctx context.Context, in *admitv1.ListEntriesRequest) (*admitv1.ListEntriesResponse, error) {
	l, err := readListEntries(in)
	if err != nil {
		return nil, err
	}
	image, err := s.store.Image(ctx)
	if err != nil {
		return nil, err
	}
	rows, failed := image.ListEntries(l.filter, l.after.due, l.after.seq, l.size+1)
	if failed != nil {
		return nil, failed
	}
	return writeEntries(image.Header().Index, l, rows), nil
}

func (s *dueWorkService) ListDead(ctx context.Context, in *admitv1.ListDeadRequest) (*admitv1.ListDeadResponse, error) {
	l, err := readListDead(in)
	if err != nil {
		return nil, err
	}
	image, err := s.store.Image(ctx)
	if err != nil {
		return nil, err
	}
	rows, failed := image.ListDead(l.pool, l.tenant, l.after.tenant, l.after.key, l.size+1)
	if failed != nil {
		return nil, failed
	}
	return writeDead(image.Header().Index, l, rows), nil
}
