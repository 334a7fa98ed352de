package server

import (
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func writeMembers(self string, members []raftstore.Member) *admitv1.ListMembersResponse {
	out := &admitv1.ListMembersResponse{NodeId: self}
	for _, m := range members {
		out.Members = append(out.Members, writeMember(m))
		if m.Leader {
			out.LeaderId = m.NodeID
		}
	}
	return out
}

func writeMember(m raftstore.Member) *admitv1.Member {
	out := &admitv1.Member{
		NodeId:       m.NodeID,
		PeerAddr:     m.PeerAddr,
		GrpcAddr:     m.GRPCAddr,
		Voter:        m.Voter,
		Leader:       m.Leader,
		Reachable:    m.Reachable,
		AppliedIndex: m.Applied,

		DecisionsDigest: m.Digest,
	}
	if m.LastContact >= 0 {
		out.LastContact = durationpb.New(m.LastContact)
	}
	return out
}
