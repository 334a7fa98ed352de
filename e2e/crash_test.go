package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// seedEnv repeats a run: it names the seed that a run printed. What the kernel
// and the disk do between is not repeated.
const seedEnv = "ADMIT_E2E_SEED"

const (
	kills       = 30
	firstStarts = 10
	// answersBeforeKill keeps a kill from hitting an idle node: so many answers
	// there were since the last one.
	answersBeforeKill = 20
	// crashTTL is far above any outage here, so a lost permit is a fault.
	crashTTL = 2 * time.Minute
)

var crashLimits = judge.Limits{PoolActive: 12, TenantActive: 4, Capacity: 40, Refill: 400, Period: time.Second}

// crashPolicy is one pool whose every limit is reached by the load.
func crashPolicy(l judge.Limits) *admitv1.Policy {
	return &admitv1.Policy{Pools: []*admitv1.Pool{{
		Name: pool, MaxActive: ptr(int64(l.PoolActive)), PermitTtl: durationpb.New(crashTTL),
		Buckets: []*admitv1.Bucket{{
			Name: "calls", Scope: admitv1.Bucket_POOL, Charge: admitv1.Bucket_PERMIT,
			Capacity: &l.Capacity, Refill: &l.Refill, Period: durationpb.New(l.Period),
		}},
		Tenants: &admitv1.Tenants{Defaults: &admitv1.Tenant{MaxActive: ptr(int64(l.TenantActive))}},
		Retry:   &admitv1.Retry{MaxAttempts: ptr(int32(1000)), Base: durationpb.New(20 * time.Millisecond), Max: durationpb.New(100 * time.Millisecond)},
	}}}
}

// TestKill9 kills the node at random moments under load, again and again on one
// data directory. What the clients were told must still hold afterwards.
func TestKill9(t *testing.T) {
	t.Parallel() // with the others that bound no time
	seed := crashSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := harness.Folder(t)
	node := harness.StartNode(t, dir)
	l := startLoad(t, node.Dial(), seed)

	var slowest time.Duration
	for range kills {
		before := l.rec.Acknowledged()
		began := time.Now()
		harness.WaitFor(t, 15*time.Second, "answers after a restart", func() bool {
			return l.rec.Acknowledged() >= before+answersBeforeKill
		})
		slowest = max(slowest, time.Since(began))
		pause(upTo(rng, time.Second))
		node.Kill()
		if rng.IntN(4) == 0 { // it may die while it recovers, too
			node.Launch()
			pause(upTo(rng, 150*time.Millisecond))
			node.Kill()
		}
		node.Restart()
	}
	l.finish()

	h := l.rec.History()
	verdict := judge.Judge(h, crashLimits)
	harness.Figure(t, "%d kills; %d answers with permits, %d releases, %d schedules; %d tries had no answer; at most %v from ready to %d answers; %v",
		kills, len(h.Answers), len(h.Releases), len(h.Schedules), l.unknown.Load(), slowest, answersBeforeKill, verdict)
	if l.unknown.Load() == 0 {
		t.Error("no kill took an answer away: nothing was tested")
	}
	objections := verdict.Objections
	for _, o := range objections[:min(len(objections), 20)] {
		t.Error(o)
	}
	if len(objections) > 0 {
		keepHistory(t, filepath.Join(dir, "history.json"), h)
		t.Errorf("%d objections, run again with %s=%d", len(objections), seedEnv, seed)
	}
}

// TestKill9AtTheFirstStart kills nodes while they lay out their data directory.
// They must come up on what is there.
func TestKill9AtTheFirstStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(crashSeed(t), 0))
	dir := harness.Folder(t)
	for i := range firstStarts {
		node := harness.NewNode(t, filepath.Join(dir, strconv.Itoa(i)))
		node.Launch()
		pause(upTo(rng, 200*time.Millisecond))
		node.Kill()
		node.Restart()
		_, err := node.Dial().Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: crashPolicy(crashLimits)})
		if err != nil {
			t.Errorf("apply a policy after start %d: %v", i, err)
		}
		node.Stop()
	}
}

// keepHistory writes down what the clients saw, beside the node's log.
func keepHistory(t *testing.T, path string, h judge.History) {
	t.Helper()
	data, err := json.MarshalIndent(h, "", " ")
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Errorf("keep the history: %v", err)
	}
}

// crashSeed is the run's seed: the one that was asked for, or a new one.
func crashSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedEnv, err)
		}
	}
	harness.Figure(t, "seed %d", seed)
	return seed
}

// upTo is a random time from 0 to below d.
func upTo(rng *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(d)))
}
