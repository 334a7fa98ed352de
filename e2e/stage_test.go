package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	pool      = "email"
	bank      = "bank" // sends login codes
	shop      = "shop" // sends marketing
	warmup    = "warmup"
	scheduled = admitv1.ScheduleResult_STATUS_SCHEDULED
)

// policy is one pool whose bucket, where it has one, is the provider's limit.
// Marketing leaves a few slots and tokens, so that a login code finds some
// whenever it comes.
func policy(withBucket bool) *admitv1.Policy {
	marketing := &admitv1.Lane{Name: "marketing", LeaveSlots: 4}
	p := &admitv1.Pool{
		Name: pool, MaxActive: ptr(int64(maxActive)),
		Lanes:      []*admitv1.Lane{{Name: "transactional"}, marketing},
		Categories: map[string]string{"login-code": "transactional", "newsletter": "marketing"},
	}
	if withBucket {
		p.Buckets = []*admitv1.Bucket{{
			Name: "provider", Scope: admitv1.Bucket_POOL, Charge: admitv1.Bucket_PERMIT,
			Capacity: ptr(int64(capacity)), Refill: ptr(int64(refill)), Period: durationpb.New(time.Second),
		}}
		marketing.LeaveTokens = map[string]int64{"provider": 5}
	}
	return &admitv1.Policy{Pools: []*admitv1.Pool{p}}
}

// stage is admitd, nginx and Python workers, set up alike for every run.
type stage struct {
	t        *testing.T
	node     *harness.Node
	client   *client.Client
	provider *harness.NGINX
	python   *harness.Python
	others   *harness.Neighbours

	mu  sync.Mutex
	due map[string]time.Time // by the path at the provider
}

// startStage starts everything and warms it up.
func startStage(t *testing.T, dir string, python *harness.Python, p *admitv1.Policy, workerArgs ...string) *stage {
	t.Helper()
	s := &stage{
		t: t, python: python, due: map[string]time.Time{},
		provider: harness.StartNGINX(t, filepath.Join(dir, "nginx"), refill, burst),
		node:     harness.StartNode(t, dir),
	}
	s.client = s.node.Dial()
	if _, err := s.client.Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: p}); err != nil {
		t.Fatalf("apply the policy: %v", err)
	}
	for range workers {
		python.StartWorker(append([]string{
			"--admit", s.node.Addr(), "--provider", s.provider.Addr,
			"--pool", pool, "--threads", fmt.Sprint(threads),
		}, workerArgs...)...)
	}
	s.schedule(warmup, "newsletter", keys("w", 5*workers*threads))
	s.drain(30 * time.Second)
	s.others = harness.WatchNeighbours(t, dir)
	return s
}

// keys returns n keys.
func keys(prefix string, n int) []string {
	ks := make([]string, n)
	for i := range ks {
		ks[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return ks
}

// schedule makes sends due now.
func (s *stage) schedule(tenant, category string, keys []string) {
	req := &admitv1.ScheduleRequest{Pool: pool}
	s.mu.Lock()
	for _, k := range keys {
		req.Entries = append(req.Entries, &admitv1.EntrySpec{Tenant: tenant, Key: k, Category: category})
		s.due["/"+tenant+"/"+k] = time.Now()
	}
	s.mu.Unlock()
	resp, err := s.client.DueWork().Schedule(background, req)
	if err != nil {
		s.t.Errorf("schedule %d sends of %s: %v", len(keys), tenant, err)
		return
	}
	for i, r := range resp.GetResults() {
		if r.GetStatus() != scheduled {
			s.t.Errorf("scheduling %s of %s was answered %v", keys[i], tenant, r)
		}
	}
}

// marketing schedules the blast, as fast as it is taken.
func (s *stage) marketing(n int) {
	for part := range slices.Chunk(keys("m", n), 1000) {
		s.schedule(shop, "newsletter", part)
	}
}

// logins schedules login codes at their rate, each on time even where the one
// before is not answered yet, until stop is called.
func (s *stage) logins() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(loginEvery)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			running.Go(func() { s.schedule(bank, "login-code", []string{fmt.Sprintf("l-%d", i)}) })
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// health is how the pool stands.
func (s *stage) health() *admitv1.PoolHealth {
	resp, err := s.client.Status().QueueHealth(background, &admitv1.QueueHealthRequest{Pool: pool})
	if err != nil {
		s.t.Fatalf("ask for the queue's health: %v", err)
	}
	return resp.GetPools()[0]
}

// drain waits until everything that is due was sent.
func (s *stage) drain(limit time.Duration) {
	s.t.Helper()
	harness.WaitFor(s.t, limit, "the queue to be empty", func() bool {
		h := s.health()
		return h.GetEntries() == 0 && h.GetActive() == 0
	})
}

// end stops everything and returns what the run came to.
func (s *stage) end() outcome {
	s.t.Helper()
	others := s.others.Stop()
	s.python.Stop()
	s.provider.Stop()
	s.node.Stop()
	o := outcome{sends: judge.TallySends(s.provider.Requests(), s.due), others: others}
	for path, at := range o.sends.Sent {
		switch {
		case strings.HasPrefix(path, "/"+bank+"/"):
			o.logins = append(o.logins, at)
			o.latencies = append(o.latencies, at.Sub(s.due[path]))
		case strings.HasPrefix(path, "/"+shop+"/"):
			o.marketing = append(o.marketing, at)
		}
	}
	slices.SortFunc(o.marketing, time.Time.Compare)
	return o
}
