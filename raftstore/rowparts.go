package raftstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func poolRowToStorage(r admission.PoolRow) *storagev1.PoolRow {
	m := &storagev1.PoolRow{
		Name: r.Name, Num: r.Num, BucketIds: r.BucketIDs, Buckets: bucketsToStorage(r.Buckets),
		Skipped: r.Skipped, Swept: r.Swept, Expired: r.Expired, NewTenants: bucketToStorage(r.NewTenants),
	}
	for _, c := range r.Fair {
		m.Fair = append(m.Fair, chargeToStorage(c))
	}
	for _, l := range r.Lanes {
		m.Lanes = append(m.Lanes, &storagev1.LaneRow{
			Name: l.Name, Paused: l.Paused, Yielding: l.Yielding, Floors: l.Floors[:], Tops: l.Tops[:], Shifts: l.Shifts[:],
		})
	}
	return m
}

func poolRowFromStorage(m *storagev1.PoolRow) (admission.Row, error) {
	r := admission.PoolRow{
		Name: m.Name, Num: m.Num, BucketIDs: m.BucketIds, Buckets: bucketsFromStorage(m.Buckets),
		Skipped: m.Skipped, Swept: m.Swept, Expired: m.Expired, NewTenants: bucketFromStorage(m.NewTenants),
	}
	for _, c := range m.Fair {
		r.Fair = append(r.Fair, chargeFromStorage(c))
	}
	for _, l := range m.Lanes {
		row := admission.LaneRow{Name: l.Name, Paused: l.Paused, Yielding: l.Yielding}
		if err := errors.Join(byClass(&row.Floors, l.Floors), byClass(&row.Tops, l.Tops), byClass(&row.Shifts, l.Shifts)); err != nil {
			return nil, err
		}
		r.Lanes = append(r.Lanes, row)
	}
	return r, nil
}

// byClass copies what a row has for each class.
func byClass(to *[2]int64, from []int64) error {
	if len(from) != len(to) {
		return fmt.Errorf("%w: a row with %d classes", ErrCorrupt, len(from))
	}
	copy(to[:], from)
	return nil
}

func seatsToStorage(rows []admission.SeatRow) []*storagev1.SeatRow {
	list := make([]*storagev1.SeatRow, len(rows))
	for i, r := range rows {
		list[i] = &storagev1.SeatRow{Seat: uint32(r.Seat), Key: r.Key, Seq: r.Seq, WakeAt: int64(r.WakeAt)}
	}
	return list
}

func seatsFromStorage(to []admission.SeatRow, from []*storagev1.SeatRow) error {
	if len(from) != len(to) {
		return fmt.Errorf("%w: a row with %d seats", ErrCorrupt, len(from))
	}
	for i, m := range from {
		to[i] = admission.SeatRow{Seat: uint8(m.Seat), Key: m.Key, Seq: m.Seq, WakeAt: admission.Instant(m.WakeAt)}
	}
	return nil
}

func bucketsToStorage(rows []admission.BucketRow) []*storagev1.BucketRow {
	var list []*storagev1.BucketRow
	for _, r := range rows {
		list = append(list, bucketToStorage(r))
	}
	return list
}

func bucketToStorage(r admission.BucketRow) *storagev1.BucketRow {
	return &storagev1.BucketRow{
		Charge: chargeToStorage(r.Charge), Used: r.Used, Rem: r.Rem, At: int64(r.At),
		PausedUntil: int64(r.PausedUntil), PausedByHand: r.PausedByHand, Throttles: r.Throttles,
	}
}

func bucketsFromStorage(list []*storagev1.BucketRow) []admission.BucketRow {
	var rows []admission.BucketRow
	for _, m := range list {
		rows = append(rows, bucketFromStorage(m))
	}
	return rows
}

func bucketFromStorage(m *storagev1.BucketRow) admission.BucketRow {
	return admission.BucketRow{
		Charge: chargeFromStorage(m.GetCharge()), Used: m.GetUsed(), Rem: m.GetRem(), At: admission.Instant(m.GetAt()),
		PausedUntil: admission.Instant(m.GetPausedUntil()), PausedByHand: m.GetPausedByHand(), Throttles: m.GetThrottles(),
	}
}

// chargeToStorage leaves out that of a bucket which tells no permits apart.
func chargeToStorage(c admission.ChargeRow) *storagev1.ChargeRow {
	if c.ID == 0 {
		return nil
	}
	return &storagev1.ChargeRow{Id: c.ID, Flips: c.Flips}
}

func chargeFromStorage(m *storagev1.ChargeRow) admission.ChargeRow {
	return admission.ChargeRow{ID: m.GetId(), Flips: m.GetFlips()}
}

func entryToStorage(r *admission.EntryRow) *storagev1.EntryRow {
	m := &storagev1.EntryRow{
		Tenant: r.Tenant, Key: r.Key, Lane: r.Lane, Route: r.Route, Category: r.Category, Group: r.Group,
		State: uint32(r.State), Delayed: r.Delayed, Relative: r.Relative,
		Given: r.Given, GivenAttempts: r.GivenAttempts, Due: int64(r.Due), First: int64(r.First), Seq: r.Seq,
		Attempts: r.Attempts, Unstarted: uint32(r.Unstarted), Retry: retryToStorage(r.Retry),
		ClaimIndex: r.ClaimIndex, ClaimPosition: r.ClaimPosition,
		History: historyToStorage(r.History), DiedAt: int64(r.DiedAt), BuriedAt: int64(r.BuriedAt),
		Redriven: r.Redriven, CameDue: int64(r.CameDue),
		Letter: r.Letter, Every: int64(r.Every), Behind: r.Behind, Resume: int64(r.Resume), Misses: r.Misses,
	}
	if r.Cadence.Name != "" {
		m.Cadence = cadenceToStorage(r.Cadence)
	}
	return m
}

func entryFromStorage(m *storagev1.EntryRow) admission.EntryRow {
	return admission.EntryRow{
		Tenant: m.Tenant, Key: m.Key, Lane: m.Lane, Route: m.Route, Category: m.Category, Group: m.Group,
		State: uint8(m.State), Delayed: m.Delayed, Relative: m.Relative,
		Given: m.Given, GivenAttempts: m.GivenAttempts, Due: admission.Wall(m.Due), First: admission.Wall(m.First),
		Seq: m.Seq, Attempts: m.Attempts, Unstarted: uint8(m.Unstarted), Retry: retryFromStorage(m.Retry),
		ClaimIndex: m.ClaimIndex, ClaimPosition: m.ClaimPosition,
		History: historyFromStorage(m.History), DiedAt: admission.Wall(m.DiedAt), BuriedAt: admission.Instant(m.BuriedAt),
		Redriven: m.Redriven, CameDue: admission.Wall(m.CameDue),
		Letter: m.Letter, Every: time.Duration(m.Every), Cadence: cadenceFromStorage(m.Cadence),
		Behind: m.Behind, Resume: admission.Wall(m.Resume), Misses: m.Misses,
	}
}

func permitToStorage(r *admission.PermitRow) *storagev1.PermitRow {
	return &storagev1.PermitRow{
		Token: tokenToStorage(r.Token), Fence: r.Fence, Tenant: r.Tenant, Lane: r.Lane,
		Granted: int64(r.Granted), Expires: int64(r.Expires), Ttl: int64(r.TTL), Cost: r.Cost, BucketIds: r.BucketIDs,
		Cancelled: r.Cancelled, Entry: r.Entry, Letter: r.Letter, Worker: r.Worker, Node: r.Node, Batch: r.Batch,
		LockKey: r.LockKey, DedupeKey: r.DedupeKey, Uncounted: r.Uncounted, Borrowed: r.Borrowed, Wanted: r.Wanted,
	}
}

func permitFromStorage(m *storagev1.PermitRow) admission.PermitRow {
	return admission.PermitRow{
		Token: tokenFromStorage(m.Token), Fence: m.Fence, Tenant: m.Tenant, Lane: m.Lane,
		Granted: admission.Instant(m.Granted), Expires: admission.Instant(m.Expires), TTL: time.Duration(m.Ttl),
		Cost: m.Cost, BucketIDs: m.BucketIds, Cancelled: m.Cancelled, Entry: m.Entry, Letter: m.Letter, Worker: m.Worker, Node: m.Node, Batch: m.Batch,
		LockKey: m.LockKey, DedupeKey: m.DedupeKey, Uncounted: m.Uncounted, Borrowed: m.Borrowed, Wanted: m.Wanted,
	}
}

func partToStorage(r *admission.PartRow) *storagev1.PartRow {
	return &storagev1.PartRow{
		Token: tokenToStorage(r.Token), Fence: r.Fence, Permit: r.Permit, Entry: r.Entry, Letter: r.Letter, Cancelled: r.Cancelled,
	}
}

func partFromStorage(m *storagev1.PartRow) admission.PartRow {
	return admission.PartRow{
		Token: tokenFromStorage(m.Token), Fence: m.Fence, Permit: m.Permit, Entry: m.Entry, Letter: m.Letter, Cancelled: m.Cancelled,
	}
}

func waiterToStorage(r *admission.WaiterRow) *storagev1.WaiterRow {
	return &storagev1.WaiterRow{
		Key: waiterKeyToStorage(r.Key), Seq: r.Seq, Tenant: r.Tenant, Lane: r.Lane, Cost: r.Cost, Ttl: int64(r.TTL),
		LockKey: r.LockKey, DedupeKey: r.DedupeKey, RequestId: r.RequestID, Digest: r.Digest,
		RateOnly: r.RateOnly, Settle: r.Settle, Worker: r.Worker, Nonce: r.Nonce,
		AskedAt: int64(r.AskedAt), Until: int64(r.Until), DetachedUntil: int64(r.DetachedUntil),
	}
}

func waiterFromStorage(m *storagev1.WaiterRow) admission.WaiterRow {
	return admission.WaiterRow{
		Key: waiterKeyFromStorage(m.Key), Seq: m.Seq, Tenant: m.Tenant, Lane: m.Lane, Cost: m.Cost,
		TTL: time.Duration(m.Ttl), LockKey: m.LockKey, DedupeKey: m.DedupeKey, RequestID: m.RequestId, Digest: m.Digest,
		RateOnly: m.RateOnly, Settle: m.Settle, Worker: m.Worker, Nonce: m.Nonce,
		AskedAt: admission.Wall(m.AskedAt), Until: admission.Instant(m.Until),
		DetachedUntil: admission.Instant(m.DetachedUntil),
	}
}

func requestToStorage(r *admission.RequestRow) *storagev1.RequestRow {
	return &storagev1.RequestRow{
		Pool: r.Pool, Tenant: r.Tenant, Id: r.ID, Digest: r.Digest, Tokens: tokensToStorage(r.Tokens),
		Fence: r.Fence, At: int64(r.At), Seq: r.Seq,
	}
}

func requestFromStorage(m *storagev1.RequestRow) admission.RequestRow {
	return admission.RequestRow{
		Pool: m.Pool, Tenant: m.Tenant, ID: m.Id, Digest: m.Digest, Tokens: tokensFromStorage(m.Tokens),
		Fence: m.Fence, At: admission.Instant(m.At), Seq: m.Seq,
	}
}

func retryToStorage(r admission.RetryPolicy) *storagev1.RetryPolicy {
	return &storagev1.RetryPolicy{MaxAttempts: r.MaxAttempts, Base: int64(r.Base), Max: int64(r.Max)}
}

func retryFromStorage(m *storagev1.RetryPolicy) admission.RetryPolicy {
	return admission.RetryPolicy{
		MaxAttempts: m.GetMaxAttempts(), Base: time.Duration(m.GetBase()), Max: time.Duration(m.GetMax()),
	}
}
