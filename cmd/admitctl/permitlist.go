package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) permitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "permit",
		Short:   "Show who holds permits, and since when",
		Example: "  admitctl permit list email",
	}
	cmd.AddCommand(a.permitListCommand())
	return group(cmd)
}

func (a *app) permitListCommand() *cobra.Command {
	var f listFlags
	var tenant string
	cmd := &cobra.Command{
		Use:   "list POOL",
		Short: "List live permits, the oldest first",
		Long: `List the live permits of a pool, the oldest first: who holds them, for how long
already, and when they expire unless renewed. A permit's token is for its holder
alone; its fence names it here.`,
		Example: "  admitctl permit list email --tenant acme",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().IntVar(&f.limit, "limit", 100, "the most to list; 0 for all")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant's")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		all, err := listPermits(ctx, c, &admitv1.ListPermitsRequest{Pool: args[0], Tenant: tenant}, &f)
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { permitTable(w, all) })
	})
	return cmd
}

// listPermits turns the pages into one answer.
func listPermits(ctx context.Context, c *client.Client, req *admitv1.ListPermitsRequest, f *listFlags) (*admitv1.ListPermitsResponse, error) {
	all := &admitv1.ListPermitsResponse{}
	for {
		req.PageSize = f.page(len(all.GetPermits()))
		resp, err := c.Status().ListPermits(ctx, req)
		if err != nil {
			return nil, err
		}
		all.Permits = append(all.Permits, resp.GetPermits()...)
		if req.GetPageToken() == "" {
			all.Ages = resp.GetAges()
		}
		all.LogIndex, all.NextPageToken = resp.GetLogIndex(), resp.GetNextPageToken()
		if all.NextPageToken == "" || len(all.Permits) == f.limit {
			return all, nil
		}
		req.PageToken = all.NextPageToken
	}
}

func permitTable(w io.Writer, list *admitv1.ListPermitsResponse) {
	table(w, "TENANT LANE HELD EXPIRES COST WORKER FOR STATE", func(row func(...any)) {
		for _, p := range list.GetPermits() {
			row(p.GetTenant(), p.GetLane(), p.GetHeldFor().AsDuration().Round(time.Millisecond),
				p.GetExpiresIn().AsDuration().Round(time.Millisecond), p.GetCost(), p.GetWorkerId(), heldFor(p), permitStateText(p))
		}
	})
	if list.GetNextPageToken() != "" {
		fmt.Fprintln(w, "there are more")
	}
}

// heldFor is what a permit is for, as far as anybody said.
func heldFor(p *admitv1.ListedPermit) string {
	switch {
	case p.GetEntry() != "":
		return p.GetEntry()
	case p.GetBatch():
		return "a batch"
	case p.GetLockKey() != "":
		return "lock " + p.GetLockKey()
	}
	return ""
}

func permitStateText(p *admitv1.ListedPermit) string {
	state := ""
	add := func(is bool, word string) {
		if is && state != "" {
			state += ", "
		}
		if is {
			state += word
		}
	}
	add(p.GetState() == admitv1.PermitState_PERMIT_STATE_CANCELLED, "cancelled")
	add(p.GetBorrowed(), "borrowed")
	add(p.GetUncounted() && !p.GetShare(), "no slot")
	add(p.GetShare(), "share")
	return state
}
