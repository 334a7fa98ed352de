package server

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func TestAcquiresCarryAllTheirFields(t *testing.T) {
	req, err := readAcquire(&admitv1.AcquireRequest{
		Pool: "p", Tenant: "t", Category: "c", Cost: proto.Int64(2), Ttl: durationpb.New(time.Minute),
		MaxWait: durationpb.New(3 * time.Second), LockKey: "l", DedupeKey: "d", RequestId: "r",
		IssuedAt: &timestamppb.Timestamp{Seconds: 4}, RateOnly: true, Settle: true, Backlog: 5, WorkerId: "w",
		DryRun: true,
	})
	want := admission.Acquire{
		Pool: "p", Tenant: "t", Category: "c", Cost: 2, TTL: time.Minute, MaxWait: 3 * time.Second, LockKey: "l",
		DedupeKey: "d", RequestID: "r", IssuedAt: 4e9, RateOnly: true, Settle: true, Backlog: 5, WorkerID: "w",
	}
	if op := req.Op.(*admission.Acquire); err != nil || *op != want || !req.DryRun {
		t.Errorf("got %+v, %v, want %+v", op, err, want)
	}
}

// 1970 is long ago, not "not told".
func TestIssuedAtTheEpochIsTold(t *testing.T) {
	c := newChecker()
	if got := c.issued("issued_at", &timestamppb.Timestamp{}); got == 0 || c.err() != nil {
		t.Errorf("got %d, %v", got, c.err())
	}
}

func TestDecisionsOfEveryKind(t *testing.T) {
	shed := &admission.Shed{
		Reason: admission.PoolRate, Lane: "l",
		RetryAfter: time.Second, PollAfter: admission.Absent, EarliestExpiry: admission.Absent, MaxGrantable: admission.Absent,
	}
	told := &admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_RATE, Lane: "l", RetryAfter: durationpb.New(time.Second)}
	live := admission.Permit{Token: admission.Token{Index: 1}, Lane: "l", State: admission.PermitLive}
	holds := &admitv1.Decision_Permit{Permit: &admitv1.Permit{
		Token: live.Token.String(), Lane: "l", ExpiresIn: &durationpb.Duration{}, State: admitv1.PermitState_PERMIT_STATE_LIVE,
	}}
	would := &admitv1.Decision_WouldGrant{WouldGrant: &admitv1.WouldGrant{Lane: "l"}}
	for name, c := range map[string]struct {
		decision admission.Decision
		dryRun   bool
		want     *admitv1.Decision
	}{
		"borrowed": {
			decision: admission.Decision{Permit: live, Borrowed: true},
			want:     &admitv1.Decision{Outcome: holds, Borrowed: true},
		},
		"let through": {
			decision: admission.Decision{Permit: live, WouldShed: shed},
			want:     &admitv1.Decision{Outcome: holds, WouldShed: told},
		},
		"spent": {
			decision: admission.Decision{Permit: admission.Permit{Lane: "l", State: admission.PermitSpent}},
			want: &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: &admitv1.Permit{
				Lane: "l", ExpiresIn: &durationpb.Duration{}, State: admitv1.PermitState_PERMIT_STATE_SPENT,
			}}},
		},
		"tried": {
			decision: admission.Decision{Permit: admission.Permit{Lane: "l"}, Borrowed: true}, dryRun: true,
			want: &admitv1.Decision{Outcome: would, Borrowed: true},
		},
		"tried and refused": {
			decision: admission.Decision{Shed: shed}, dryRun: true,
			want: &admitv1.Decision{Outcome: &admitv1.Decision_Shed{Shed: told}},
		},
		"tried once more": {
			decision: admission.Decision{Permit: live, Replayed: true}, dryRun: true,
			want: &admitv1.Decision{Outcome: would, Replayed: true},
		},
	} {
		if got := writeDecision(c.decision, c.dryRun); !proto.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestReportsReachTheStore(t *testing.T) {
	store := answering(&admission.ReportResult{})
	h := start(t, store)
	in := &admitv1.ReportDemandRequest{Pool: "p", Tenant: "t", Category: "c", Backlog: 7, Ttl: durationpb.New(time.Second)}
	if _, err := h.ReportDemand(soon(t), in); err != nil {
		t.Fatal(err)
	}
	want := admission.ReportDemand{Pool: "p", Tenant: "t", Category: "c", Backlog: 7, TTL: time.Second}
	if got := store.seen[0].Op.(*admission.ReportDemand); *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	store.answer = func(raftstore.Request) raftstore.Answer {
		return raftstore.Answer{Result: &admission.ReportResult{Err: &admission.Error{Reason: admission.UnknownCategory, Field: "category"}}}
	}
	_, err := h.ReportDemand(soon(t), in)
	if got := tell(t, err); got.reason != "UNKNOWN_CATEGORY" || got.fields != "category" {
		t.Errorf("got %+v", got)
	}
}

// What waited is measured apart, and what changed nothing is no decision.
func TestWaitsAndDryRunsInTheMetrics(t *testing.T) {
	m := newMetrics()
	granted := admission.Decision{Permit: admission.Permit{Lane: "l"}}
	let := admission.Decision{Permit: admission.Permit{Lane: "l"}, WouldShed: &admission.Shed{Reason: admission.PoolCap}}
	m.start().acquired(raftstore.Answer{Waited: time.Second}, "p", granted)
	m.start().acquired(raftstore.Answer{DryRun: true}, "p", granted)
	m.start().acquired(raftstore.Answer{}, "p", let)
	got := countsOf(t, m)
	want := map[string]float64{
		"admit_decisions_total granted":     1,
		"admit_wait_seconds granted":        1,
		"admit_decisions_total would_shed":  1,
		"admit_decision_seconds would_shed": 1,
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v, want %v", name, got[name], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
