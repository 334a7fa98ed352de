package e2e

import (
	"cmp"
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	"github.com/admitd/admit/e2e/oracle"
	"github.com/admitd/admit/internal/logline"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	members = 3
	// clusterTry is how long a client waits for one node before it asks another.
	clusterTry = 2 * time.Second
	// successLimit is how long the cluster may take to decide again after a fault
	// that it can get over, or once the others have ended.
	successLimit = 6 * time.Second
)

// trial is a cluster under load whose word is checked at the end.
type trial struct {
	t       *testing.T
	dir     string
	cluster *harness.Cluster
	load    *load
	calls   *oracle.Recorder
	rng     *rand.Rand
	// gaps are the times from faults to the first success.
	gaps []time.Duration
	// log is what was collected of the log from members that were killed.
	log []logline.Line
}

// startTrial starts three members and clients of all of them.
func startTrial(t *testing.T, opts ...harness.ClusterOption) *trial {
	t.Helper()
	seed := crashSeed(t)
	tr := &trial{t: t, dir: harness.Folder(t), rng: rand.New(rand.NewPCG(seed, 0))}
	tr.cluster = harness.StartCluster(t, tr.dir, members, opts...)
	rec := judge.NewRecorder(time.Now())
	tr.calls = oracle.NewRecorder(rec.Now)
	tr.load = &load{t: t, tryLimit: clusterTry, rec: rec}
	for _, n := range tr.cluster.Nodes {
		tr.load.clients = append(tr.load.clients, n.Dial(tr.recording()))
	}
	tr.load.start(seed)
	tr.work()
	return tr
}

// recording has the calls of a client written down for the oracle.
func (tr *trial) recording() client.Option {
	return client.WithDialOptions(grpc.WithChainUnaryInterceptor(tr.calls.Intercept))
}

// work lets the clients work until they were answered so often again.
func (tr *trial) work() {
	tr.t.Helper()
	before := tr.load.rec.Acknowledged()
	harness.WaitFor(tr.t, answerLimit, "answers", func() bool {
		return tr.load.rec.Acknowledged() >= before+answersBeforeKill
	})
}

// fault does something bad and waits for the first call that is sent after it and
// decided by the log.
func (tr *trial) fault(name string, do func()) {
	tr.t.Helper()
	do()
	tr.recovers(name, tr.load.rec.Now())
}

// recovers waits for the first success after a moment, which must come soon.
func (tr *trial) recovers(name string, since judge.Moment) {
	tr.t.Helper()
	var gap time.Duration
	harness.WaitFor(tr.t, answerLimit, "a success after "+name, func() (found bool) {
		gap, found = tr.calls.FirstSent(since)
		return found
	})
	tr.gaps = append(tr.gaps, gap)
	harness.Figure(tr.t, "first success %v after %s", gap.Round(time.Millisecond), name)
	if gap > successLimit {
		tr.t.Errorf("first success %v after %s, at most %v is allowed", gap, name, successLimit)
	}
}

// restart starts a member that was killed, and lets it work.
func (tr *trial) restart(member int) {
	tr.t.Helper()
	tr.cluster.Nodes[member].Restart()
	tr.work()
}

// finish ends all faults, works off what is there, stops the cluster, and checks
// everything.
func (tr *trial) finish() {
	tr.t.Helper()
	tr.cluster.Net.Heal()
	tr.recovers("healing", tr.load.rec.Now())
	tr.load.finish()
	tr.decideAlike()
	logs := tr.logs()
	h, calls := tr.load.rec.History(), tr.calls.Calls()
	judged, checked := judge.Judge(h, crashLimits), oracle.Check(logs, calls, oracle.NewCore())
	objections := slices.Concat(judged.Objections, checked.Objections)
	harness.Figure(tr.t, "%d entries; %d answers, %d of them with permits; %d releases, %d schedules; %d tries had no answer",
		len(logs), len(calls), len(h.Answers), len(h.Releases), len(h.Schedules), tr.load.unknown.Load())
	tr.bothCores(logs)
	harness.Figure(tr.t, "%v; %d locks undecided; %d objections", judged, checked.Undecided, len(objections))
	for _, o := range objections[:min(len(objections), 20)] {
		tr.t.Error(o)
	}
	if len(objections) > 0 {
		keepHistory(tr.t, filepath.Join(tr.dir, "history.json"), h)
	}
}

// decideAlike waits until all members have applied the same, and wants what they
// decided to come to the same.
func (tr *trial) decideAlike() {
	tr.t.Helper()
	var seen []*admitv1.Member
	harness.WaitFor(tr.t, successLimit, "all members to have applied the same", func() bool {
		ctx, cancel := context.WithTimeout(background, clusterTry)
		defer cancel()
		resp, err := tr.load.clients[0].Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
		seen = resp.GetMembers()
		return err == nil && len(seen) == members && !slices.ContainsFunc(seen, func(m *admitv1.Member) bool {
			return m.DecisionsDigest == nil || m.GetAppliedIndex() != seen[0].GetAppliedIndex()
		})
	})
	for _, m := range seen {
		if m.GetDecisionsDigest() != seen[0].GetDecisionsDigest() {
			tr.t.Errorf("after entry %d the members' decisions differ: %v", m.GetAppliedIndex(), seen)
		}
	}
}

// collectBack is how far back a member's log is read again, for entries that it has
// instead of others that were never committed.
const collectBack = 3000

// collect reads on in the log of a member that does not run, before snapshots take
// the place of it.
func (tr *trial) collect(n *harness.Node) {
	tr.t.Helper()
	from := uint64(0)
	if last := len(tr.log) - 1; last > collectBack {
		from = tr.log[last-collectBack].Entry.Index
	}
	log := n.Log(from)
	if len(log) == 0 {
		return
	}
	if len(tr.log) > 0 && log[len(log)-1].Entry.Index < tr.log[len(tr.log)-1].Entry.Index {
		return // it has fallen behind
	}
	keep, _ := slices.BinarySearchFunc(tr.log, log[0].Entry.Index, func(l logline.Line, index uint64) int {
		return cmp.Compare(l.Entry.Index, index)
	})
	tr.log = append(tr.log[:keep], log...)
}

// logs stops the members and returns their log, which must be one.
func (tr *trial) logs() []logline.Line {
	tr.t.Helper()
	var longest []logline.Line
	for _, n := range tr.cluster.Nodes {
		n.Kill()
		log := n.Log(0)
		tr.agree(log, longest)
		if len(longest) == 0 || len(log) > 0 && log[len(log)-1].Entry.Index > longest[len(longest)-1].Entry.Index {
			longest = log
		}
		tr.collect(n)
	}
	tr.agree(longest, tr.log)
	return tr.log
}

// agree compares two members' logs where both have entries.
func (tr *trial) agree(a, b []logline.Line) {
	tr.t.Helper()
	other := map[uint64]logline.Line{}
	for _, l := range b {
		other[l.Entry.Index] = l
	}
	for _, l := range a {
		if o, both := other[l.Entry.Index]; both && !reflect.DeepEqual(l, o) {
			tr.t.Errorf("members disagree about entry %d: %+v and %+v", l.Entry.Index, l, o)
			return
		}
	}
}
