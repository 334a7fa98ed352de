package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// sheddingChunk is how many rows go into one answer of GetShedding.
const sheddingChunk = 1000

// begin takes a place among the pictures that are read at a time, or refuses. The
// caller calls done.
func (s *statusService) begin() (done func(), err error) {
	select {
	case s.pictures <- struct{}{}:
		return func() { <-s.pictures }, nil
	default:
		return nil, &raftstore.OverloadedError{Queue: "pictures", RetryAfter: retryLater}
	}
}

// picture takes a picture of a pool, or refuses while too many are read. The caller
// calls done.
func (s *statusService) picture(ctx context.Context, stale bool, pool string) (p *admission.Picture, old age, done func(), err error) {
	if done, err = s.begin(); err != nil {
		return nil, nil, nil, err
	}
	if p, old, err = s.reads.picture(ctx, stale, pool); err != nil {
		done()
		return nil, nil, nil, err
	}
	return p, old, done, nil
}

func (s *statusService) GetShedding(in *admitv1.GetSheddingRequest, stream grpc.ServerStreamingServer[admitv1.GetSheddingResponse]) error {
	q, err := readGetShedding(in)
	if err != nil {
		return err
	}
	p, old, done, err := s.picture(stream.Context(), in.GetStale(), q.pool)
	if err != nil {
		return err
	}
	defer done()
	out := &admitv1.GetSheddingResponse{Shedding: writeShedding(&p.Shedding), Age: old}
	for row := range p.All(q.filter) {
		if len(out.Shedding.Held) == sheddingChunk {
			out.Shedding.More = true
			if err := stream.Send(out); err != nil {
				return err
			}
			out = &admitv1.GetSheddingResponse{Shedding: &admitv1.Shedding{}}
		}
		out.Shedding.Held = append(out.Shedding.Held, writeHeld(row))
	}
	return stream.Send(out)
}

func (s *statusService) TopShed(ctx context.Context, in *admitv1.TopShedRequest) (*admitv1.TopShedResponse, error) {
	q, n, err := readTopShed(in)
	if err != nil {
		return nil, err
	}
	p, old, done, err := s.picture(ctx, in.GetStale(), q.pool)
	if err != nil {
		return nil, err
	}
	defer done()
	out := &admitv1.TopShedResponse{ClusterTime: durationpb.New(time.Duration(p.At)), LogIndex: p.Index, Age: old}
	for _, t := range p.Top(n, q.filter) {
		row := &admitv1.TopTenant{Tenant: t.Tenant, Total: t.Due + t.Waiting}
		for _, h := range t.Held {
			row.Held = append(row.Held, writeHeld(h))
		}
		out.Tenants = append(out.Tenants, row)
	}
	return out, nil
}

func (s *statusService) WatchShedding(in *admitv1.WatchSheddingRequest, stream grpc.ServerStreamingServer[admitv1.WatchSheddingResponse]) error {
	q, interval, err := readWatchShedding(in)
	if err != nil {
		return err
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var told *admitv1.Shedding
	for {
		now, old, err := s.shedding(stream.Context(), in.GetStale(), q)
		if err != nil {
			return err
		}
		if news := timeless(now); told == nil || !proto.Equal(news, told) {
			told = news
			if err := stream.Send(&admitv1.WatchSheddingResponse{Shedding: now, Age: old}); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// shedding returns a pool's shedding as it is now.
func (s *statusService) shedding(ctx context.Context, stale bool, q admission.SheddingQuery) (now *admitv1.Shedding, old age, err error) {
	old, err = s.reads.view(ctx, stale, func(st *admission.State, at admission.Instant, w admission.Wall) {
		if !st.HasPool(q.Pool) {
			return
		}
		shedding := st.Shedding(at, w, q)
		now = writeShedding(&shedding)
	})
	if err == nil && now == nil {
		err = unknownPool(q.Pool)
	}
	return now, old, err
}

// timeless is the shedding without what changes as time goes by.
func timeless(s *admitv1.Shedding) *admitv1.Shedding {
	s = proto.CloneOf(s)
	s.ClusterTime, s.LogIndex = nil, 0
	for _, l := range s.Lanes {
		l.OldestAge = nil
	}
	for _, h := range s.Held {
		h.OldestAge, h.RetryAfter = nil, nil
	}
	return s
}
