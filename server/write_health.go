package server

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// picture is what QueueHealth shows, taken at one moment.
type picture struct {
	at       admission.Instant
	index    uint64
	age      age
	revision int64
	pools    []admission.PoolHealth
	// limits are those of each pool.
	limits map[string][]admission.LimitUse
}

func writeQueueHealth(p picture) *admitv1.QueueHealthResponse {
	out := &admitv1.QueueHealthResponse{
		ClusterTime:    durationpb.New(time.Duration(p.at)),
		LogIndex:       p.index,
		PolicyRevision: p.revision,
		Age:            p.age,
	}
	for _, h := range p.pools {
		out.Pools = append(out.Pools, writePoolHealth(h, p.limits[h.Pool]))
	}
	return out
}

func writePoolHealth(h admission.PoolHealth, limits []admission.LimitUse) *admitv1.PoolHealth {
	out := &admitv1.PoolHealth{
		Pool:     h.Pool,
		Active:   h.Active,
		Tenants:  h.Tenants,
		Entries:  h.Entries,
		Dead:     h.Dead,
		Skipped:  h.Skipped,
		Swept:    h.Swept,
		Waiting:  h.Waiting,
		Expired:  h.Expired,
		Debt:     h.Debt,
		Held:     writeTotals(h.Held),
		Draining: h.Draining,

		TenantDebt: h.TenantDebt,
	}
	if h.MaxActive > 0 {
		out.MaxActive = &h.MaxActive
	}
	for _, l := range h.Lanes {
		out.Lanes = append(out.Lanes, &admitv1.LaneHealth{
			Lane: l.Lane, Depth: l.Depth, OldestAge: oldestAge(l.LaneState), Active: l.Active, Paused: l.Paused,
			Yielding: l.Yielding, Waiting: l.Waiting, Borrowed: l.Borrowed, ReclaimWait: l.ReclaimWait,
			ReclaimAge: reclaimAge(l), Draining: l.Draining,
		})
	}
	for _, b := range h.Buckets {
		out.Buckets = append(out.Buckets, writeBucketHealth(b))
	}
	for _, l := range limits {
		out.Limits = append(out.Limits, &admitv1.LimitHealth{Limit: l.Limit, Used: l.Used, Capacity: l.Capacity})
	}
	return out
}

func reclaimAge(l admission.LaneHealth) *durationpb.Duration {
	if l.ReclaimWait == 0 {
		return nil
	}
	return durationpb.New(l.ReclaimAge)
}

func writeBucketHealth(b admission.BucketHealth) *admitv1.BucketHealth {
	return &admitv1.BucketHealth{
		Bucket: b.Bucket, Level: b.Level, Capacity: b.Capacity, Lent: b.Lent, Paused: b.Paused, PausedFor: given(b.PausedFor),
	}
}

func writeTenant(t admission.TenantStatus) *admitv1.TenantStatus {
	out := &admitv1.TenantStatus{
		Share: policy.TenantToProto(t.Share), Source: shareSources[t.Source], Paused: t.Paused,
		Active: t.Active, Debt: t.Debt, Entries: t.Entries, Unknown: t.Unknown,
	}
	for _, b := range t.Buckets {
		out.Buckets = append(out.Buckets, writeBucketHealth(b))
	}
	return out
}

var shareSources = map[admission.ShareSource]admitv1.TenantStatus_Source{
	admission.FromDefault: admitv1.TenantStatus_SOURCE_DEFAULT,
	admission.FromPolicy:  admitv1.TenantStatus_SOURCE_POLICY,
	admission.FromPut:     admitv1.TenantStatus_SOURCE_PUT,
}

// writeTenants makes a page of up to size rows; one more row says that there is
// another page.
func writeTenants(index uint64, l tenantListing, rows []admission.TenantStatus) *admitv1.ListTenantsResponse {
	out := &admitv1.ListTenantsResponse{LogIndex: index}
	if len(rows) > l.size {
		rows = rows[:l.size]
		out.NextPageToken = tenantToken(l.pool, rows[l.size-1].Share.ID)
	}
	for _, t := range rows {
		out.Tenants = append(out.Tenants, writeTenant(t))
	}
	return out
}
