package oracle

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/logline"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// run is a lock that is granted, refused, released and granted again, as the log
// has it and as clients saw it.
func run(t *testing.T) ([]logline.Line, []Call) {
	t.Helper()
	core := NewCore()
	var log []logline.Line
	apply := func(ops ...admission.Op) []admission.Result {
		n := uint64(len(log) + 1)
		e := admission.Entry{Index: n, T: admission.Instant(n) * 1e9, W: admission.Wall(n) * 1e9, Ops: ops}
		log = append(log, logline.Line{Term: 1, Entry: e})
		results, _ := core.Apply(e)
		return results
	}
	ask := func(id string) *admission.Acquire {
		return &admission.Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: id, LockKey: "l", Nonce: uint64(len(log))}
	}
	apply(admission.ApplyPolicy{ExpectedRevision: admission.AnyRevision, Policy: admission.Policy{Pools: []admission.PoolPolicy{
		{Name: "p", PermitTTL: time.Minute, LockMaxActive: 1},
	}}})
	first := apply(ask("one"))[0].(*admission.AcquireResult)
	token := first.Decision.Permit.Token
	apply(&admission.Release{Token: token, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent})
	second := apply(ask("two"))[0].(*admission.AcquireResult)
	at := func(index uint64) *admitv1.LogPosition {
		return &admitv1.LogPosition{Index: index, Position: proto.Uint32(0)}
	}
	grant := func(id string, r *admission.AcquireResult, index uint64) (*admitv1.AcquireRequest, *admitv1.AcquireResponse) {
		p := r.Decision.Permit
		return &admitv1.AcquireRequest{Pool: "p", Tenant: "a", RequestId: id, LockKey: "l"},
			&admitv1.AcquireResponse{Decided: at(index), Decision: &admitv1.Decision{Borrowed: r.Decision.Borrowed, Outcome: &admitv1.Decision_Permit{Permit: &admitv1.Permit{
				Token: p.Token.String(), Fence: p.Fence, ExpiresIn: durationpb.New(p.ExpiresIn), Pool: p.Pool, Tenant: p.Tenant,
				Lane: p.Lane, State: admitv1.PermitState(p.State),
			}}}}
	}
	call := func(n int, req, resp proto.Message) Call {
		sent := time.Duration(n) * time.Second
		return Call{Method: "Call", First: sent, Sent: sent, Got: sent + time.Second/2, Request: req, Response: resp}
	}
	req1, resp1 := grant("one", first, 2)
	req2, resp2 := grant("two", second, 4)
	return log, []Call{
		call(1, req1, resp1),
		call(2, &admitv1.ReleaseRequest{Token: token.String()},
			&admitv1.ReleaseResponse{Decided: at(3), Result: admitv1.LeaseResult_LEASE_RESULT_RELEASED}),
		call(3, req2, resp2),
	}
}

func TestWhatWentWellIsNotObjectedTo(t *testing.T) {
	log, calls := run(t)
	for _, o := range Check(log, calls, NewCore()).Objections {
		t.Error(o)
	}
}

func TestEachLieIsObjectedTo(t *testing.T) {
	permit := func(c Call) *admitv1.Permit { return c.Response.(*admitv1.AcquireResponse).GetDecision().GetPermit() }
	for _, lie := range []struct {
		name, rule string
		tell       func(log []logline.Line, calls []Call) []logline.Line
	}{
		{"another fence", answersRule, func(log []logline.Line, calls []Call) []logline.Line {
			permit(calls[0]).Fence++
			return log
		}},
		{"an entry is lost", answersRule, func(log []logline.Line, _ []Call) []logline.Line { return log[:3] }},
		{"another one's place", answersRule, func(log []logline.Line, calls []Call) []logline.Line {
			calls[1].Response.(*admitv1.ReleaseResponse).Decided.Index = 2
			return log
		}},
		{"no place", answersRule, func(log []logline.Line, calls []Call) []logline.Line {
			calls[0].Response.(*admitv1.AcquireResponse).Decided = nil
			return log
		}},
		{"a grant without an entry", answersRule, func(log []logline.Line, calls []Call) []logline.Line {
			calls[0].Response.(*admitv1.AcquireResponse).Decided.Position = nil
			return log
		}},
		{"an order that was not", "order is real", func(log []logline.Line, calls []Call) []logline.Line {
			calls[0].Sent, calls[0].Got = 10*time.Second, 11*time.Second
			return log
		}},
		{"a lock with two holders", "locks are linearizable", func(log []logline.Line, calls []Call) []logline.Line {
			calls[1].First, calls[1].Got = 10*time.Second, 11*time.Second
			return log
		}},
	} {
		t.Run(lie.name, func(t *testing.T) {
			log, calls := run(t)
			log = lie.tell(log, calls)
			for _, o := range Check(log, calls, NewCore()).Objections {
				if o.Rule == lie.rule {
					return
				}
			}
			t.Errorf("nobody objects by the rule %q", lie.rule)
		})
	}
}

// forgetful is a core that knows no request ids.
type forgetful struct{ *Core }

func (f forgetful) Apply(e admission.Entry) ([]admission.Result, []admission.WaitEnd) {
	for _, op := range e.Ops {
		if a, ok := op.(*admission.Acquire); ok {
			id := a.RequestID
			a.RequestID = ""
			defer func() { a.RequestID = id }()
		}
	}
	return f.Core.Apply(e)
}

func TestAnEffectThatHappensTwiceIsObjectedTo(t *testing.T) {
	log, calls := run(t)
	again := *log[1].Entry.Ops[0].(*admission.Acquire)
	again.LockKey = ""
	log[1].Entry.Ops[0].(*admission.Acquire).LockKey = ""
	last := log[len(log)-1].Entry
	log = append(log, logline.Line{Term: 1, Entry: admission.Entry{
		Index: last.Index + 1, T: last.T, W: last.W, Ops: []admission.Op{&again},
	}})
	for _, o := range Check(log, calls[:0], forgetful{NewCore()}).Objections {
		if o.Rule == "effects happen once" && strings.Contains(o.What, "one") {
			return
		}
	}
	t.Error("nobody objects")
}
