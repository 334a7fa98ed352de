package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func TestMembersAreShownAsTheStoreSeesThem(t *testing.T) {
	store := newFakeStore()
	store.members = []raftstore.Member{
		{NodeID: "n1", PeerAddr: "10.0.0.1:7421", GRPCAddr: "10.0.0.1:7420", Voter: true, Reachable: true, Applied: 7, Digest: new(uint64(11))},
		{NodeID: "n2", PeerAddr: "10.0.0.2:7421", Voter: true, Leader: true, LastContact: 3 * time.Second, Applied: 9},
		{NodeID: "n3", PeerAddr: "10.0.0.3:7421", LastContact: -1},
	}
	got, err := start(t, store).cluster.ListMembers(soon(t), &admitv1.ListMembersRequest{})
	want := &admitv1.ListMembersResponse{NodeId: "n1", LeaderId: "n2", Members: []*admitv1.Member{
		{
			NodeId: "n1", PeerAddr: "10.0.0.1:7421", GrpcAddr: "10.0.0.1:7420", Voter: true, Reachable: true,
			LastContact: durationpb.New(0), AppliedIndex: 7, DecisionsDigest: new(uint64(11)),
		},
		{NodeId: "n2", PeerAddr: "10.0.0.2:7421", Voter: true, Leader: true, LastContact: durationpb.New(3 * time.Second), AppliedIndex: 9},
		{NodeId: "n3", PeerAddr: "10.0.0.3:7421"},
	}}
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got  %v, %v\nwant %v", got, err, want)
	}
}

func TestChangesOfMembersReachTheStore(t *testing.T) {
	store := newFakeStore()
	h := start(t, store)
	ctx := soon(t)
	change := func(refusal error) (failed []error) {
		store.refuse, store.changes = refusal, nil
		_, err := h.cluster.Join(ctx, &admitv1.JoinRequest{PeerAddr: "[::1]:7421"})
		failed = append(failed, err)
		_, err = h.cluster.Promote(ctx, &admitv1.PromoteRequest{NodeId: "n2"})
		failed = append(failed, err)
		_, err = h.cluster.Remove(ctx, &admitv1.RemoveRequest{NodeId: "n3"})
		failed = append(failed, err)
		_, err = h.cluster.Transfer(ctx, &admitv1.TransferRequest{})
		return append(failed, err)
	}
	for _, err := range change(nil) {
		if err != nil {
			t.Error(err)
		}
	}
	if want := []string{"join [::1]:7421", "promote n2", "remove n3", "transfer "}; !slices.Equal(store.changes, want) {
		t.Errorf("got %q, want %q", store.changes, want)
	}
	for _, err := range change(fmt.Errorf("%w: n9", raftstore.ErrUnknownMember)) {
		if got := tell(t, err); got.code != codes.NotFound || got.reason != "MEMBER_NOT_FOUND" || !strings.HasSuffix(got.text, ": n9") {
			t.Errorf("got %+v", got)
		}
	}
	// Nothing of a change can happen twice.
	for _, err := range change(raftstore.ErrOutcomeUnknown) {
		if got := tell(t, err); got.code != codes.Unavailable || got.reason != "OUTCOME_UNKNOWN" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestMembersThatAreNone(t *testing.T) {
	store := newFakeStore()
	h := start(t, store)
	for _, addr := range []string{
		"", "10.0.0.1", "10.0.0.1:0", ":7421", "10.0.0.1:65536", "10.0.0.1:x", "a b:1", "a/b:1", strings.Repeat("x", 300) + ":1",
	} {
		_, err := h.cluster.Join(soon(t), &admitv1.JoinRequest{PeerAddr: addr})
		if got := tell(t, err); got.code != codes.InvalidArgument || got.fields != "peer_addr" {
			t.Errorf("%q: got %+v", addr, got)
		}
	}
	for _, id := range []string{"", "a b", strings.Repeat("x", 129)} {
		_, promote := h.cluster.Promote(soon(t), &admitv1.PromoteRequest{NodeId: id})
		_, remove := h.cluster.Remove(soon(t), &admitv1.RemoveRequest{NodeId: id})
		errs := []error{promote, remove}
		if id != "" {
			_, transfer := h.cluster.Transfer(soon(t), &admitv1.TransferRequest{NodeId: id})
			errs = append(errs, transfer)
		}
		for _, err := range errs {
			if got := tell(t, err); got.code != codes.InvalidArgument || got.fields != "node_id" {
				t.Errorf("%q: got %+v", id, got)
			}
		}
	}
	if len(store.changes) > 0 {
		t.Errorf("the store was asked to %q", store.changes)
	}
}
