package server

import (
	"context"

	"github.com/admitd/admit/raftstore"
)

// fakeMembers are members that somebody else keeps.
type fakeMembers struct {
	members []raftstore.Member
	// changes are those that were asked for, in words.
	changes []string
	// refuse is what every change answers, if set.
	refuse error
}

func (f *fakeMembers) NodeID() string { return "n1" }

func (f *fakeMembers) Members(context.Context) ([]raftstore.Member, error) { return f.members, nil }

func (f *fakeMembers) Join(_ context.Context, addr string) error { return f.change("join " + addr) }

func (f *fakeMembers) Promote(_ context.Context, id string) error { return f.change("promote " + id) }

func (f *fakeMembers) Remove(_ context.Context, id string) error { return f.change("remove " + id) }

func (f *fakeMembers) Transfer(_ context.Context, id string) error { return f.change("transfer " + id) }

func (f *fakeMembers) change(what string) error {
	f.changes = append(f.changes, what)
	return f.refuse
}
