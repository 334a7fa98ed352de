package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// killsEnv says how many leaders are killed in a row. With it the tests of this file
// run at their full size, as `make faults` has them; without it they are small.
const killsEnv = "ADMIT_E2E_KILLS"

// endurance is how long the tests of this file go on.
type endurance struct{ kills, transfers, entries int }

func enduranceOf(t *testing.T) endurance {
	t.Helper()
	text := os.Getenv(killsEnv)
	if text == "" {
		return endurance{kills: 1, transfers: 2, entries: 10_000}
	}
	kills, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", killsEnv, err)
	}
	return endurance{kills: kills, transfers: 20, entries: 1_000_000}
}

const (
	// killsPerCluster and transfersPerCluster bound what one history holds: the oracle
	// wants the log from its first entry on, and a long one is replaced by snapshots.
	killsPerCluster     = 25
	transfersPerCluster = 10
)

// inClusters does something so many times, a few times in each cluster.
func inClusters(t *testing.T, times, inEach int, do func(tr *trial, times int)) {
	t.Helper()
	for left := times; left > 0; left -= inEach {
		t.Run(fmt.Sprintf("%d to go", left), func(t *testing.T) {
			tr := startTrial(t)
			do(tr, min(left, inEach))
			tr.finish()
		})
	}
}

// TestLeaderKills kills one leader after the other.
func TestLeaderKills(t *testing.T) {
	var gaps []time.Duration
	inClusters(t, enduranceOf(t).kills, killsPerCluster, func(tr *trial, kills int) {
		for range kills {
			leader := tr.cluster.Leader()
			tr.fault("kill -9 of the leader", tr.cluster.Nodes[leader].Kill)
			tr.collect(tr.cluster.Nodes[leader])
			tr.restart(leader)
		}
		gaps = append(gaps, tr.gaps...)
	})
	p50 := judge.Percentile(gaps, 0.5)
	harness.Figure(t, "%d leader kills: first success p50 %v, max %v", len(gaps), p50, judge.Percentile(gaps, 1))
	if len(gaps) >= killsForMedian && p50 > killMedian {
		t.Errorf("first success p50 %v, at most %v is allowed", p50, killMedian)
	}
}

const (
	// killMedian is the most that the median first success after a kill may take, of
	// killsForMedian at least: each by itself is bounded by successLimit.
	killMedian     = 2500 * time.Millisecond
	killsForMedian = 10
	// plannedLimit is how long nothing may be decided when the lead is handed over.
	plannedLimit = 1500 * time.Millisecond
	// betweenTransfers is the time between two.
	betweenTransfers = 2 * time.Second
)

// planned does something that hands the lead over, with Go clients at work that must
// not see an error: one of each node, and one that follows the leader. It bounds and
// returns the longest time in which nothing was decided.
func (tr *trial) planned(name string, do func()) (silence time.Duration) {
	tr.t.Helper()
	ctx, stop := context.WithCancel(background)
	var working sync.WaitGroup
	working.Go(func() { tr.steady(ctx, tr.cluster.Dial(tr.recording()), "following") })
	for i, c := range tr.load.clients {
		working.Go(func() { tr.steady(ctx, c, fmt.Sprintf("steady-%d", i)) })
	}
	from := tr.load.rec.Now()
	do()
	tr.recovers(name, tr.load.rec.Now())
	stop()
	working.Wait()
	silence = tr.calls.LongestSilence(from, tr.load.rec.Now())
	harness.Figure(tr.t, "%s: nothing was decided for at most %v", name, silence.Round(time.Millisecond))
	if silence > plannedLimit {
		tr.t.Errorf("%s: nothing was decided for %v, at most %v is allowed", name, silence, plannedLimit)
	}
	return silence
}

// steady asks and releases until ctx ends, as programs do that use the Go client.
func (tr *trial) steady(ctx context.Context, c *client.Client, tenant string) {
	for ctx.Err() == nil {
		d, err := c.Acquire(background, client.Work{Pool: pool, Tenant: tenant})
		if err == nil && d.Permit != nil {
			_, err = c.Release(background, d.Permit.Token, client.Release{})
		}
		if err != nil {
			tr.t.Errorf("%s: %v", tenant, err)
			return
		}
		pause(20 * time.Millisecond)
	}
}

// TestTransfers hands the lead on every two seconds.
func TestTransfers(t *testing.T) {
	all, longest := enduranceOf(t).transfers, time.Duration(0)
	inClusters(t, all, transfersPerCluster, func(tr *trial, transfers int) {
		longest = max(longest, tr.planned(fmt.Sprintf("%d transfers", transfers), func() {
			for range transfers {
				tr.transfer()
				pause(betweenTransfers)
			}
		}))
	})
	harness.Figure(t, "%d transfers: nothing was decided for at most %v", all, longest.Round(time.Millisecond))
}

// transfer hands the lead on.
func (tr *trial) transfer() {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(background, answerLimit)
	defer cancel()
	_, err := tr.load.clients[tr.cluster.Leader()].Cluster().Transfer(ctx, &admitv1.TransferRequest{})
	if err != nil {
		tr.t.Errorf("hand the lead on: %v", err)
	}
}

// TestRollingRestart restarts every member in order, the leader last.
func TestRollingRestart(t *testing.T) {
	tr := startTrial(t)
	leader := tr.cluster.Leader()
	for i := range tr.cluster.Nodes {
		n := tr.cluster.Nodes[(leader+1+i)%len(tr.cluster.Nodes)]
		tr.planned(fmt.Sprintf("restart %d", i+1), func() {
			n.Stop()
			n.Restart()
		})
	}
	tr.finish()
}

const (
	entryBatch   = 1000
	entryTenants = 100
)

// TestReadyWithManyEntries kills all members when they hold many entries.
func TestReadyWithManyEntries(t *testing.T) {
	manyEntries := enduranceOf(t).entries
	c := harness.StartCluster(t, harness.Folder(t), members)
	api := c.Nodes[c.Leader()].Dial()
	_, err := api.Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: crashPolicy(crashLimits)})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < manyEntries; i += entryBatch {
		req := &admitv1.ScheduleRequest{Pool: pool}
		for k := range entryBatch {
			req.Entries = append(req.Entries, &admitv1.EntrySpec{
				Tenant: fmt.Sprintf("tenant-%d", k%entryTenants), Key: strconv.Itoa(i + k),
				Due: &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(time.Hour)},
			})
		}
		resp, err := api.DueWork().Schedule(background, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range resp.GetResults() {
			if r.GetStatus() != scheduled {
				t.Fatalf("an entry was answered %v", r)
			}
		}
	}
	for _, n := range c.Nodes {
		n.Kill()
	}
	began := time.Now()
	for _, n := range c.Nodes {
		n.Launch()
	}
	for _, n := range c.Nodes {
		n.AwaitReady(answerLimit)
	}
	took := time.Since(began)
	harness.Figure(t, "ready %v after all were killed with %d entries", took.Round(time.Millisecond), manyEntries)
	if took > allReadyLimit {
		t.Errorf("ready after %v, at most %v is allowed", took, allReadyLimit)
	}
}
