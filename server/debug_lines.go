package server

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// described is an operation as a line of the log names it.
type described struct{ op, pool, tenant string }

// describe says what an operation is about. A lease's says only with its result.
func describe(op admission.Op, result admission.Result) described {
	name := fmt.Sprintf("%T", op)
	d := described{op: name[strings.LastIndex(name, ".")+1:]}
	switch op := op.(type) {
	case *admission.Acquire:
		d.pool, d.tenant = op.Pool, op.Tenant
	case *admission.NextDue:
		d.pool, d.tenant = op.Pool, op.Tenant
	case *admission.Take:
		d.pool = op.Pool
	case *admission.LeaseShare:
		d.pool, d.tenant = op.Pool, op.Tenant
	case *admission.ReportDemand:
		d.pool, d.tenant = op.Pool, op.Tenant
	case *admission.Schedule:
		d.pool = op.Pool
	case admission.Unschedule:
		d.pool, d.tenant = op.Pool, op.Tenant
	case *admission.Redrive:
		d.pool = op.Pool
	case *admission.PurgeDead:
		d.pool = op.Pool
	case *admission.PutTenants:
		d.pool = op.Pool
	case admission.Pause:
		d.pool = op.Pool
	}
	switch r := result.(type) {
	case *admission.RenewResult:
		d.pool, d.tenant = r.Pool, r.Tenant
	case *admission.ReleaseResult:
		d.pool, d.tenant = r.Pool, r.Tenant
	}
	return d
}

// line is what is told of a decision: nothing that gives a right, as tokens do, nor the
// keys that callers choose.
func (d described) line(req raftstore.Request, a raftstore.Answer, err error) []slog.Attr {
	out := []slog.Attr{slog.String("op", d.op), slog.String("pool", d.pool)}
	if d.tenant != "" {
		out = append(out, slog.String("tenant", d.tenant))
	}
	if err != nil {
		return append(out, slog.String("error", err.Error()))
	}
	out = append(out, slog.Uint64("index", a.Index))
	switch r := a.Result.(type) {
	case *admission.AcquireResult:
		op := req.Op.(*admission.Acquire)
		out = append(out, slog.String("category", op.Category), slog.Int64("cost", op.Cost))
		if a.Waited > 0 {
			out = append(out, slog.Duration("waited", a.Waited))
		}
		return append(out, acquireLine(r, a.DryRun)...)
	case *admission.TakeResult:
		return append(append(out, takeLine(r)...), undecided(r.Err)...)
	case *admission.LeaseShareResult:
		return append(append(out, shareLine(r)...), undecided(r.Err)...)
	case *admission.NextDueResult:
		return append(append(out, slog.Int("claims", len(r.Claims))), undecided(r.Err)...)
	case *admission.ReleaseResult:
		return append(append(out, slog.String("decision", leaseName(r.Result))), undecided(r.Err)...)
	case *admission.RenewResult:
		lost := 0
		for _, n := range r.Renewals {
			if n.Result != admission.LeaseRenewed {
				lost++
			}
		}
		return append(out, slog.Int("permits", len(r.Renewals)), slog.Int("not_renewed", lost))
	case *admission.ReportResult:
		op := req.Op.(*admission.ReportDemand)
		return append(append(out, slog.String("category", op.Category), slog.Int64("backlog", op.Backlog)), undecided(r.Err)...)
	case *admission.ScheduleResult:
		return append(append(out, slog.Int("entries", len(r.Entries))), undecided(r.Err)...)
	case *admission.UnscheduleResult:
		return append(out, undecided(r.Err)...)
	case *admission.DeadResult:
		return append(append(out, slog.Int("entries", r.Count)), undecided(r.Err)...)
	case *admission.PutTenantsResult:
		return append(append(out, slog.Int("tenants", r.Changed)), undecided(r.Err)...)
	case *admission.PauseResult:
		return append(out, undecided(r.Err)...)
	}
	return out
}

// acquireLine is what became of an Acquire.
func acquireLine(r *admission.AcquireResult, dryRun bool) []slog.Attr {
	d := r.Decision
	decision, lane, shed := "GRANTED", d.Permit.Lane, d.WouldShed
	switch {
	case r.Err != nil:
		return undecided(r.Err)
	case d.Shed != nil:
		decision, shed = "SHED", d.Shed
		lane = shed.Lane
	case dryRun:
		decision = "WOULD_GRANT"
	case d.Replayed:
		decision = "REPLAYED"
	case shed != nil:
		decision = "WOULD_SHED"
	}
	out := []slog.Attr{slog.String("decision", decision), slog.String("lane", lane)}
	if shed == nil {
		return out
	}
	out = append(out, slog.String("reason", shed.Reason.String()))
	if shed.RetryAfter != admission.Absent {
		out = append(out, slog.Duration("retry_after", shed.RetryAfter))
	}
	for _, l := range shed.Blocking[:min(len(shed.Blocking), 1)] {
		out = append(out, slog.String("limit", l.Name), slog.Int64("used", l.Used), slog.Int64("capacity", l.Capacity))
	}
	return out
}

// takeLine is what became of a Take: the first part that is held says why.
func takeLine(r *admission.TakeResult) []slog.Attr {
	decision := "GRANTED"
	if r.Refused {
		decision = "SHED"
	}
	out := []slog.Attr{slog.String("decision", decision)}
	for _, held := range r.Held {
		if held != nil {
			return append(out, slog.String("lane", held.Lane), slog.String("reason", held.Reason.String()))
		}
	}
	return out
}

// shareLine is what became of a LeaseShare.
func shareLine(r *admission.LeaseShareResult) []slog.Attr {
	switch {
	case r.Err != nil:
		return nil
	case r.Shed != nil:
		return []slog.Attr{slog.String("decision", "SHED"), slog.String("lane", r.Shed.Lane), slog.String("reason", r.Shed.Reason.String())}
	}
	return []slog.Attr{slog.String("decision", "GRANTED"), slog.String("lane", r.Permit.Lane), slog.Int64("tokens", r.Tokens)}
}

func leaseName(r admission.LeaseResult) string {
	return strings.TrimPrefix(leaseResults[r].String(), "LEASE_RESULT_")
}

// undecided is why an operation could not be decided, if it could not.
func undecided(err *admission.Error) []slog.Attr {
	if err == nil {
		return nil
	}
	return []slog.Attr{slog.String("reason", string(err.Reason))}
}
