package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "Look at entries that failed for good, and do or drop them",
		Example: `  admitctl dead list email
  admitctl dead redrive email --tenant acme --per-second 10`,
	}
	cmd.AddCommand(a.deadListCommand(), a.deadRedriveCommand(), a.deadPurgeCommand())
	return group(cmd)
}

// deadFlags say which dead entries are meant.
type deadFlags struct {
	filter admitv1.DeadFilter
	reason string
}

// deadReasons are the outcomes that an entry can die of.
var deadReasons = map[string]admitv1.Outcome{
	"FAILED":  admitv1.Outcome_OUTCOME_FAILED,
	"DEAD":    admitv1.Outcome_OUTCOME_DEAD,
	"EXPIRED": admitv1.Outcome_OUTCOME_EXPIRED,
}

func (f *deadFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.filter.Tenant, "tenant", "", "only this tenant's")
	flags.StringVar(&f.filter.Lane, "lane", "", "only this lane's")
	flags.StringVar(&f.filter.KeyPrefix, "key-prefix", "", "only those whose key begins so")
	flags.StringVar(&f.reason, "reason", "", "only those whose last attempt ended FAILED, DEAD or EXPIRED")
	reasons := slices.Sorted(maps.Keys(deadReasons))
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasons, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (f *deadFlags) check() error {
	if f.reason == "" {
		return nil
	}
	outcome, ok := deadReasons[strings.ToUpper(f.reason)]
	if !ok {
		return &usageError{fmt.Sprintf("--reason: expected FAILED, DEAD or EXPIRED, got %q", f.reason)}
	}
	f.filter.Outcome = outcome
	return nil
}

func (a *app) deadListCommand() *cobra.Command {
	var which deadFlags
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list POOL",
		Short: "List entries that failed for good",
		Long: `List entries that failed for good, by tenant and key. "dead redrive" does them
after all, scheduling one again with other fields revives it as well; those that
nobody cares for are dropped after the pool's dead_retention. The attempts that
failed are in the JSON, and in "due get".`,
		Example: "  admitctl dead list email --tenant acme --reason EXPIRED -o json",
		Args:    cobra.ExactArgs(1),
	}
	which.register(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 100, "the most to list; 0 for all")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if err := which.check(); err != nil {
			return err
		}
		all, err := listDead(ctx, c, &admitv1.ListDeadRequest{Pool: args[0], Filter: &which.filter}, &f)
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { deadTable(w, all.GetEntries()) })
	})
	return cmd
}

// listDead turns the pages into one answer.
func listDead(ctx context.Context, c *client.Client, req *admitv1.ListDeadRequest, f *listFlags) (*admitv1.ListDeadResponse, error) {
	all := &admitv1.ListDeadResponse{}
	for {
		req.PageSize = f.page(len(all.GetEntries()))
		resp, err := c.DueWork().ListDead(ctx, req)
		if err != nil {
			return nil, err
		}
		all.Entries = append(all.Entries, resp.GetEntries()...)
		all.NextPageToken, all.LogIndex = resp.GetNextPageToken(), resp.GetLogIndex()
		if all.NextPageToken == "" || len(all.Entries) == f.limit {
			return all, nil
		}
		req.PageToken = all.NextPageToken
	}
}

func deadTable(w io.Writer, entries []*admitv1.Entry) {
	table(w, "DIED TENANT KEY LANE REASON ATTEMPTS", func(row func(...any)) {
		for _, e := range entries {
			reason := ""
			if n := len(e.GetHistory()); n > 0 {
				reason = apiName(e.GetHistory()[n-1].GetOutcome(), "OUTCOME_")
			}
			row(moment(e.GetDiedAt()), e.GetTenant(), e.GetKey(), e.GetLane(), reason, attempts(e))
		}
	})
}
