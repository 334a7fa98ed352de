package raftstore

import (
	"errors"
	"fmt"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func rowToStorage(row admission.Row) (*storagev1.Row, error) {
	switch r := row.(type) {
	case admission.PolicyRow:
		return &storagev1.Row{Kind: &storagev1.Row_Policy{Policy: &storagev1.PolicyRow{
			Policy: policyToStorage(r.Policy), Draining: policyToStorage(r.Draining),
		}}}, nil
	case admission.RevisionRow:
		return &storagev1.Row{Kind: &storagev1.Row_Revision{Revision: &storagev1.RevisionRow{
			Revision: r.Revision, AppliedAt: int64(r.AppliedAt), Policy: policyToStorage(r.Policy),
		}}}, nil
	case admission.PutRow:
		return &storagev1.Row{Kind: &storagev1.Row_Put{Put: &storagev1.PutRow{
			Pool: r.Pool, Tenant: tenantToStorage(&r.Tenant),
		}}}, nil
	case admission.PoolRow:
		return &storagev1.Row{Kind: &storagev1.Row_Pool{Pool: poolRowToStorage(r)}}, nil
	case admission.TenantRow:
		return &storagev1.Row{Kind: &storagev1.Row_Tenant{Tenant: &storagev1.TenantRow{
			Num: r.Num, Pool: r.Pool, Id: r.ID, Paused: r.Paused, IdleAt: int64(r.IdleAt), Spare: r.Spare,
			Buckets: bucketsToStorage(r.Buckets),
		}}}, nil
	case admission.DemandRow:
		return &storagev1.Row{Kind: &storagev1.Row_Demand{Demand: &storagev1.DemandRow{
			Tenant: r.Tenant, Lane: r.Lane, Tags: r.Tags[:], Rems: r.Rems[:], Weight: r.Weight,
			Seats: seatsToStorage(r.Seats[:]), Backlog: r.Backlog, Reported: int64(r.Reported), Lingers: int64(r.Lingers),
		}}}, nil
	case admission.PausedGroupRow:
		return &storagev1.Row{Kind: &storagev1.Row_PausedGroup{PausedGroup: &storagev1.PausedGroupRow{
			Tenant: r.Tenant, Group: r.Group,
		}}}, nil
	case admission.QueueRow:
		return &storagev1.Row{Kind: &storagev1.Row_Queue{Queue: &storagev1.QueueRow{
			Tenant: r.Tenant, Lane: r.Lane, Route: r.Route, Group: r.Group, Turn: r.Turn,
			RipeFirst: int64(r.RipeFirst), RipeSeq: r.RipeSeq,
		}}}, nil
	case admission.EntryRow:
		return &storagev1.Row{Kind: &storagev1.Row_Entry{Entry: entryToStorage(&r)}}, nil
	case admission.PermitRow:
		return &storagev1.Row{Kind: &storagev1.Row_Permit{Permit: permitToStorage(&r)}}, nil
	case admission.PartRow:
		return &storagev1.Row{Kind: &storagev1.Row_Part{Part: partToStorage(&r)}}, nil
	case admission.EndedRow:
		return &storagev1.Row{Kind: &storagev1.Row_Ended{Ended: &storagev1.EndedRow{
			Token: tokenToStorage(r.Token), Pool: r.Pool, Tenant: r.Tenant, At: int64(r.At), Seq: r.Seq,
		}}}, nil
	case admission.RequestRow:
		return &storagev1.Row{Kind: &storagev1.Row_Request{Request: requestToStorage(&r)}}, nil
	case admission.WaiterRow:
		return &storagev1.Row{Kind: &storagev1.Row_Waiter{Waiter: waiterToStorage(&r)}}, nil
	case admission.DoneRow:
		return &storagev1.Row{Kind: &storagev1.Row_Done{Done: &storagev1.DoneRow{
			Pool: r.Pool, Tenant: r.Tenant, Key: r.Key, At: int64(r.At), Seq: r.Seq,
		}}}, nil
	}
	return nil, fmt.Errorf("%T is no row that a snapshot can hold", row)
}

func rowFromStorage(m *storagev1.Row) (admission.Row, error) {
	switch k := m.Kind.(type) {
	case *storagev1.Row_Policy:
		return admission.PolicyRow{
			Policy: policyFromStorage(k.Policy.Policy), Draining: policyFromStorage(k.Policy.Draining),
		}, nil
	case *storagev1.Row_Revision:
		return admission.RevisionRow{
			Revision: k.Revision.Revision, AppliedAt: admission.Wall(k.Revision.AppliedAt), Policy: policyFromStorage(k.Revision.Policy),
		}, nil
	case *storagev1.Row_Put:
		return admission.PutRow{Pool: k.Put.Pool, Tenant: tenantFromStorage(k.Put.Tenant)}, nil
	case *storagev1.Row_Pool:
		return poolRowFromStorage(k.Pool)
	case *storagev1.Row_Tenant:
		t := k.Tenant
		return admission.TenantRow{
			Num: t.Num, Pool: t.Pool, ID: t.Id, Paused: t.Paused, IdleAt: admission.Instant(t.IdleAt), Spare: t.Spare,
			Buckets: bucketsFromStorage(t.Buckets),
		}, nil
	case *storagev1.Row_Demand:
		d := k.Demand
		r := admission.DemandRow{
			Tenant: d.Tenant, Lane: d.Lane, Weight: d.Weight, Backlog: d.Backlog, Reported: admission.Instant(d.Reported),
			Lingers: admission.Wall(d.Lingers),
		}
		if err := errors.Join(byClass(&r.Tags, d.Tags), byClass(&r.Rems, d.Rems), seatsFromStorage(r.Seats[:], d.Seats)); err != nil {
			return nil, err
		}
		return r, nil
	case *storagev1.Row_PausedGroup:
		return admission.PausedGroupRow{Tenant: k.PausedGroup.Tenant, Group: k.PausedGroup.Group}, nil
	case *storagev1.Row_Queue:
		r := k.Queue
		return admission.QueueRow{
			Tenant: r.Tenant, Lane: r.Lane, Route: r.Route, Group: r.Group, Turn: r.Turn,
			RipeFirst: admission.Wall(r.RipeFirst), RipeSeq: r.RipeSeq,
		}, nil
	case *storagev1.Row_Entry:
		return entryFromStorage(k.Entry), nil
	case *storagev1.Row_Permit:
		return permitFromStorage(k.Permit), nil
	case *storagev1.Row_Part:
		return partFromStorage(k.Part), nil
	case *storagev1.Row_Ended:
		e := k.Ended
		return admission.EndedRow{
			Token: tokenFromStorage(e.Token), Pool: e.Pool, Tenant: e.Tenant, At: admission.Instant(e.At), Seq: e.Seq,
		}, nil
	case *storagev1.Row_Request:
		return requestFromStorage(k.Request), nil
	case *storagev1.Row_Waiter:
		return waiterFromStorage(k.Waiter), nil
	case *storagev1.Row_Done:
		d := k.Done
		return admission.DoneRow{
			Pool: d.Pool, Tenant: d.Tenant, Key: d.Key, At: admission.Instant(d.At), Seq: d.Seq,
		}, nil
	}
	return nil, fmt.Errorf("%w: a row without a known kind", ErrUnknownFormat)
}
