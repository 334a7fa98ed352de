package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// completionTimeout keeps a shell from hanging on a node that is not there.
const completionTimeout = time.Second

// offer lists what may be meant, in a pool where there is one.
type offer func(ctx context.Context, c *client.Client, pool string) ([]string, error)

// offered are the arguments that the node knows values for, by their names in a
// command's Use, and offeredFlags the flags.
var (
	offered = map[string]offer{
		"POOL": pools, "TENANT": tenants, "LANE": lanes, "BUCKET": poolBuckets, "NODE_ID": members, "REVISION": revisions,
	}
	offeredFlags = map[string]offer{
		"tenant": tenants, "lane": lanes, "bucket": poolBuckets, "category": categories,
		"revision": revisions, "expected-revision": revisions,
	}
)

// completeArguments has a shell offer what the node knows, in all commands below.
func (a *app) completeArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		a.completeArguments(sub)
	}
	if words := arguments(cmd.Use); len(words) > 0 && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = a.completesWords(words)
	}
	for name, list := range offeredFlags {
		if cmd.LocalNonPersistentFlags().Lookup(name) == nil {
			continue
		}
		if _, has := cmd.GetFlagCompletionFunc(name); has {
			continue
		}
		err := cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.ask(cmd, args, list)
		})
		if err != nil {
			panic(err) // the flag was found just now
		}
	}
}

// arguments are the names of a command's arguments: `get POOL --key KEY` has POOL.
func arguments(use string) (words []string) {
	fields := strings.Fields(use)[1:]
	for i := 0; i < len(fields) && fields[i] != "--"; i++ {
		if strings.HasPrefix(fields[i], "--") {
			i++ // and its value
			continue
		}
		words = append(words, strings.TrimSuffix(strings.Trim(fields[i], "[]"), "..."))
	}
	return words
}

func (a *app) completesWords(words []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		word := words[min(len(args), len(words)-1)]
		switch list := offered[word]; {
		case word == "FILE":
			return nil, cobra.ShellCompDirectiveDefault
		case list == nil || len(args) >= len(words):
			return nil, cobra.ShellCompDirectiveNoFileComp
		default:
			return a.ask(cmd, args, list)
		}
	}
}

// ask has the node list what may be meant.
func (a *app) ask(cmd *cobra.Command, args []string, list offer) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	c, err := a.dial()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer c.Close()
	pool := ""
	if len(args) > 0 {
		pool = args[0]
	}
	values, err := list(ctx, c, pool)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}

func pools(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	resp, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
	for _, p := range resp.GetPolicy().GetPools() {
		names = append(names, p.GetName())
	}
	return names, err
}

// tenants are the first of a pool: shells that are offered more show none of it.
func tenants(ctx context.Context, c *client.Client, pool string) (ids []string, err error) {
	resp, err := c.Status().ListTenants(ctx, &admitv1.ListTenantsRequest{Pool: pool, PageSize: pageSize})
	for _, t := range resp.GetTenants() {
		ids = append(ids, t.GetShare().GetId())
	}
	return ids, err
}

func lanes(ctx context.Context, c *client.Client, pool string) (names []string, err error) {
	resp, err := c.Status().QueueHealth(ctx, &admitv1.QueueHealthRequest{Pool: pool})
	for _, p := range resp.GetPools() {
		for _, l := range p.GetLanes() {
			names = append(names, l.GetLane())
		}
	}
	return names, err
}

func poolBuckets(ctx context.Context, c *client.Client, pool string) (names []string, err error) {
	resp, err := c.Status().QueueHealth(ctx, &admitv1.QueueHealthRequest{Pool: pool})
	for _, p := range resp.GetPools() {
		for _, b := range p.GetBuckets() {
			names = append(names, b.GetBucket())
		}
	}
	return names, err
}

func categories(ctx context.Context, c *client.Client, pool string) (names []string, err error) {
	resp, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
	for _, p := range resp.GetPolicy().GetPools() {
		for category := range p.GetCategories() {
			if p.GetName() == pool {
				names = append(names, category)
			}
		}
	}
	return names, err
}

func members(ctx context.Context, c *client.Client, _ string) (ids []string, err error) {
	resp, err := c.Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
	for _, m := range resp.GetMembers() {
		ids = append(ids, m.GetNodeId())
	}
	return ids, err
}

func revisions(ctx context.Context, c *client.Client, _ string) (numbers []string, err error) {
	resp, err := c.Policy().ListRevisions(ctx, &admitv1.ListRevisionsRequest{})
	for _, r := range resp.GetRevisions() {
		numbers = append(numbers, fmt.Sprint(r.GetRevision()))
	}
	return numbers, err
}
