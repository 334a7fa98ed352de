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

// What a bucket has at once, and gets in a second: more than the workers can take, and
// less.
const (
	plentyCapacity = 20_000
	plentyRefill   = 2_000
	scarceCapacity = 300
	scarceRefill   = 50
)

// sharedPolicy has pools whose tokens sidecars may hold, and some that differ in what
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
		pool("plenty", plentyCapacity, plentyRefill, admitv1.TokenShare_CLOSED),
		pool("scarce", scarceCapacity, scarceRefill, admitv1.TokenShare_CLOSED),
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

// spend takes tokens of a pool one after another until ctx ends.
func (n *tally) spend(ctx context.Context, api admitv1.AdmissionServiceClient, pool string) {
	for ctx.Err() == nil {
		resp, err := api.Acquire(ctx, &admitv1.AcquireRequest{Pool: pool, Tenant: shop, RateOnly: true})
		if err != nil || resp.GetDecision().GetPermit() == nil {
			pause(5 * time.Millisecond) // nobody leads at present, or there is nothing
			continue
		}
		n[resp.GetSource()].Add(1)
	}
}

// TestShares has workers of two sidecars spend the tokens of two buckets as fast as they
// can, while the leader and then a sidecar are killed: what is granted in all is never more
// than a bucket had; where there is plenty most is out of shares, and it goes on. Then too few nodes are
// left, and it is as the policy says.
func TestShares(t *testing.T) {
	dir := harness.Folder(t)
	cluster := harness.StartCluster(t, dir, members)
	if _, err := cluster.Dial().Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: sharedPolicy()}); err != nil {
		t.Fatalf("apply the policy: %v", err)
	}
	began := time.Now() // the buckets are full, and nothing is taken yet
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
	var plenty, scarce tally
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var workers sync.WaitGroup
	for _, api := range apis {
		for range 4 {
			workers.Go(func() { plenty.spend(ctx, api.Admission(), "plenty") })
			workers.Go(func() { scarce.spend(ctx, api.Admission(), "scarce") })
		}
	}
	share := &plenty[admitv1.DecisionSource_DECISION_SOURCE_SHARE]
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
	took := time.Since(began).Seconds()
	mostPlenty, mostScarce := int64(plentyCapacity+plentyRefill*took), int64(scarceCapacity+scarceRefill*took)
	harness.Figure(t, "%d of at most %d tokens were granted where there is plenty, %d from shares; %d of at most %d where there is not, %d from shares",
		plenty.all(), mostPlenty, share.Load(), scarce.all(), mostScarce, scarce[admitv1.DecisionSource_DECISION_SOURCE_SHARE].Load())
	if plenty.all() > mostPlenty || scarce.all() > mostScarce {
		t.Error("more was granted than there was")
	}
	if 2*share.Load() < plenty.all() || scarce.all() < scarceCapacity/2 {
		t.Error("too little was granted, or too little of it from shares")
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
