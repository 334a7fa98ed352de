package admission

import (
	"fmt"
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

// tally counts what histories were made of, so that one can see what they tried.
type tally map[string]int

func (n tally) count(op Op, r Result) {
	n[fmt.Sprintf("%T", op)]++
	switch r := r.(type) {
	case *AcquireResult:
		switch {
		case r.Err != nil:
			n["acquire error "+string(r.Err.Reason)]++
		case r.Decision.Shed != nil:
			n["acquire shed "+r.Decision.Shed.Reason.String()]++
		case r.Decision.Replayed:
			n["acquire replayed"]++
		default:
			n["acquire granted"]++
		}
	case *NextDueResult:
		n["claims"] += len(r.Claims)
		n["polls cut short by a cycle limit"] += min(len(r.cycleCapped), 1)
	case *RenewResult:
		for _, row := range r.Renewals {
			n[fmt.Sprintf("renew result %d", row.Result)]++
		}
	case *ReleaseResult:
		n[fmt.Sprintf("release result %d", r.Result)]++
	case *ScheduleResult:
		for _, row := range r.Entries {
			n[fmt.Sprintf("schedule status %d %s", row.Status, row.Reason)]++
		}
	case *PolicyResult:
		if n["policies changed"] += 0; r.Changed {
			n["policies changed"]++
		} else if r.Err != nil {
			n["policy error "+string(r.Err.Reason)]++
		}
	}
}

// report logs the tally.
func (n tally) report(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(n)) {
		t.Logf("%8d  %s", n[what], what)
	}
}
