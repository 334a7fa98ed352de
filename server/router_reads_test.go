package server

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func TestAFollowersReadsMissNothing(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.at, p.lead.index = admission.Instant(time.Hour), 40
	p.follow.age = 3 * time.Second
	health, err := p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
	if err != nil || health.GetClusterTime().AsDuration() != time.Hour || health.Age != nil {
		t.Errorf("got %v, %v, want the leader's time", health, err)
	}
	if want := (raftstore.ReadPoint{Index: 40, T: p.lead.at, W: p.lead.wall}); len(p.follow.reached) != 1 || p.follow.reached[0] != want {
		t.Errorf("waited for %v, want %v", p.follow.reached, want)
	}
	stale, err := p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Stale: true})
	if err != nil || stale.GetAge().AsDuration() != 3*time.Second || stale.GetLogIndex() != p.follow.index || len(p.follow.reached) != 1 {
		t.Errorf("got %v, %v, want what the node has", stale, err)
	}
	p.follow.age = admission.Absent
	if stale, err = p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Stale: true}); err != nil || stale.Age != nil {
		t.Errorf("got %v, %v, want no age", stale, err)
	}
}

// Every read of the API waits for the leader's point, but a stale one.
func TestAllReadsAskTheLeader(t *testing.T) {
	p := startPair(t, inPlain)
	p.follow.apply(raftstore.Request{Op: &admission.Schedule{Pool: "email", Entries: []admission.EntrySpec{{Tenant: "acme", Key: "k", Category: "otp"}}}})
	first := func(stream interface{ RecvMsg(any) error }, err error, into proto.Message) (proto.Message, error) {
		if err == nil {
			err = stream.RecvMsg(into)
		}
		return into, err
	}
	for name, read := range map[string]func(ctx context.Context, stale bool) (proto.Message, error){
		"QueueHealth": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.QueueHealth(ctx, &admitv1.QueueHealthRequest{Stale: stale})
		},
		"GetTenant": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.GetTenant(ctx, &admitv1.GetTenantRequest{Pool: "email", Tenant: "acme", Stale: stale})
		},
		"ListTenants": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.ListTenants(ctx, &admitv1.ListTenantsRequest{Pool: "email", Stale: stale})
		},
		"ListPermits": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.ListPermits(ctx, &admitv1.ListPermitsRequest{Pool: "email", Stale: stale})
		},
		"TopShed": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.TopShed(ctx, &admitv1.TopShedRequest{Pool: "email", Stale: stale})
		},
		"Explain": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.status.Explain(ctx, &admitv1.ExplainRequest{Pool: "email", Tenant: "acme", Stale: stale})
		},
		"GetShedding": func(ctx context.Context, stale bool) (proto.Message, error) {
			stream, err := p.status.GetShedding(ctx, &admitv1.GetSheddingRequest{Pool: "email", Stale: stale})
			return first(stream, err, &admitv1.GetSheddingResponse{})
		},
		"WatchShedding": func(ctx context.Context, stale bool) (proto.Message, error) {
			stream, err := p.status.WatchShedding(ctx, &admitv1.WatchSheddingRequest{Pool: "email", Stale: stale, Interval: durationpb.New(time.Minute)})
			return first(stream, err, &admitv1.WatchSheddingResponse{})
		},
		"GetPolicy": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.policy.GetPolicy(ctx, &admitv1.GetPolicyRequest{Stale: stale})
		},
		"ListRevisions": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.policy.ListRevisions(ctx, &admitv1.ListRevisionsRequest{Stale: stale})
		},
		"ListEntries": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.due.ListEntries(ctx, &admitv1.ListEntriesRequest{Pool: "email", Stale: stale})
		},
		"ListDead": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.due.ListDead(ctx, &admitv1.ListDeadRequest{Pool: "email", Stale: stale})
		},
		"GetEntry": func(ctx context.Context, stale bool) (proto.Message, error) {
			return p.due.GetEntry(ctx, &admitv1.GetEntryRequest{Pool: "email", Tenant: "acme", Key: "k", Stale: stale})
		},
	} {
		for _, stale := range []bool{false, true} {
			before := len(p.follow.reached)
			resp, err := read(soon(t), stale)
			if err != nil {
				t.Errorf("%s, stale %v: %v", name, stale, err)
				continue
			}
			if waited := len(p.follow.reached) > before; waited == stale {
				t.Errorf("%s, stale %v: waited for the leader's point: %v", name, stale, waited)
			}
			if age := resp.ProtoReflect().Descriptor().Fields().ByName("age"); age == nil || resp.ProtoReflect().Has(age) != stale {
				t.Errorf("%s, stale %v: got %v", name, stale, resp)
			}
		}
	}
	p.follow.fail = raftstore.ErrNoQuorum
	if _, err := p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{}); tell(t, err).reason != "NO_QUORUM" {
		t.Errorf("got %v without a leader", err)
	}
}

// What only reads has done nothing if the leader dies over it, and is only sent again.
func TestALeaderThatDiesOverARead(t *testing.T) {
	for name, read := range map[string]func(p *pair) error{
		"QueueHealth": func(p *pair) error {
			_, err := p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
			return err
		},
		"ApplyPolicy": func(p *pair) error {
			_, err := p.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: testPolicy(), DryRun: true})
			return err
		},
	} {
		p := startPair(t, inPlain)
		p.leaderDies(t)
		if got := tell(t, read(p)); got.reason != "NOT_LEADER" || got.meta["leader_addr"] != p.addr || got.retry == 0 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// And one whose caller has left ends like any other.
func TestALostReaderIsNoRiddle(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park = make(chan struct{})
	ctx, cancel := context.WithCancel(soon(t))
	go func() { <-p.lead.park; cancel() }()
	_, err := p.server.router.readPoint(ctx, &raftstore.NotLeaderError{LeaderAddr: p.addr})
	if got := status.Code(statusError(err, true)); got != codes.Canceled {
		t.Errorf("got %v for %v", got, err)
	}
}
