package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

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

// tenantParts writes what has no place in the table.
func tenantParts(w io.Writer, t *admitv1.TenantStatus) {
	fmt.Fprintf(w, "lane: %s\n", t.GetShare().GetLane())
	caps := t.GetShare().GetLaneMaxActive()
	for _, lane := range slices.Sorted(maps.Keys(caps)) {
		fmt.Fprintf(w, "at most %d permits in lane %s and below\n", caps[lane], lane)
	}
	if len(t.GetBuckets()) > 0 {
		bucketTable(w, t.GetBuckets())
	}
}

// shareFlags are a tenant's own numbers.
type shareFlags struct {
	weight, preferred, most int64
	lane                    string
	laneMax                 map[string]int64
	buckets                 []string
}

func (a *app) tenantSetCommand() *cobra.Command {
	var f shareFlags
	cmd := &cobra.Command{
		Use:   "set POOL TENANT",
		Short: "Give a tenant a row of its own",
		Long: `Give a tenant a row of its own, in place of the one that it had and of the policy's
override. What no flag names is the policy's default. It acts at once and outlives
policies.`,
		Example: "  admitctl tenant set email acme --weight 4 --max-active 30 --bucket fair-use:capacity=100,refill=50",
		Args:    cobra.ExactArgs(2),
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.weight, "weight", 0, "its part of what is shared")
	flags.Int64Var(&f.preferred, "preferred-active", 0, "the permits that it is entitled to")
	flags.Int64Var(&f.most, "max-active", 0, "the most permits that it may hold")
	flags.StringVar(&f.lane, "lane", "", "the lane of its requests without a category")
	flags.StringToInt64Var(&f.laneMax, "lane-max-active", nil, "the most permits in a lane and below, as `LANE=N`")
	flags.StringArrayVar(&f.buckets, "bucket", nil,
		"its numbers for a TENANT bucket, as `NAME:capacity=N,refill=N,period=D` or NAME:blocked")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		t, err := f.tenant(cmd, args[1])
		if err != nil {
			return err
		}
		return a.putTenant(ctx, c, args[0], &admitv1.TenantPut{Tenant: t}, "has a row of its own")
	})
	return cmd
}

func (a *app) tenantUnsetCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unset POOL TENANT",
		Short:   "Take a tenant's own row away",
		Long:    "Take a tenant's own row away: the policy's override holds again, or else the\ndefaults.",
		Example: "  admitctl tenant unset email acme",
		Args:    cobra.ExactArgs(2),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			put := &admitv1.TenantPut{Tenant: &admitv1.Tenant{Id: args[1]}, Remove: true}
			return a.putTenant(ctx, c, args[0], put, "has no row of its own")
		}),
	}
}

func (a *app) putTenant(ctx context.Context, c *client.Client, pool string, put *admitv1.TenantPut, done string) error {
	resp, err := c.Policy().PutTenants(ctx, &admitv1.PutTenantsRequest{Pool: pool, Rows: []*admitv1.TenantPut{put}})
	if err != nil {
		return err
	}
	unchanged := ""
	if resp.GetChanged() == 0 {
		unchanged = ", unchanged"
	}
	a.say("tenant %s of pool %s %s%s", put.GetTenant().GetId(), pool, done, unchanged)
	return a.print(resp, func(io.Writer) {})
}

// tenant returns the row that the flags describe.
func (f *shareFlags) tenant(cmd *cobra.Command, id string) (*admitv1.Tenant, error) {
	t := &admitv1.Tenant{Id: id, Lane: f.lane, LaneMaxActive: f.laneMax}
	for flag, set := range map[string]func(){
		"weight":           func() { t.Weight = &f.weight },
		"preferred-active": func() { t.PreferredActive = &f.preferred },
		"max-active":       func() { t.MaxActive = &f.most },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
	for _, text := range f.buckets {
		name, numbers, _ := strings.Cut(text, ":")
		own, err := bucketOverride(numbers)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--bucket %q: %v", text, err)}
		}
		if t.Buckets == nil {
			t.Buckets = map[string]*admitv1.BucketOverride{}
		}
		t.Buckets[name] = own
	}
	return t, nil
}

func bucketOverride(numbers string) (*admitv1.BucketOverride, error) {
	own := &admitv1.BucketOverride{}
	for part := range strings.SplitSeq(numbers, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "blocked":
			own.Blocked = true
		case "capacity", "refill":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("expected a number as %s, got %q", key, value)
			}
			if key == "capacity" {
				own.Capacity = &n
			} else {
				own.Refill = &n
			}
		case "period":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, fmt.Errorf("expected a duration such as 1m as period, got %q", value)
			}
			own.Period = durationpb.New(d)
		default:
			return nil, fmt.Errorf("expected capacity=N, refill=N, period=D or blocked, got %q", part)
		}
	}
	return own, nil
}
