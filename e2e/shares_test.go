package e2e

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// What the bucket has at once, and gets in a second.
const (
	sharedCapacity = 20_000
	sharedRefill   = 2_000
)

// sharedPolicy has a pool whose tokens sidecars may hold, and some that differ in what
// is done without a cluster.
func sharedPolicy() *admitv1.Policy {
	pool := func(name string, capacity, refill int64, onLoss admitv1.TokenShare_OnLoss) *admitv1.Pool {
		share := &admitv1.TokenShare{Max: ptr(capacity / 2), Ttl: durationpb.New(2 * time.Second), OnLoss: onLoss}
		if onLoss == admitv1.TokenShare_SAFE {
			share.Safe = ptr(int64(3))
		}
		return &admitv1.Pool{Name: name, Buckets: []*admitv1.Bucket{{
			Name: "tokens", Scope: admitv1.Bucket_POOL, Capacity: &capacity, Refill: &refill,
			Period: durationpb.New(time.Second), Share: share,
		}}}
	}
	slow := func(name string, onLoss admitv1.TokenShare_OnLoss) *admitv1.Pool {
		p := pool(name, 10, 1, onLoss)
		p.Buckets[0].Period = durationpb.New(time.Minute)
		return p
	}
	return &admitv1.Policy{Pools: []*admitv1.Pool{
		pool("crowd", sharedCapacity, sharedRefill, admitv1.TokenShare_CLOSED),
		slow("closed", admitv1.TokenShare_CLOSED), slow("open", admitv1.TokenShare_OPEN), slow("safe", admitv1.TokenShare_SAFE),
	}}
}

// tally counts grants by who decided.
type tally [4]atomic.Int64

func (n *tally) all() (sum int64) {
	for i := range n {
		sum += n[i].Load()
	}
	return sum
}

// spend takes tokens one after another until ctx ends.
func (n *tally) spend(ctx context.Context, api admitv1.AdmissionServiceClient) {
	for ctx.Err() == nil {
		resp, err := api.Acquire(ctx, &admitv1.AcquireRequest{Pool: "crowd", Tenant: shop, RateOnly: true})
		if err != nil || resp.GetDecision().GetPermit() == nil {
			pause(5 * time.Millisecond) // nobody leads at present, or there is nothing
			continue
		}
		n[resp.GetSource()].Add(1)
	}
}

// TestShares has workers of two sidecars spend the tokens of one bucket as fast as they
// can, while the leader and then a sidecar are killed: what is granted in all is never more
// than the bucket had, most of it out of shares, and it goes on. Then too few nodes are
// left, and it is as the policy says.
func TestShares(t *testing.T) {
	dir := harness.Folder(t)
	cluster := harness.StartCluster(t, dir, members)
	if _, err := cluster.Dial().Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: sharedPolicy()}); err != nil {
		t.Fatalf("apply the policy: %v", err)
	}
	began := time.Now() // the bucket was full before, and stays so until tokens are taken
	var upstream []string
	for _, n := range cluster.Nodes {
		upstream = append(upstream, n.Addr())
	}
	var sidecars []*harness.Sidecar
	var apis []*client.Client
	for _, name := range []string{"a", "b"} {
		s := harness.StartSidecar(t, filepath.Join(dir, name), upstream)
		api, err := client.Dial(s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = api.Close() })
		sidecars, apis = append(sidecars, s), append(apis, api)
	}
	var granted tally
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var workers sync.WaitGroup
	for _, api := range apis {
		for range 4 {
			workers.Go(func() { granted.spend(ctx, api.Admission()) })
		}
	}
	share := &granted[admitv1.DecisionSource_DECISION_SOURCE_SHARE]
	more := func(what string) {
		t.Helper()
		before := share.Load()
		harness.WaitFor(t, 30*time.Second, "grants from shares "+what, func() bool { return share.Load() > before+500 })
	}
	more("at first")
	cluster.Nodes[cluster.Leader()].Kill()
	pause(time.Second)
	more("with another leader")
	sidecars[1].Kill()
	more("with one sidecar")
	cancel()
	workers.Wait()
	// The bucket was full when the policy was applied, so that refilling counts from then.
	most := sharedCapacity + int64(sharedRefill*(time.Since(began).Seconds()))
	harness.Figure(t, "%d of at most %d tokens were granted, %d from shares", granted.all(), most, share.Load())
	if granted.all() > most || 2*share.Load() < granted.all() {
		t.Errorf("%d tokens were granted of at most %d, %d of them from shares", granted.all(), most, share.Load())
	}
	withoutQuorum(t, cluster, apis[0].Admission())
}

// withoutQuorum takes tokens of each pool, kills a second node, and asks for more than is
// held of them.
func withoutQuorum(t *testing.T, cluster *harness.Cluster, api admitv1.AdmissionServiceClient) {
	t.Helper()
	ask := func(pool string) (*admitv1.AcquireResponse, error) {
		return api.Acquire(background, &admitv1.AcquireRequest{Pool: pool, Tenant: shop, RateOnly: true})
	}
	pools := map[string]int{"closed": 0, "open": 6, "safe": 3}
	for pool := range pools { // until the sidecar holds a share, and knows what to do without
		harness.WaitFor(t, 20*time.Second, "a grant from a share", func() bool {
			resp, err := ask(pool)
			return err == nil && resp.GetSource() == admitv1.DecisionSource_DECISION_SOURCE_SHARE
		})
	}
	cluster.Nodes[cluster.Leader()].Kill()
	for pool, want := range pools {
		harness.WaitFor(t, 20*time.Second, pool+" to be used up", func() bool {
			resp, err := ask(pool)
			return err != nil || resp.GetSource() == admitv1.DecisionSource_DECISION_SOURCE_FALLBACK
		})
		let := 0
		if want > 0 {
			let = 1 // just now
		}
		for range 6 - let {
			resp, err := ask(pool)
			switch {
			case err == nil && resp.GetSource() == admitv1.DecisionSource_DECISION_SOURCE_FALLBACK:
				let++
			case status.Code(err) != codes.Unavailable && status.Code(err) != codes.Aborted:
				t.Errorf("%s: %v, %v", pool, resp, err)
			}
		}
		if let != want {
			t.Errorf("%s: %d were let through, want %d", pool, let, want)
		}
	}
}
