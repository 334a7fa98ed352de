package raftstore

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

// opsField is the number of Command.ops.
const opsField = 4

// stamp is what the proposer adds to the operations of an entry.
type stamp struct {
	proposal uint64
	t        admission.Instant
	w        admission.Wall
	// check is zero but now and then.
	check check
}

// encodeCommand returns an entry's bytes. Each op is given as appendOp wrote
// it: whoever asks has encoded it already, so the proposer, of which there is
// only one, need but copy.
func encodeCommand(s stamp, ops [][]byte, opBytes int) ([]byte, error) {
	const perOp, head = 1 + 3, envelopeSize + 9 + 2*11 + 22
	b := make([]byte, envelopeSize, head+opBytes+perOp*len(ops))
	b, err := proto.MarshalOptions{}.MarshalAppend(b, &storagev1.Command{
		Proposal: s.proposal, T: int64(s.t), W: int64(s.w), Check: checkToStorage(s.check),
	})
	if err != nil {
		return nil, fmt.Errorf("encode a command's stamp: %w", err)
	}
	for _, op := range ops {
		b = protowire.AppendTag(b, opsField, protowire.BytesType)
		b = protowire.AppendBytes(b, op)
	}
	sealEnvelope(b)
	return b, nil
}

// decodeCommand is the reverse of encodeCommand. The entry keeps nothing of b.
func decodeCommand(index uint64, b []byte) (admission.Entry, stamp, error) {
	payload, err := openEnvelope(b)
	if err != nil {
		return admission.Entry{}, stamp{}, err
	}
	var c storagev1.Command
	if err := proto.Unmarshal(payload, &c); err != nil {
		return admission.Entry{}, stamp{}, fmt.Errorf("%w: decode a command: %w", ErrCorrupt, err)
	}
	if len(c.ProtoReflect().GetUnknown()) > 0 {
		return admission.Entry{}, stamp{}, fmt.Errorf("%w: a command has unknown fields", ErrUnknownFormat)
	}
	e := admission.Entry{
		Index: index,
		T:     admission.Instant(c.T),
		W:     admission.Wall(c.W),
		Ops:   make([]admission.Op, len(c.Ops)),
	}
	for i, op := range c.Ops {
		if e.Ops[i], err = opFromStorage(op); err != nil {
			return admission.Entry{}, stamp{}, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return e, stamp{c.Proposal, e.T, e.W, checkFromStorage(c.Check)}, known(c.Check)
}

func checkToStorage(c check) *storagev1.Check {
	if c == (check{}) {
		return nil
	}
	return &storagev1.Check{Index: c.index, Digest: c.digest}
}

func checkFromStorage(m *storagev1.Check) check { return check{m.GetIndex(), m.GetDigest()} }

// appendOp appends op as the log holds it.
func appendOp(b []byte, op admission.Op) ([]byte, error) {
	m, err := opToStorage(op)
	if err != nil {
		return nil, err
	}
	b, err = proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", op, err)
	}
	return b, nil
}

func opToStorage(op admission.Op) (*storagev1.Op, error) {
	switch op := op.(type) {
	case *admission.Acquire:
		return &storagev1.Op{Kind: &storagev1.Op_Acquire{Acquire: acquireToStorage(op)}}, nil
	case *admission.Release:
		return &storagev1.Op{Kind: &storagev1.Op_Release{Release: releaseToStorage(op)}}, nil
	case *admission.Take:
		return &storagev1.Op{Kind: &storagev1.Op_Take{Take: takeToStorage(op)}}, nil
	case *admission.LeaseShare:
		return &storagev1.Op{Kind: &storagev1.Op_LeaseShare{LeaseShare: leaseShareToStorage(op)}}, nil
	case *admission.Renew:
		return &storagev1.Op{Kind: &storagev1.Op_Renew{Renew: renewToStorage(op)}}, nil
	case *admission.NextDue:
		return &storagev1.Op{Kind: &storagev1.Op_NextDue{NextDue: nextDueToStorage(op)}}, nil
	case *admission.Schedule:
		return &storagev1.Op{Kind: &storagev1.Op_Schedule{Schedule: scheduleToStorage(op)}}, nil
	case admission.Unschedule:
		return &storagev1.Op{Kind: &storagev1.Op_Unschedule{Unschedule: &storagev1.Unschedule{
			Pool: op.Pool, Tenant: op.Tenant, Key: op.Key,
		}}}, nil
	case *admission.Redrive:
		return &storagev1.Op{Kind: &storagev1.Op_Redrive{Redrive: redriveToStorage(op)}}, nil
	case *admission.PurgeDead:
		return &storagev1.Op{Kind: &storagev1.Op_PurgeDead{PurgeDead: purgeToStorage(op)}}, nil
	case admission.Detach:
		return &storagev1.Op{Kind: &storagev1.Op_Detach{Detach: &storagev1.Detach{
			Waiter: waiterKeyToStorage(op.Waiter),
		}}}, nil
	case *admission.ReportDemand:
		return &storagev1.Op{Kind: &storagev1.Op_ReportDemand{ReportDemand: reportToStorage(op)}}, nil
	case admission.TermStart:
		return &storagev1.Op{Kind: &storagev1.Op_TermStart{TermStart: &storagev1.TermStart{Gap: int64(op.Gap)}}}, nil
	case admission.ApplyPolicy:
		return &storagev1.Op{Kind: &storagev1.Op_ApplyPolicy{ApplyPolicy: &storagev1.ApplyPolicy{
			Policy: policyToStorage(op.Policy), ExpectedRevision: op.ExpectedRevision, Drain: op.Drain,
		}}}, nil
	case *admission.PutTenants:
		return &storagev1.Op{Kind: &storagev1.Op_PutTenants{PutTenants: putTenantsToStorage(op)}}, nil
	case admission.Pause:
		return &storagev1.Op{Kind: &storagev1.Op_Pause{Pause: &storagev1.Pause{
			Pool: op.Pool, Kind: uint32(op.Kind), Name: op.Name, Tenant: op.Tenant, Resume: op.Resume,
		}}}, nil
	}
	return nil, fmt.Errorf("%T is no operation that the log can hold", op)
}

func opFromStorage(m *storagev1.Op) (admission.Op, error) {
	if len(m.ProtoReflect().GetUnknown()) > 0 {
		return nil, fmt.Errorf("%w: an unknown operation", ErrUnknownFormat)
	}
	switch k := m.Kind.(type) {
	case *storagev1.Op_Acquire:
		return acquireFromStorage(k.Acquire), known(k.Acquire)
	case *storagev1.Op_Release:
		return releaseFromStorage(k.Release), known(k.Release)
	case *storagev1.Op_Take:
		return takeFromStorage(k.Take)
	case *storagev1.Op_LeaseShare:
		return leaseShareFromStorage(k.LeaseShare), known(k.LeaseShare)
	case *storagev1.Op_Renew:
		return renewFromStorage(k.Renew), known(k.Renew)
	case *storagev1.Op_NextDue:
		return nextDueFromStorage(k.NextDue), known(k.NextDue)
	case *storagev1.Op_Schedule:
		return scheduleFromStorage(k.Schedule)
	case *storagev1.Op_Unschedule:
		u := k.Unschedule
		return admission.Unschedule{Pool: u.Pool, Tenant: u.Tenant, Key: u.Key}, known(u)
	case *storagev1.Op_Redrive:
		return redriveFromStorage(k.Redrive)
	case *storagev1.Op_PurgeDead:
		return purgeFromStorage(k.PurgeDead)
	case *storagev1.Op_Detach:
		d := k.Detach
		return admission.Detach{Waiter: waiterKeyFromStorage(d.GetWaiter())}, known(d)
	case *storagev1.Op_ReportDemand:
		return reportFromStorage(k.ReportDemand), known(k.ReportDemand)
	case *storagev1.Op_TermStart:
		return admission.TermStart{Gap: time.Duration(k.TermStart.Gap)}, known(k.TermStart)
	case *storagev1.Op_ApplyPolicy:
		return admission.ApplyPolicy{
			Policy: policyFromStorage(k.ApplyPolicy.Policy), ExpectedRevision: k.ApplyPolicy.ExpectedRevision,
			Drain: k.ApplyPolicy.Drain,
		}, known(k.ApplyPolicy)
	case *storagev1.Op_PutTenants:
		return putTenantsFromStorage(k.PutTenants)
	case *storagev1.Op_Pause:
		p := k.Pause
		return admission.Pause{
			Pool: p.Pool, Kind: admission.TargetKind(p.Kind), Name: p.Name, Tenant: p.Tenant, Resume: p.Resume,
		}, known(p)
	}
	return nil, fmt.Errorf("%w: an operation without a kind", ErrUnknownFormat)
}

// known refuses a message with fields that this version would silently ignore.
func known(m proto.Message) error {
	r := m.ProtoReflect()
	if len(r.GetUnknown()) > 0 {
		return fmt.Errorf("%w: %s has unknown fields", ErrUnknownFormat, r.Descriptor().Name())
	}
	return nil
}
