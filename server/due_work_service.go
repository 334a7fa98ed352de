package server

import (
	"context"
	"runtime"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

type dueWorkService struct {
	admitv1.UnsafeDueWorkServiceServer
	store Store
	reads reads
	// listing has a place for each list that may be made at a time. A list goes
	// through all entries: many at once would leave decisions no time, and would
	// be made even for callers that have long gone.
	listing chan struct{}
}

func newDueWorkService(store Store, reads reads) *dueWorkService {
	return &dueWorkService{store: store, reads: reads, listing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))}
}

// image returns the picture to make a list of, once it is the list's turn. The
// caller calls done after that.
func (s *dueWorkService) image(ctx context.Context, stale bool) (im *admission.Image, old age, done func(), err error) {
	select {
	case s.listing <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	}
	done = func() { <-s.listing }
	if im, old, err = s.reads.image(ctx, stale); err != nil {
		done()
		return nil, nil, nil, err
	}
	return im, old, done, nil
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
	answer, res, err := do[*admission.UnscheduleResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	return &admitv1.UnscheduleResponse{WasClaimed: res.WasClaimed, Decided: writePlace(answer.Place)}, nil
}

func (s *dueWorkService) ListEntries(ctx context.Context, in *admitv1.ListEntriesRequest) (*admitv1.ListEntriesResponse, error) {
	l, err := readListEntries(in)
	if err != nil {
		return nil, err
	}
	image, old, done, err := s.image(ctx, in.GetStale())
	if err != nil {
		return nil, err
	}
	defer done()
	rows, failed := image.ListEntries(l.filter, l.after.due, l.after.seq, l.size+1)
	if failed != nil {
		return nil, failed
	}
	out := writeEntries(image.Header().Index, l, rows)
	out.Age = old
	return out, nil
}

func (s *dueWorkService) ListDead(ctx context.Context, in *admitv1.ListDeadRequest) (*admitv1.ListDeadResponse, error) {
	l, err := readListDead(in)
	if err != nil {
		return nil, err
	}
	image, old, done, err := s.image(ctx, in.GetStale())
	if err != nil {
		return nil, err
	}
	defer done()
	rows, failed := image.ListDead(l.pool, l.filter, l.after, l.size+1)
	if failed != nil {
		return nil, failed
	}
	out := writeDead(image.Header().Index, l, rows)
	out.Age = old
	return out, nil
}

func (s *dueWorkService) GetEntry(ctx context.Context, in *admitv1.GetEntryRequest) (*admitv1.GetEntryResponse, error) {
	pool, tenant, key, err := readGetEntry(in)
	if err != nil {
		return nil, err
	}
	var e admission.ListedEntry
	var failed *admission.Error
	var index uint64
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, _ admission.Instant, _ admission.Wall) {
		index = st.Index()
		e, failed = st.GetEntry(pool, tenant, key)
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return &admitv1.GetEntryResponse{Entry: writeEntry(e), LogIndex: index, Age: old}, nil
}

func (s *dueWorkService) Redrive(ctx context.Context, in *admitv1.RedriveRequest) (*admitv1.RedriveResponse, error) {
	op, err := readRedrive(in)
	if err != nil {
		return nil, err
	}
	pool, filter := op.Pool, op.Filter
	answer, res, err := do[*admission.DeadResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	next := cursorToken(redriveKind, pool, filter, res.Next)
	return &admitv1.RedriveResponse{Redriven: int32(res.Count), NextPageToken: next, Decided: writePlace(answer.Place)}, nil
}

func (s *dueWorkService) PurgeDead(ctx context.Context, in *admitv1.PurgeDeadRequest) (*admitv1.PurgeDeadResponse, error) {
	op, err := readPurgeDead(in)
	if err != nil {
		return nil, err
	}
	pool, filter := op.Pool, op.Filter
	answer, res, err := do[*admission.DeadResult](ctx, s.store, op)
	if err != nil {
		return nil, err
	}
	if res.Err != nil {
		return nil, res.Err
	}
	next := cursorToken(purgeKind, pool, filter, res.Next)
	return &admitv1.PurgeDeadResponse{Purged: int32(res.Count), NextPageToken: next, Decided: writePlace(answer.Place)}, nil
}
