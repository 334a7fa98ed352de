package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// completionTimeout keeps a shell from hanging on a node that is not there.
const completionTimeout = time.Second

// completePool offers the pools of the policy in force as first argument.
func (a *app) completePool(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFirst(cmd, args, func(ctx context.Context, c *client.Client) (names []string, err error) {
		resp, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
		for _, p := range resp.GetPolicy().GetPools() {
			names = append(names, p.GetName())
		}
		return names, err
	})
}

// completeMember offers the members' ids as first argument.
func (a *app) completeMember(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFirst(cmd, args, func(ctx context.Context, c *client.Client) (ids []string, err error) {
		resp, err := c.Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
		for _, m := range resp.GetMembers() {
			ids = append(ids, m.GetNodeId())
		}
		return ids, err
	})
}

// completeFirst offers what the node lists as first argument, and nothing for those
// after it.
func (a *app) completeFirst(
	cmd *cobra.Command, args []string, list func(context.Context, *client.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := a.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.Close()
	values, err := list(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}
