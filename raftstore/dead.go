package raftstore

import (
	"errors"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func redriveToStorage(r *admission.Redrive) *storagev1.Redrive {
	return &storagev1.Redrive{
		Pool: r.Pool, Filter: filterToStorage(r.Filter), Limit: int64(r.Limit), PerSecond: r.PerSecond,
		From: cursorToStorage(r.From),
	}
}

func redriveFromStorage(m *storagev1.Redrive) (*admission.Redrive, error) {
	return &admission.Redrive{
		Pool: m.GetPool(), Filter: filterFromStorage(m.GetFilter()), Limit: int(m.GetLimit()), PerSecond: m.GetPerSecond(),
		From: cursorFromStorage(m.GetFrom()),
	}, errors.Join(known(m), known(m.GetFilter()), known(m.GetFrom()))
}

func purgeToStorage(p *admission.PurgeDead) *storagev1.PurgeDead {
	return &storagev1.PurgeDead{
		Pool: p.Pool, Filter: filterToStorage(p.Filter), Limit: int64(p.Limit), From: cursorToStorage(p.From),
	}
}

func purgeFromStorage(m *storagev1.PurgeDead) (*admission.PurgeDead, error) {
	return &admission.PurgeDead{
		Pool: m.GetPool(), Filter: filterFromStorage(m.GetFilter()), Limit: int(m.GetLimit()),
		From: cursorFromStorage(m.GetFrom()),
	}, errors.Join(known(m), known(m.GetFilter()), known(m.GetFrom()))
}

func filterToStorage(f admission.DeadFilter) *storagev1.DeadFilter {
	return &storagev1.DeadFilter{
		Tenant: f.Tenant, Lane: f.Lane, KeyPrefix: f.KeyPrefix, Outcome: uint32(f.Outcome),
	}
}

func filterFromStorage(m *storagev1.DeadFilter) admission.DeadFilter {
	return admission.DeadFilter{
		Tenant: m.GetTenant(), Lane: m.GetLane(), KeyPrefix: m.GetKeyPrefix(), Outcome: admission.Outcome(m.GetOutcome()),
	}
}

func cursorToStorage(c admission.DeadCursor) *storagev1.DeadCursor {
	return &storagev1.DeadCursor{After: c.After, Until: c.Until, Due: int64(c.Due)}
}

func cursorFromStorage(m *storagev1.DeadCursor) admission.DeadCursor {
	return admission.DeadCursor{After: m.GetAfter(), Until: m.GetUntil(), Due: admission.Wall(m.GetDue())}
}

func historyToStorage(attempts []admission.Attempt) []*storagev1.Attempt {
	var list []*storagev1.Attempt
	for _, a := range attempts {
		list = append(list, &storagev1.Attempt{
			Number: a.Number, Outcome: uint32(a.Outcome), EndedAt: int64(a.EndedAt), Worker: a.WorkerID,
		})
	}
	return list
}

func historyFromStorage(list []*storagev1.Attempt) []admission.Attempt {
	var attempts []admission.Attempt
	for _, m := range list {
		attempts = append(attempts, admission.Attempt{
			Number: m.Number, Outcome: admission.Outcome(m.Outcome), EndedAt: admission.Wall(m.EndedAt), WorkerID: m.Worker,
		})
	}
	return attempts
}
