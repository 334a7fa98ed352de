package admission

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// describe prints an entry with its operations.
func describe(e Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "entry %d at %v, wall %v", e.Index, time.Duration(e.T), time.Duration(e.W))
	for _, op := range e.Ops {
		fmt.Fprintf(&b, "\n\t%T %+v", op, op)
	}
	return b.String()
}

// Tally counts what random histories were made of, so that one can see what they
// tried. The nightly adds up the tallies of a run and wants each operation ("op")
// and each reason ("reason") often.
type Tally map[string]int

// NewTally returns a tally in which whatever should occur has not yet.
func NewTally() Tally {
	n := Tally{}
	for _, op := range []Op{
		TermStart{}, ApplyPolicy{}, &PutTenants{}, Pause{}, &Acquire{}, Detach{}, &ReportDemand{}, &NextDue{},
		&Renew{}, &Release{}, &Take{}, &LeaseShare{}, &Schedule{}, Unschedule{}, &Redrive{}, &PurgeDead{},
	} {
		n[opName(op)] = 0
	}
	for r := ReasonNone + 1; r < reasonCount; r++ {
		n["reason "+r.String()] = 0
	}
	return n
}

func opName(op Op) string {
	name := fmt.Sprintf("%T", op)
	return "op " + name[strings.LastIndex(name, ".")+1:]
}

// Count counts an operation and what became of it.
func (n Tally) Count(op Op, r Result) {
	n[opName(op)]++
	switch r := r.(type) {
	case *AcquireResult:
		n.countDecision(r)
	case *NextDueResult:
		n.outcome("poll", r.Err, fmt.Sprintf("replayed=%v", r.Replayed))
		if op.(*NextDue).Node.ID != "" {
			n["claims for a node"] += len(r.Claims)
		}
		n["polls cut short by a cycle limit"] += min(len(r.cycleCapped), 1)
		for _, c := range r.Claims {
			n[fmt.Sprintf("claim with more to catch up=%v", c.CatchUp)]++
		}
	case *RenewResult:
		for _, row := range r.Renewals {
			n[fmt.Sprintf("renew result %d", row.Result)]++
		}
	case *ReleaseResult:
		n.outcome("release", r.Err, fmt.Sprintf("result %d of outcome %d", r.Result, op.(*Release).Outcome))
	case *ScheduleResult:
		n.outcome("schedule", r.Err, "done")
		for _, row := range r.Entries {
			n.outcome("schedule entry", row.Err, fmt.Sprintf("status %d %s", row.Status, row.Reason))
			n.reason(row.Reason)
		}
	case *UnscheduleResult:
		n.outcome("unschedule", r.Err, fmt.Sprintf("claimed=%v", r.WasClaimed))
	case *DeadResult:
		n.outcome(strings.TrimPrefix(opName(op), "op "), r.Err, fmt.Sprintf("found=%v more=%v", r.Count > 0, r.Next != DeadCursor{}))
	case *PolicyResult:
		n.outcome("policy", r.Err, fmt.Sprintf("changed=%v draining=%v", r.Changed, len(r.Draining) > 0))
	case *PutTenantsResult:
		n.outcome("put", r.Err, fmt.Sprintf("changed=%v", r.Changed > 0))
	case *PauseResult:
		n.outcome(fmt.Sprintf("pause of kind %d", op.(Pause).Kind), r.Err, fmt.Sprintf("resume=%v", op.(Pause).Resume))
	case *ReportResult:
		n.outcome("report", r.Err, "done")
	case *LeaseShareResult:
		switch {
		case r.Shed == nil:
			n.outcome("share", r.Err, fmt.Sprintf("whole=%v", r.Tokens == op.(*LeaseShare).Tokens))
		case len(r.Shed.Blocking) == 0:
			n["share held by others "+r.Shed.Reason.String()]++
		default:
			n["share shed "+r.Shed.Reason.String()]++
		}
	case *TakeResult:
		n.outcome("take", r.Err, fmt.Sprintf("refused=%v", r.Refused))
		for _, held := range r.Held {
			if held != nil {
				n["take held "+held.Reason.String()]++
			}
		}
	}
}

func (n Tally) countDecision(r *AcquireResult) {
	d := r.Decision
	switch {
	case r.Err != nil || d.Shed == nil:
		n.outcome("acquire", r.Err, fmt.Sprintf("granted=%v replayed=%v state=%d", d.Granted(), d.Replayed, d.Permit.State))
	default:
		n["shed "+d.Shed.Reason.String()]++
		n.reason(d.Shed.Reason)
	}
	if d.WouldShed != nil {
		n["would shed "+d.WouldShed.Reason.String()]++
	}
}

// Ended counts how a wait ended.
func (n Tally) Ended(end WaitEnd) {
	if d := end.Result.Decision; d.Shed == nil {
		n["wait granted"]++
	} else {
		n["wait shed "+d.Shed.Reason.String()]++
		n.reason(d.Shed.Reason)
	}
}

// Held counts rows of what is held.
func (n Tally) Held(rows []HeldTenant) {
	for _, row := range rows {
		n["held "+row.Reason.String()]++
		n.reason(row.Reason)
	}
}

func (n Tally) reason(r Reason) {
	if r != ReasonNone {
		n["reason "+r.String()]++
	}
}

func (n Tally) outcome(what string, err *Error, done string) {
	if err != nil {
		done = "error " + string(err.Reason)
	}
	n[what+" "+done]++
}

// Report logs the tally, as the nightly reads it.
func (n Tally) Report(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(n)) {
		t.Logf("tally %8d  %s", n[what], what)
	}
}

func TestTalliesWantEveryOperation(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "command.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	wanted := NewTally()
	for _, decl := range f.Decls {
		method, ok := decl.(*ast.FuncDecl)
		if !ok || method.Name.Name != "isOp" {
			continue
		}
		kind := method.Recv.List[0].Type
		if pointer, ok := kind.(*ast.StarExpr); ok {
			kind = pointer.X
		}
		if _, ok := wanted["op "+kind.(*ast.Ident).Name]; !ok {
			t.Errorf("no tally says how often %s occurs", kind.(*ast.Ident).Name)
		}
	}
}
