package peer

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// pair returns the transports of two members, and the second's port.
func pair(t *testing.T) (*Transport, *Transport, *Port) {
	t.Helper()
	ca := newAuthority(t, "n1", "n2")
	p1 := open(t, ca.node("n1"), &fake{id: "n1-a", cluster: "c"})
	p2 := open(t, ca.node("n2"), &fake{id: "n2-b", cluster: "c"}, func(p *Port) { p.stall = 200 * time.Millisecond })
	t1, t2 := p1.Raft(10*time.Second, hclog.NewNullLogger()), p2.Raft(10*time.Second, hclog.NewNullLogger())
	t.Cleanup(func() { t1.Close(); t2.Close() })
	return t1, t2, p2
}

// Heartbeats go the way of all requests, whatever raft would like
// (hashicorp/raft#695).
func TestHeartbeatsPassThroughTheMainLoop(t *testing.T) {
	t1, t2, p2 := pair(t)
	t2.SetHeartbeatHandler(func(raft.RPC) { t.Error("a heartbeat passed by") })
	go func() {
		rpc := <-t2.Consumer()
		rpc.Respond(&raft.AppendEntriesResponse{Term: 7, Success: true}, nil)
	}()
	beat := raft.AppendEntriesRequest{Term: 7, RPCHeader: raft.RPCHeader{Addr: []byte("x")}}
	var resp raft.AppendEntriesResponse
	if err := t1.AppendEntries("n2-b", Target("n2-b", p2.addr()), &beat, &resp); err != nil {
		t.Fatal(err)
	}
	if !resp.Success {
		t.Errorf("got %+v", resp)
	}
}

// With one request under way at a time there is no pipeline that could get stuck
// (hashicorp/raft#612).
func TestNothingIsPipelined(t *testing.T) {
	t1, _, p2 := pair(t)
	_, err := t1.AppendEntriesPipeline("n2-b", Target("n2-b", p2.addr()))
	if err != raft.ErrPipelineReplicationNotSupported {
		t.Errorf("got %v", err)
	}
}

func TestMembersAreFoundWhereTheySaidLast(t *testing.T) {
	t1, t2, p2 := pair(t)
	go func() {
		for range 2 {
			rpc := <-t2.Consumer()
			rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
		}
	}()
	ask := func(id raft.ServerID) error {
		var resp raft.RequestPreVoteResponse
		return t1.RequestPreVote(id, Target(string(id), "127.0.0.1:1"), &raft.RequestPreVoteRequest{}, &resp)
	}
	if err := ask("n2-b"); err == nil {
		t.Error("found at an address that nobody has")
	}
	t1.book.note(Address{NodeID: "n2-b", PeerAddr: p2.addr()})
	if err := ask("n2-b"); err != nil {
		t.Errorf("not found where it said: %v", err)
	}
	// At the address of one that was there before, another answers for itself alone.
	t1.book.note(Address{NodeID: "n2-old", PeerAddr: p2.addr()})
	if err := ask("n2-old"); err == nil {
		t.Error("another node answered")
	}
	// Where it was last is a hint, the configuration the rule.
	if err := ask("n2-b"); err != nil {
		t.Errorf("the second time: %v", err)
	}
	t1.book.doubt("n2-b")
	if got := t1.target("n2-b", "n2-b@10.0.0.1:7421"); got != "n2-b@10.0.0.1:7421" {
		t.Errorf("the target is %s", got)
	}
}

// Only who took entries has confirmed a leader, and no later than they were sent.
func TestWhatConfirmsALeader(t *testing.T) {
	t1, t2, p2 := pair(t)
	send := func(answer raft.AppendEntriesResponse, before func()) {
		t.Helper()
		go func() {
			rpc := <-t2.Consumer()
			before()
			rpc.Respond(&answer, nil)
		}()
		var resp raft.AppendEntriesResponse
		if err := t1.AppendEntries("n2-b", Target("n2-b", p2.addr()), &raft.AppendEntriesRequest{Term: 7}, &resp); err != nil {
			t.Fatal(err)
		}
	}
	confirmed := func() time.Time { return t1.book.Confirmed("n2-b") }
	at := func() {}
	send(raft.AppendEntriesResponse{Term: 8}, at)
	send(raft.AppendEntriesResponse{Term: 8, Success: true}, at)
	send(raft.AppendEntriesResponse{Term: 7}, at)
	t1.book.note(Address{NodeID: "n2-b", PeerAddr: p2.addr()})
	t1.book.heard("n2-b")
	if got := confirmed(); !got.IsZero() {
		t.Errorf("who refused, or called, has confirmed at %v", got)
	}
	var arrived time.Time
	send(raft.AppendEntriesResponse{Term: 7, Success: true}, func() { arrived = time.Now() })
	first := confirmed()
	if first.IsZero() || first.After(arrived) {
		t.Errorf("confirmed at %v what arrived at %v", first, arrived)
	}
	t1.book.note(Address{NodeID: "n2-b", PeerAddr: p2.addr()})
	send(raft.AppendEntriesResponse{Term: 8}, at)
	if got := confirmed(); got != first {
		t.Errorf("what confirms nothing moved it from %v to %v", first, got)
	}
}

// Raft reads a snapshot to its end, however long that takes.
func TestASnapshotThatStopsIsCutOff(t *testing.T) {
	t1, t2, p2 := pair(t)
	cut := make(chan error, 1)
	go func() {
		rpc := <-t2.Consumer()
		_, err := io.Copy(io.Discard, rpc.Reader)
		rpc.Respond(&raft.InstallSnapshotResponse{}, err)
		cut <- err
	}()
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		// The first bytes are more than the sender's buffer.
		_, _ = w.Write(bytes.Repeat([]byte{1}, 1<<20))
	}()
	sent := make(chan error, 1)
	go func() {
		var resp raft.InstallSnapshotResponse
		args := &raft.InstallSnapshotRequest{Size: 2 << 20}
		sent <- t1.InstallSnapshot("n2-b", Target("n2-b", p2.addr()), args, &resp, r)
	}()
	select {
	case err := <-cut:
		if err == nil {
			t.Error("a snapshot without its end was taken")
		}
	case <-time.After(10 * time.Second):
		t.Error("the receiver waits on")
	}
	w.Close()
	<-sent
}

func TestARequestIsToGoOn(t *testing.T) {
	ours, theirs := net.Pipe()
	c := &inbound{Conn: ours, stall: 50 * time.Millisecond}
	defer theirs.Close()
	defer c.Close()
	go func() {
		idle := time.NewTimer(4 * c.stall)
		<-idle.C
		_, _ = theirs.Write([]byte{1})
	}()
	b := make([]byte, 1)
	if _, err := c.Read(b); err != nil {
		t.Errorf("between requests: %v", err)
	}
	if _, err := c.Read(b); err == nil {
		t.Error("in the middle of a request it waits for ever")
	}
	// An answer that nobody reads ends, too.
	if _, err := c.Write(b); err == nil {
		t.Error("an answer waits for ever")
	}
}
