package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// TestFaults puts a cluster under load through one fault after the other. What the
// clients were told must hold afterwards.
func TestFaults(t *testing.T) {
	tr := startTrial(t)
	c := tr.cluster

	leader := c.Leader()
	tr.fault("kill -9 of the leader", c.Nodes[leader].Kill)
	tr.restart(leader)

	follower := c.Follower()
	tr.fault("kill -9 of a follower", c.Nodes[follower].Kill)
	tr.restart(follower)

	leader = c.Leader()
	tr.fault("SIGSTOP of the leader", c.Nodes[leader].Freeze)
	tr.work() // its lease has ended: others lead
	tr.fault("SIGCONT of the old leader", c.Nodes[leader].Thaw)
	tr.work()

	leader = c.Leader()
	tr.fault("a partition with the leader in the minority", func() { c.Net.Isolate(leader) })
	tr.work()
	tr.fault("its end", c.Net.Heal)

	follower = c.Follower()
	tr.fault("a partition with a follower in the minority", func() { c.Net.Isolate(follower) })
	tr.notAnsweredBy(follower)
	tr.work()
	tr.fault("its end", c.Net.Heal)

	leader = c.Leader()
	tr.fault("a leader who is not heard", func() { tr.oneWay(leader, c.Net.Hold) })
	tr.work()
	tr.fault("its end", c.Net.Heal)

	leader = c.Leader()
	tr.fault("a leader who does not hear", func() { tr.oneWay(leader, func(from, to int) { c.Net.Hold(to, from) }) })
	tr.work()
	tr.fault("its end", c.Net.Heal)

	leader = c.Leader()
	tr.fault("a slow network", func() {
		tr.oneWay(leader, func(from, to int) {
			c.Net.Delay(from, to, slowLink)
			c.Net.Delay(to, from, slowLink)
		})
	})
	tr.work()
	tr.fault("its end", c.Net.Heal)

	tr.storm()

	began := time.Now()
	for _, n := range c.Nodes {
		n.Kill()
	}
	tr.fault("kill -9 of all", func() {
		for _, n := range c.Nodes {
			n.Launch()
		}
	})
	for _, n := range c.Nodes {
		n.AwaitReady(allReadyLimit)
	}
	harness.Figure(t, "all were ready %v after the kill", time.Since(began).Round(time.Millisecond))
	tr.work()
	tr.finish()
}

// allReadyLimit is how long all members may take until they serve when all were
// killed.
const allReadyLimit = 10 * time.Second

// unheard is how long a member that nobody hears is asked.
const unheard = 500 * time.Millisecond

// slowLink is how late all between a leader and the others comes in a slow network:
// a round trip is twice that.
const slowLink = 50 * time.Millisecond

// notAnsweredBy tells a member that nobody hears the policy once more. It may know
// who leads, but can't pass that on.
func (tr *trial) notAnsweredBy(member int) {
	tr.t.Helper()
	ctx, cancel := context.WithTimeout(background, unheard)
	defer cancel()
	resp, err := tr.load.clients[member].Policy().ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{Policy: crashPolicy(crashLimits)})
	if err == nil {
		tr.t.Errorf("a member that nobody hears answers: %v", resp)
	}
}

// oneWay does something to each way from a member to another.
func (tr *trial) oneWay(member int, do func(from, to int)) {
	for other := range tr.cluster.Nodes {
		if other != member {
			do(member, other)
		}
	}
}

// stormCalls are so many calls that are sent again, stormWorkers at a time.
const (
	stormCalls   = 300
	stormWorkers = 16
)

// storm sends calls that were answered long ago again, all at once and to any node,
// as a network that doubles and delays would. The oracle compares what they are told.
func (tr *trial) storm() {
	tr.t.Helper()
	calls := tr.calls.Calls()
	again := make(chan proto.Message, stormCalls)
	for range stormCalls {
		c := calls[tr.rng.IntN(len(calls))]
		switch resp := c.Response.(type) {
		case *admitv1.AcquireResponse:
			if resp.GetDecision().GetPermit() != nil { // a refusal may be a grant by now
				again <- c.Request
			}
		case *admitv1.NextDueResponse:
			if len(resp.GetClaims()) > 0 {
				again <- c.Request
			}
		case *admitv1.ReleaseResponse, *admitv1.RenewResponse:
			again <- c.Request
		}
	}
	close(again)
	harness.Figure(tr.t, "%d calls are sent again", len(again))
	var working sync.WaitGroup
	for i := range stormWorkers {
		working.Go(func() {
			for req := range again {
				tr.resend(tr.load.clients[i%len(tr.load.clients)], proto.Clone(req))
			}
		})
	}
	working.Wait()
	tr.work()
}

func (tr *trial) resend(c *client.Client, req proto.Message) {
	ctx, cancel := context.WithTimeout(background, answerLimit)
	defer cancel()
	var err error
	switch req := req.(type) {
	case *admitv1.AcquireRequest:
		_, err = c.Admission().Acquire(ctx, req)
	case *admitv1.NextDueRequest:
		_, err = c.Admission().NextDue(ctx, req)
	case *admitv1.ReleaseRequest:
		_, err = c.Admission().Release(ctx, req)
	case *admitv1.RenewRequest:
		_, err = c.Admission().Renew(ctx, req)
	}
	if err != nil {
		tr.t.Errorf("send %T again: %v", req, err)
	}
}
