package server

import (
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var reasons = map[admission.Reason]admitv1.Reason{
	admission.NeverGrantable: admitv1.Reason_REASON_NEVER_GRANTABLE,
	admission.Duplicate:      admitv1.Reason_REASON_DUPLICATE,
	admission.Paused:         admitv1.Reason_REASON_PAUSED,
	admission.Blocked:        admitv1.Reason_REASON_BLOCKED,
	admission.Exhausted:      admitv1.Reason_REASON_EXHAUSTED,
	admission.QueueFull:      admitv1.Reason_REASON_QUEUE_FULL,
	admission.Cardinality:    admitv1.Reason_REASON_CARDINALITY,
	admission.BatchOnly:      admitv1.Reason_REASON_BATCH_ONLY,
	admission.TenantCap:      admitv1.Reason_REASON_TENANT_CAP,
	admission.LaneCap:        admitv1.Reason_REASON_LANE_CAP,
	admission.NodeCap:        admitv1.Reason_REASON_NODE_CAP,
	admission.LockBusy:       admitv1.Reason_REASON_LOCK_BUSY,
	admission.TenantRate:     admitv1.Reason_REASON_TENANT_RATE,
	admission.LaneYield:      admitv1.Reason_REASON_LANE_YIELD,
	admission.ProviderPaused: admitv1.Reason_REASON_PROVIDER_PAUSED,
	admission.PoolCap:        admitv1.Reason_REASON_POOL_CAP,
	admission.PoolRate:       admitv1.Reason_REASON_POOL_RATE,
	admission.ReclaimWait:    admitv1.Reason_REASON_RECLAIM_WAIT,
	admission.CycleCap:       admitv1.Reason_REASON_CYCLE_CAP,
	admission.BatchFull:      admitv1.Reason_REASON_BATCH_FULL,
}

// written is a shedding, and what was written of it.
type written struct {
	of *admission.Shedding
	as *admitv1.Shedding
}

// lastShown is what was shown last. The answers of a log entry show the same shedding,
// most of them, and are written one after the other.
var lastShown atomic.Pointer[written]

// showShedding writes what an answer shows. Others may show it too: it must not be
// changed.
func showShedding(s *admission.Shedding) *admitv1.Shedding {
	if last := lastShown.Load(); last != nil && last.of == s {
		return last.as
	}
	out := writeShedding(s)
	lastShown.Store(&written{s, out})
	return out
}

func writeShedding(s *admission.Shedding) *admitv1.Shedding {
	if s == nil {
		return nil
	}
	out := &admitv1.Shedding{
		ClusterTime:    durationpb.New(time.Duration(s.At)),
		LogIndex:       s.Index,
		PolicyRevision: s.Revision,
		Totals:         writeTotals(s.Totals),
		More:           s.More,
	}
	for _, l := range s.Lanes {
		out.Lanes = append(out.Lanes, &admitv1.LaneState{
			Lane: l.Lane, Depth: l.Depth, OldestAge: oldestAge(l), Yielding: l.Yielding,
		})
	}
	for _, h := range s.Held {
		out.Held = append(out.Held, writeHeld(h))
	}
	return out
}

func writeHeld(h admission.HeldTenant) *admitv1.HeldTenant {
	return &admitv1.HeldTenant{
		Tenant:     h.Tenant,
		Lane:       h.Lane,
		Reason:     reasons[h.Reason],
		Due:        h.Due,
		Waiting:    h.Waiting,
		OldestAge:  durationpb.New(h.OldestAge),
		RetryAfter: given(h.RetryAfter),
	}
}

// oldestAge is absent from a lane without depth.
func oldestAge(l admission.LaneState) *durationpb.Duration {
	if l.Depth == 0 {
		return nil
	}
	return durationpb.New(l.OldestAge)
}

func writeTotals(totals []admission.HeldTotal) []*admitv1.HeldTotal {
	out := make([]*admitv1.HeldTotal, 0, len(totals))
	for _, t := range totals {
		out = append(out, &admitv1.HeldTotal{Reason: reasons[t.Reason], Tenants: t.Tenants})
	}
	return out
}
