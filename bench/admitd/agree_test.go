package admitd

import (
	"testing"

	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func TestMembersHaveToHaveDecidedTheSame(t *testing.T) {
	member := func(index, digest uint64) *admitv1.Member {
		return &admitv1.Member{NodeId: "n", Reachable: true, AppliedIndex: index, DecisionsDigest: proto.Uint64(digest)}
	}
	gone, silent := member(5, 1), member(5, 1)
	gone.Reachable, silent.DecisionsDigest = false, nil
	for _, test := range []struct {
		name    string
		members []*admitv1.Member
		nodes   int
		same    bool
	}{
		{"the same", []*admitv1.Member{member(5, 1), member(5, 1)}, 2, true},
		{"another digest", []*admitv1.Member{member(5, 1), member(5, 2)}, 2, false},
		{"another place", []*admitv1.Member{member(5, 1), member(6, 1)}, 2, false},
		{"one does not answer", []*admitv1.Member{member(5, 1), gone}, 2, false},
		{"one tells no digest", []*admitv1.Member{member(5, 1), silent}, 2, false},
		{"one is missing", []*admitv1.Member{member(5, 1)}, 2, false},
		{"alone, with nobody to compare with", []*admitv1.Member{silent}, 1, true},
	} {
		if err := same(test.members, test.nodes); (err == nil) != test.same {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
