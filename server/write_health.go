package server

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// picture is what QueueHealth shows, taken at one moment.
type picture struct {
	at       admission.Instant
	index    uint64
	revision int64
	pools    []admission.PoolHealth
}

func writeQueueHealth(p picture) *admitv1.QueueHealthResponse {
	out := &admitv1.QueueHealthResponse{
		ClusterTime:    durationpb.New(time.Duration(p.at)),
		LogIndex:       p.index,
		PolicyRevision: p.revision,
	}
	for _, h := range p.pools {
		out.Pools = append(out.Pools, writePoolHealth(h))
	}
	return out
}

func writePoolHealth(h admission.PoolHealth) *admitv1.PoolHealth {
	out := &admitv1.PoolHealth{
		Pool:    h.Pool,
		Active:  h.Active,
		Tenants: h.Tenants,
		Entries: h.Entries,
		Dead:    h.Dead,
		Skipped: h.Skipped,
		Swept:   h.Swept,
		Waiting: h.Waiting,
		Held:    writeTotals(h.Held),
	}
	if h.MaxActive > 0 {
		out.MaxActive = &h.MaxActive
	}
	for _, l := range h.Lanes {
		out.Lanes = append(out.Lanes, &admitv1.LaneHealth{
			Lane: l.Lane, Depth: l.Depth, OldestAge: oldestAge(l.LaneState), Active: l.Active, Paused: l.Paused,
			Yielding: l.Yielding, Waiting: l.Waiting,
		})
	}
	for _, b := range h.Buckets {
		out.Buckets = append(out.Buckets, &admitv1.BucketHealth{
			Bucket: b.Bucket, Level: b.Level, Capacity: b.Capacity, Paused: b.Paused, PausedFor: given(b.PausedFor),
		})
	}
	return out
}
