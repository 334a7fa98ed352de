package raftstore

import (
	"errors"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// skew gives each node a clock of its own.
func (c *testCluster) skew() (clocks map[*node]*clock.Skewed) {
	clocks = make(map[*node]*clock.Skewed)
	for _, n := range c.nodes {
		clocks[n] = clock.NewSkewed(clock.System())
		n.clk = clocks[n]
	}
	return clocks
}

// held is a permit, and the cluster's time just after it was granted.
type held struct {
	token admission.Token
	at    admission.Instant
}

func (n *node) hold() held {
	n.t.Helper()
	token := n.mustAcquire("acme")
	at, _ := n.now()
	return held{token, at}
}

// left returns what is left of the permit's 30 s.
func (n *node) left(h held) time.Duration {
	n.t.Helper()
	r := n.do(&admission.Renew{Tokens: []admission.Token{h.token}, TTL: time.Second}).Result.(*admission.RenewResult)
	if r.Renewals[0].Result != admission.LeaseRenewed {
		n.t.Fatalf("the permit is %v", r.Renewals[0].Result)
	}
	return r.Renewals[0].ExpiresIn
}

// No clock makes time outrun what really passed, and what passes without a leader is
// not taken off permits.
func TestTimeAcrossLeaders(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"right": 0, "an hour fast": time.Hour, "an hour slow": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 3, 3)
			clocks := c.skew()
			for _, n := range c.nodes {
				n.begin()
			}
			leader := c.leader()
			leader.applyPolicy(testPolicy())
			permit := leader.hold()
			c.agree()
			// The next leader's clock is as wrong as this one's.
			for _, n := range c.nodes[:2] {
				clocks[n].StepWall(step)
			}
			real := time.Now()
			before, _ := leader.now()
			leader.kill()
			next := c.leader()
			after, _ := next.now()
			passed := time.Since(real)
			if d := after.Sub(before); d > passed || d < 0 {
				t.Errorf("time went on by %v, and %v had passed", d, passed)
			}
			left := next.left(permit)
			now, _ := next.now()
			if least := 30*time.Second - before.Sub(permit.at) - now.Sub(next.term.Load().t0); left < least {
				t.Errorf("the permit has %v left, want at least %v", left, least)
			}
		})
	}
}

// All nodes are killed at once. What they granted holds, and time goes on by no more
// than what passed, though one of them comes back with its clock an hour fast.
func TestAllNodesComeBack(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3, 3)
	clocks := c.skew()
	for _, n := range c.nodes {
		n.begin()
	}
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	permit := leader.hold()
	c.agree()
	real := time.Now()
	before, _ := leader.now()
	for _, n := range c.nodes {
		n.fail(errKilled)
	}
	for _, n := range c.nodes {
		n.kill()
	}
	clocks[leader].StepWall(time.Hour)
	for _, n := range c.nodes {
		// Another process has another monotonic clock.
		clocks[n] = clock.NewSkewed(clocks[n])
		n.clk = clocks[n]
		n.comeBack()
	}
	next := c.leader()
	after, _ := next.now()
	if d, passed := after.Sub(before), time.Since(real); d > passed {
		t.Errorf("time went on by %v, and %v had passed", d, passed)
	}
	if got := next.release(permit.token); got != admission.LeaseReleased {
		t.Errorf("release: %v", got)
	}
	c.agree()
}

// Who waits in line keeps his place when another leads, and is granted once.
func TestWaitersOutliveTheLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	tokens := leader.fill()
	first := leader.ask(t.Context(), waitOp("acme", "r1", 30*time.Second))
	leader.waitWaiting(1, 1)
	second := leader.ask(t.Context(), waitOp("acme", "r2", 30*time.Second))
	leader.waitWaiting(2, 2)
	c.agree()
	leader.kill()
	for _, asked := range []<-chan asked{first, second} {
		if a := told(t, asked); a.err == nil {
			t.Errorf("who waited was told %v", a.err)
		}
	}
	next := c.leader()
	second = next.ask(t.Context(), waitOp("acme", "r2", 30*time.Second))
	next.waitWaiting(2, 1)
	first = next.ask(t.Context(), waitOp("acme", "r1", 30*time.Second))
	next.waitWaiting(2, 2)
	next.release(tokens[0])
	a := told(t, first)
	if a.err != nil || !a.Decision.Granted() {
		t.Fatalf("the first was told %+v, %v", a.AcquireResult, a.err)
	}
	next.waitWaiting(1, 1)
	again := told(t, next.ask(t.Context(), waitOp("acme", "r1", 30*time.Second)))
	if again.err != nil || again.Decision.Permit.Token != a.Decision.Permit.Token {
		t.Errorf("once more the first was told %+v, %v", again.AcquireResult, again.err)
	}
	next.release(tokens[1])
	if a := told(t, second); a.err != nil || !a.Decision.Granted() {
		t.Errorf("the second was told %+v, %v", a.AcquireResult, a.err)
	}
}

// A poll that waits for work is told that it got none, and asks the next leader.
func TestPollsGoToTheNextLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	parked := leader.poll(t.Context(), 1, time.Minute)
	leader.waitParked(1)
	c.agree()
	leader.kill()
	if p := receive(t, parked); p.err == nil || errors.Is(p.err, ErrOutcomeUnknown) {
		t.Errorf("the poll was told %v", p.err)
	}
	next := c.leader()
	parked = next.poll(t.Context(), 1, time.Minute)
	next.waitParked(1)
	next.schedule(0, "k1")
	if p := receive(t, parked); p.err != nil || len(p.claims) != 1 {
		t.Errorf("the poll was told %+v, %v", p.claims, p.err)
	}
}

// A member without the entries that the others have compacted away is given a
// snapshot.
func TestAMemberThatIsFarBehindGetsASnapshot(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3, 3)
	for _, n := range c.nodes {
		n.begin()
	}
	c.leader().applyPolicy(testPolicy())
	behind := c.follower()
	behind.kill()
	leader := c.leader()
	leader.mustAcquire("acme")
	// What compaction would leave is more than a test should write.
	reload := leader.raft.ReloadableConfig()
	reload.TrailingLogs = 1
	if err := leader.raft.ReloadConfig(reload); err != nil {
		t.Fatal(err)
	}
	leader.takeSnapshot()
	leader.mustAcquire("acme")
	leader.takeSnapshot()
	leader.takeSnapshot()
	first, err := leader.wal.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	last, err := behind.raftLastIndex()
	if err != nil || first <= last+1 {
		t.Fatalf("the log begins at %d, and the member has all up to %d (%v)", first, last, err)
	}
	behind.comeBack()
	c.agree()
	c.eventually("it is ready", behind.Ready)
	if got := behind.fsm.installs.Load(); got > 1 {
		t.Errorf("%d snapshots were installed", got)
	}
}

func (n *node) raftLastIndex() (uint64, error) { return lastIndex(n.cfg.Dir + "/" + walDir) }
