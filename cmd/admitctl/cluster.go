package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) clusterCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the nodes of the cluster and change which they are",
	}
	join := a.clusterChange("join PEER_ADDR", "Take a node in",
		`Take the node that listens for members at PEER_ADDR into the cluster. It has no vote
until it has caught up with the log; then it is given one.`,
		"admitctl cluster join 10.0.0.4:7421", "is a member",
		func(ctx context.Context, c admitv1.ClusterServiceClient, arg string) (proto.Message, error) {
			return c.Join(ctx, &admitv1.JoinRequest{PeerAddr: withPeerPort(arg)})
		})
	cmd.AddCommand(
		a.clusterStatusCommand(),
		join,
		a.clusterChange("promote NODE_ID", "Give a member its vote at once",
			`Give a member its vote at once, however far it is behind: meanwhile the cluster may
wait for it. A node that was taken in is given its vote by itself once it has
caught up.`,
			"admitctl cluster promote node-4-5f1d0b7c2a9e", "has a vote",
			func(ctx context.Context, c admitv1.ClusterServiceClient, arg string) (proto.Message, error) {
				return c.Promote(ctx, &admitv1.PromoteRequest{NodeId: arg})
			}),
		a.clusterChange("remove NODE_ID", "Take a member out, for good",
			`Take a member out, for good: its data can't come back. Stop its process afterwards.
It is refused where too few of the other voters are there to go on.`,
			"admitctl cluster remove node-3-5f1d0b7c2a9e", "is no member any more",
			func(ctx context.Context, c admitv1.ClusterServiceClient, arg string) (proto.Message, error) {
				return c.Remove(ctx, &admitv1.RemoveRequest{NodeId: arg})
			}),
		a.clusterTransferCommand(),
	)
	return group(cmd)
}

func (a *app) clusterStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the nodes of the cluster",
		Long: `Show the nodes of the cluster as the node that is asked sees them: what each is
(leader, voter, or learner while it catches up), whether it answers, and up to
which index of the log it has got. Exits with 4 if no node leads.`,
		Example: "  admitctl cluster status",
		Args:    cobra.NoArgs,
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, _ []string) error {
			resp, err := c.Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
			if err != nil {
				return err
			}
			if err := a.print(resp, func(w io.Writer) { membersText(w, resp) }); err != nil {
				return err
			}
			if resp.GetLeaderId() == "" {
				return &codeError{exitUnreachable, fmt.Errorf("no node leads, as far as %s knows", resp.GetNodeId())}
			}
			return nil
		}),
	}
}

func membersText(w io.Writer, resp *admitv1.ListMembersResponse) {
	table(w, "NODE ROLE STATE APPLIED DECIDED PEERS API", func(row func(...any)) {
		for _, m := range resp.GetMembers() {
			row(m.GetNodeId(), role(m), memberState(m), m.GetAppliedIndex(), decided(m), m.GetPeerAddr(), m.GetGrpcAddr())
		}
	})
}

// decided shows what a member's decisions come to: those that have applied the same
// show the same.
func decided(m *admitv1.Member) string {
	if m.DecisionsDigest == nil {
		return "-"
	}
	return fmt.Sprintf("%016x", m.GetDecisionsDigest())
}

func role(m *admitv1.Member) string {
	switch {
	case m.GetLeader():
		return "leader"
	case m.GetVoter():
		return "voter"
	}
	return "learner"
}

func memberState(m *admitv1.Member) string {
	switch {
	case m.GetReachable():
		return "up"
	case m.GetLastContact() == nil:
		return "down"
	}
	return "down for " + m.GetLastContact().AsDuration().Round(time.Second).String()
}

// clusterChange is a command that changes one member.
func (a *app) clusterChange(use, short, long, example, done string,
	change func(ctx context.Context, c admitv1.ClusterServiceClient, arg string) (proto.Message, error),
) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: "  " + example,
		Args: cobra.ExactArgs(1),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			resp, err := change(ctx, c.Cluster(), args[0])
			if err != nil {
				return err
			}
			a.say("%s %s", args[0], done)
			return a.print(resp, func(io.Writer) {})
		}),
	}
}

func (a *app) clusterTransferCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "transfer [NODE_ID]",
		Short: "Hand the lead to another member",
		Long: `Hand the lead to a member with a vote, or to the one that is furthest in the log. A
leader that is stopped in order does so by itself.`,
		Example: "  admitctl cluster transfer node-2-5f1d0b7c2a9e",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			req := &admitv1.TransferRequest{}
			if len(args) > 0 {
				req.NodeId = args[0]
			}
			resp, err := c.Cluster().Transfer(ctx, req)
			if err != nil {
				return err
			}
			a.say("the lead was handed over")
			return a.print(resp, func(io.Writer) {})
		}),
	}
}

// withPeerPort adds the default port of members to an address without one.
func withPeerPort(addr string) string {
	if strings.Contains(addr, ":") {
		return addr
	}
	return addr + ":" + defaultPeerPort
}
