package raftstore

import (
	"context"
	"errors"
	"testing"

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
