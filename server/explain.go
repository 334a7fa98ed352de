package server

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (s *statusService) Explain(ctx context.Context, in *admitv1.ExplainRequest) (*admitv1.ExplainResponse, error) {
	q, err := readExplain(in)
	if err != nil {
		return nil, err
	}
	var (
		e      *admission.Explanation
		failed *admission.Error
	)
	old, err := s.reads.view(ctx, in.GetStale(), func(st *admission.State, at admission.Instant, w admission.Wall) {
		e, failed = st.Explain(at, w, q)
	})
	if err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	return &admitv1.ExplainResponse{Explanation: writeExplanation(e), Age: old}, nil
}

func writeExplanation(e *admission.Explanation) *admitv1.Explanation {
	out := &admitv1.Explanation{
		ClusterTime:    durationpb.New(time.Duration(e.At)),
		LogIndex:       e.Index,
		PolicyRevision: e.Revision,
		Pool:           e.Pool,
		Tenant:         e.Tenant,
		Lane:           e.Lane,
	}
	if e.Shed != nil {
		out.Shed = writeShed(e.Shed)
	}
	for _, l := range e.Limits {
		out.Limits = append(out.Limits, &admitv1.ConsultedLimit{Limit: writeLimit(l.Limit), Reason: reasons[l.Reason]})
	}
	if e.Pool != "" && e.Lane != "" {
		out.Share = writeShare(&e.Share)
	}
	if e.Permit == nil && (e.Entry == nil || !e.Entry.Dead) {
		out.Line = writeLine(&e.Line)
	}
	if r := e.Reserved; r != nil {
		out.Reservation = &admitv1.TokenReservation{
			Tenant: r.Tenant, Lane: r.Lane, Cost: r.Cost, TokensIn: given(r.TokensIn), Before: r.Before,
		}
	}
	if e.Entry != nil {
		out.Entry = writeEntryStanding(e.Entry)
	}
	if p := e.Permit; p != nil {
		out.Permit = &admitv1.PermitStanding{
			Permit: writePermit(p.Permit), Entry: p.Entry, WorkerId: p.Worker, Cost: p.Cost,
			Borrowed: p.Borrowed, Uncounted: p.Uncounted,
		}
	}
	return out
}

func writeShare(s *admission.ShareState) *admitv1.TenantShare {
	out := &admitv1.TenantShare{
		Entitled: s.Entitled, Weight: s.Weight, PreferredActive: s.Preferred,
		Counted: s.Counted, Active: s.Active, Paused: s.Paused,
	}
	if s.MaxActive > 0 {
		out.MaxActive = &s.MaxActive
	}
	return out
}

func writeLine(l *admission.LineState) *admitv1.LinePosition {
	out := &admitv1.LinePosition{Tag: l.Tag, Floor: l.Floor, Own: l.Own, Waiting: l.Waiting, Due: l.Due}
	for _, a := range l.First {
		out.First = append(out.First, &admitv1.TenantAhead{Tenant: a.Tenant, Entitled: a.Entitled, Due: a.Due, Waiting: a.Waiting})
	}
	return out
}

func writeEntryStanding(e *admission.EntryState) *admitv1.EntryStanding {
	out := &admitv1.EntryStanding{Entry: writeEntry(e.ListedEntry), Ahead: e.Ahead, RoutesAhead: e.RoutesAhead}
	if e.DueIn > 0 {
		out.DueIn = durationpb.New(e.DueIn)
	}
	return out
}
