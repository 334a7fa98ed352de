package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) dueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "due",
		Short:   "Schedule, show and list due work",
		Example: "  admitctl due schedule email --tenant acme --key welcome-1 --in 10m",
	}
	cmd.AddCommand(a.dueScheduleCommand(), a.dueListCommand(), a.dueGetCommand())
	return group(cmd)
}

// listFlags select what a list shows.
type listFlags struct {
	tenant, lane, before string
	limit                int
}

// pageSize is the most that the API returns at once.
const pageSize = 1000

// page is how many rows to ask for, with n listed already; 0 means none.
func (f *listFlags) page(n int) int32 {
	if f.limit == 0 {
		return pageSize
	}
	return int32(min(f.limit-n, pageSize))
}

func (f *listFlags) check() error {
	if f.limit < 0 {
		return &usageError{fmt.Sprintf("--limit: expected 0 or more, got %d", f.limit)}
	}
	return nil
}

func (a *app) dueListCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:     "list POOL",
		Short:   "List queued and claimed entries",
		Long:    "List queued and claimed entries, those that come due first at the top.",
		Example: "  admitctl due list email --tenant acme --before 2030-01-01T00:00:00Z",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", "", "only this tenant's")
	flags.StringVar(&f.lane, "lane", "", "only this lane's")
	flags.StringVar(&f.before, "before", "", "only what is due before this time, as in 2030-01-31T12:00:00Z")
	flags.IntVar(&f.limit, "limit", 100, "the most to list; 0 for all")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		req := &admitv1.ListEntriesRequest{Pool: args[0], Tenant: f.tenant, Lane: f.lane}
		if f.before != "" {
			t, err := time.Parse(time.RFC3339Nano, f.before)
			if err != nil {
				return &usageError{fmt.Sprintf("--before: expected a time such as 2030-01-31T12:00:00Z, got %q", f.before)}
			}
			req.DueBefore = timestamppb.New(t)
		}
		all, err := listEntries(ctx, c, req, &f)
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { entryTable(w, all.GetEntries()) })
	})
	return cmd
}

// listEntries turns the pages into one answer.
func listEntries(ctx context.Context, c *client.Client, req *admitv1.ListEntriesRequest, f *listFlags) (*admitv1.ListEntriesResponse, error) {
	all := &admitv1.ListEntriesResponse{}
	for {
		req.PageSize = f.page(len(all.GetEntries()))
		resp, err := c.DueWork().ListEntries(ctx, req)
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

func entryTable(w io.Writer, entries []*admitv1.Entry) {
	table(w, "DUE TENANT KEY LANE ROUTE STATE ATTEMPTS RECURS", func(row func(...any)) {
		for _, e := range entries {
			row(moment(e.GetDueAt()), e.GetTenant(), e.GetKey(), e.GetLane(), e.GetRoute(),
				apiName(e.GetState(), "ENTRY_STATE_"), attempts(e), recurs(e))
		}
	})
}

// recurs says how the entry comes back.
func recurs(e *admitv1.Entry) string {
	if e.GetEvery() != nil {
		return "every " + short(e.GetEvery())
	}
	return e.GetCadence()
}

func attempts(e *admitv1.Entry) string {
	return fmt.Sprintf("%d/%d", e.GetAttempts(), e.GetMaxAttempts())
}
