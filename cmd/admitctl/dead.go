package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) deadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dead",
		Short:   "Look at entries that failed for good",
		Example: "  admitctl dead list email",
	}
	cmd.AddCommand(a.deadListCommand())
	return group(cmd)
}

func (a *app) deadListCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:               "list POOL",
		Short:             "List entries that failed for good",
		Long:              "List entries that failed for good, by tenant and key. Scheduling one again with\nother fields revives it.",
		Example:           "  admitctl dead list email --tenant acme -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePool,
	}
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "only this tenant's")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "the most to list; 0 for all")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		all, err := listDead(ctx, c, &admitv1.ListDeadRequest{Pool: args[0], Tenant: f.tenant}, &f)
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

func deadTable(w io.Writer, entries []*admitv1.DeadEntry) {
	table(w, "DIED TENANT KEY LANE REASON ATTEMPTS", func(row func(...any)) {
		for _, d := range entries {
			e := d.GetEntry()
			row(moment(d.GetDiedAt()), e.GetTenant(), e.GetKey(), e.GetLane(), d.GetReason(), attempts(e))
		}
	})
}
