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

func (a *app) tenantCommand() *cobra.Command {
	cmd := a.pausableCommand("tenant", "TENANT", "acme")
	cmd.Short = "Show tenants, give them rows of their own, pause and resume them"
	cmd.AddCommand(a.tenantGetCommand(), a.tenantListCommand(), a.tenantSetCommand(), a.tenantUnsetCommand())
	return cmd
}

func (a *app) tenantGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "get POOL TENANT",
		Short:   "Show one tenant",
		Long:    "Show one tenant: what it uses, what holds for it, and where that comes from.",
		Example: "  admitctl tenant get email acme",
		Args:    cobra.ExactArgs(2),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			resp, err := c.Status().GetTenant(ctx, &admitv1.GetTenantRequest{Pool: args[0], Tenant: args[1]})
			if err != nil {
				return err
			}
			return a.print(resp, func(w io.Writer) {
				tenantTable(w, []*admitv1.TenantStatus{resp.GetTenant()})
				tenantParts(w, resp.GetTenant())
			})
		}),
	}
}

func (a *app) tenantListCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list POOL",
		Short: "List tenants",
		Long: `List the tenants that the pool knows at present, and those with an override or a
row of their own, by id.`,
		Example: "  admitctl tenant list email --limit 0",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().IntVar(&f.limit, "limit", 100, "the most to list; 0 for all")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		all, err := listTenants(ctx, c, args[0], &f)
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { tenantTable(w, all.GetTenants()) })
	})
	return cmd
}

// listTenants turns the pages into one answer.
func listTenants(ctx context.Context, c *client.Client, pool string, f *listFlags) (*admitv1.ListTenantsResponse, error) {
	all := &admitv1.ListTenantsResponse{}
	req := &admitv1.ListTenantsRequest{Pool: pool}
	for {
		req.PageSize = f.page(len(all.GetTenants()))
		resp, err := c.Status().ListTenants(ctx, req)
		if err != nil {
			return nil, err
		}
		all.Tenants = append(all.Tenants, resp.GetTenants()...)
		all.NextPageToken, all.LogIndex = resp.GetNextPageToken(), resp.GetLogIndex()
		if all.NextPageToken == "" || len(all.Tenants) == f.limit {
			return all, nil
		}
		req.PageToken = all.NextPageToken
	}
}

func tenantTable(w io.Writer, tenants []*admitv1.TenantStatus) {
	table(w, "TENANT ACTIVE MAX PREFERRED WEIGHT DEBT ENTRIES FROM STATE", func(row func(...any)) {
		for _, t := range tenants {
			s := t.GetShare()
			limit := ""
			if s.MaxActive != nil {
				limit = fmt.Sprint(s.GetMaxActive())
			}
			row(s.GetId(), t.GetActive(), limit, s.GetPreferredActive(), s.GetWeight(), t.GetDebt(), t.GetEntries(),
				strings.ToLower(apiName(t.GetSource(), "SOURCE_")), pausedText(t.GetPaused(), ""))
		}
	})
}

// unknownTenant says that there is no tenant behind what is shown.
func unknownTenant(id string) string {
	return fmt.Sprintf("the pool does not know tenant %s: this is how it would begin", id)
}

// tenantParts writes what has no place in the table.
func tenantParts(w io.Writer, t *admitv1.TenantStatus) {
	if t.GetUnknown() {
		fmt.Fprintln(w, unknownTenant(t.GetShare().GetId()))
	}
	fmt.Fprintf(w, "lane: %s\n", t.GetShare().GetLane())
	caps := t.GetShare().GetLaneMaxActive()
	for _, lane := range slices.Sorted(maps.Keys(caps)) {
		fmt.Fprintf(w, "at most %d permits in lane %s and below\n", caps[lane], lane)
	}
	if len(t.GetBuckets()) > 0 {
		bucketTable(w, t.GetBuckets())
	}
}
