package raftstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func rowToStorage(row admission.Row) (*storagev1.Row, error) {
	switch r := row.(type) {
	case admission.PolicyRow:
		return &storagev1.Row{Kind: &storagev1.Row_Policy{Policy: policyToStorage(r.Policy)}}, nil
	case admission.PoolRow:
		return &storagev1.Row{Kind: &storagev1.Row_Pool{Pool: poolRowToStorage(r)}}, nil
	case admission.TenantRow:
		return &storagev1.Row{Kind: &storagev1.Row_Tenant{Tenant: &storagev1.TenantRow{
			Num: r.Num, Pool: r.Pool, Id: r.ID, Paused: r.Paused, IdleAt: int64(r.IdleAt),
			Buckets: bucketsToStorage(r.Buckets),
		}}}, nil
	case admission.DemandRow:
		return &storagev1.Row{Kind: &storagev1.Row_Demand{Demand: &storagev1.DemandRow{
			Tenant: r.Tenant, Lane: r.Lane, Tags: r.Tags[:], Rems: r.Rems[:], Weight: r.Weight,
			Seat: uint32(r.Seats[0].Seat), Seq: r.Seats[0].Seq, WakeAt: int64(r.Seats[0].WakeAt),
		}}}, nil
	case admission.RouteRow:
		return &storagev1.Row{Kind: &storagev1.Row_Route{Route: &storagev1.RouteRow{
			Tenant: r.Tenant, Lane: r.Lane, Route: r.Route, Turn: r.Turn,
			RipeFirst: int64(r.RipeFirst), RipeSeq: r.RipeSeq,
		}}}, nil
	case admission.EntryRow:
		return &storagev1.Row{Kind: &storagev1.Row_Entry{Entry: entryToStorage(&r)}}, nil
	case admission.PermitRow:
		return &storagev1.Row{Kind: &storagev1.Row_Permit{Permit: &storagev1.PermitRow{
			Token: tokenToStorage(r.Token), Fence: r.Fence, Tenant: r.Tenant, Lane: r.Lane,
			Expires: int64(r.Expires), Ttl: int64(r.TTL), Cost: r.Cost, BucketIds: r.BucketIDs,
			Cancelled: r.Cancelled, Entry: r.Entry, Worker: r.Worker,
		}}}, nil
	case admission.EndedRow:
		return &storagev1.Row{Kind: &storagev1.Row_Ended{Ended: &storagev1.EndedRow{
			Token: tokenToStorage(r.Token), Pool: r.Pool, Tenant: r.Tenant, At: int64(r.At), Seq: r.Seq,
		}}}, nil
	case admission.RequestRow:
		return &storagev1.Row{Kind: &storagev1.Row_Request{Request: requestToStorage(&r)}}, nil
	}
	return nil, fmt.Errorf("%T is no row that a snapshot can hold", row)
}

func rowFromStorage(m *storagev1.Row) (admission.Row, error) {
	switch k := m.Kind.(type) {
	case *storagev1.Row_Policy:
		return admission.PolicyRow{Policy: policyFromStorage(k.Policy)}, nil
	case *storagev1.Row_Pool:
		return poolRowFromStorage(k.Pool)
	case *storagev1.Row_Tenant:
		t := k.Tenant
		return admission.TenantRow{
			Num: t.Num, Pool: t.Pool, ID: t.Id, Paused: t.Paused, IdleAt: admission.Instant(t.IdleAt),
			Buckets: bucketsFromStorage(t.Buckets),
		}, nil
	case *storagev1.Row_Demand:
		d := k.Demand
		r := admission.DemandRow{Tenant: d.Tenant, Lane: d.Lane, Weight: d.Weight}
		r.Seats[0] = admission.SeatRow{Seat: uint8(d.Seat), Seq: d.Seq, WakeAt: admission.Instant(d.WakeAt)}
		if err := errors.Join(byClass(&r.Tags, d.Tags), byClass(&r.Rems, d.Rems)); err != nil {
			return nil, err
		}
		return r, nil
	case *storagev1.Row_Route:
		r := k.Route
		return admission.RouteRow{
			Tenant: r.Tenant, Lane: r.Lane, Route: r.Route, Turn: r.Turn,
			RipeFirst: admission.Wall(r.RipeFirst), RipeSeq: r.RipeSeq,
		}, nil
	case *storagev1.Row_Entry:
		return entryFromStorage(k.Entry), nil
	case *storagev1.Row_Permit:
		p := k.Permit
		return admission.PermitRow{
			Token: tokenFromStorage(p.Token), Fence: p.Fence, Tenant: p.Tenant, Lane: p.Lane,
			Expires: admission.Instant(p.Expires), TTL: time.Duration(p.Ttl), Cost: p.Cost, BucketIDs: p.BucketIds,
			Cancelled: p.Cancelled, Entry: p.Entry, Worker: p.Worker,
		}, nil
	case *storagev1.Row_Ended:
		e := k.Ended
		return admission.EndedRow{
			Token: tokenFromStorage(e.Token), Pool: e.Pool, Tenant: e.Tenant, At: admission.Instant(e.At), Seq: e.Seq,
		}, nil
	case *storagev1.Row_Request:
		return requestFromStorage(k.Request), nil
	}
	return nil, fmt.Errorf("%w: a row without a known kind", ErrUnknownFormat)
}
