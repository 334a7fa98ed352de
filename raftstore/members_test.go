package raftstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/internal/clock"
)

func TestALoneNodeIsItsOnlyMember(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	if l := n.Leader(); l.NodeID != n.NodeID() {
		t.Errorf("the leader is %+v, the node %s", l, n.NodeID())
	}
	members, err := n.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Member{NodeID: n.NodeID(), Voter: true, Leader: true, Reachable: true, Applied: n.index()}
	if len(members) != 1 || members[0] != want {
		t.Errorf("the members are %+v, want %+v", members, want)
	}
	for what, change := range map[string]struct {
		make func(context.Context) error
		want error
	}{
		"join":           {func(ctx context.Context) error { return n.Join(ctx, "127.0.0.1:1") }, ErrMembership},
		"promote":        {func(ctx context.Context) error { return n.Promote(ctx, n.NodeID()) }, nil},
		"promote nobody": {func(ctx context.Context) error { return n.Promote(ctx, "nobody") }, ErrUnknownMember},
		"remove":         {func(ctx context.Context) error { return n.Remove(ctx, n.NodeID()) }, ErrMembership},
		"remove nobody":  {func(ctx context.Context) error { return n.Remove(ctx, "nobody") }, ErrUnknownMember},
		"transfer":       {func(ctx context.Context) error { return n.Transfer(ctx, "") }, ErrMembership},
	} {
		if err := change.make(t.Context()); !errors.Is(err, change.want) {
			t.Errorf("%s: %v, want %v", what, err, change.want)
		}
	}
}

// latent is raft's answer to a change, which comes when it is closed.
type latent chan struct{}

func (h latent) Error() error {
	<-h
	return nil
}

// The next change waits for one that is under way, though nobody waits for that.
func TestChangesAreMadeOneByOne(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	first, began := make(latent), 0
	change := func(ctx context.Context, f raft.Future) error {
		return n.change(ctx, func(time.Duration) (raft.Future, error) {
			began++
			return f, nil
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for began == 0 { // of two ways to end, the caller's may come first
		if err := change(gone, first); !errors.Is(err, ErrOutcomeUnknown) && !errors.Is(err, ErrMembership) {
			t.Fatalf("a caller who goes is told %v", err)
		}
	}
	if err := change(gone, nil); !errors.Is(err, ErrMembership) || began != 1 {
		t.Errorf("%d were begun at once: %v", began, err)
	}
	close(first)
	if err := change(t.Context(), nil); err != nil || began != 2 {
		t.Errorf("after it: %v", err)
	}
}

// A transfer that raft has not begun when it ends it never answers.
func TestAChangeWithoutAnAnswerDoesNotHoldUpClose(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	never, begun, told := make(latent), make(chan struct{}), make(chan error, 1)
	go func() {
		told <- n.change(t.Context(), func(time.Duration) (raft.Future, error) {
			close(begun)
			return never, nil
		})
	}()
	<-begun
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := <-told; !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the caller was told %v", err)
	}
	close(never)
}
