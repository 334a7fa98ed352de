package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

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
override. It acts at once and outlives policies.

What no flag names is the policy's default, not what it was. The whole row that is in
force then is told, as flags that make the same one, and what went back to a default.
Where two give a tenant a row at the same time, the later one holds, whole.`,
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
		row, err := f.tenant(cmd, args[1])
		if err != nil {
			return err
		}
		return a.setTenant(ctx, c, args[0], row)
	})
	return cmd
}

// setTenant puts a row, and tells what is in force with it and was not before.
func (a *app) setTenant(ctx context.Context, c *client.Client, pool string, row *admitv1.Tenant) error {
	which := &admitv1.GetTenantRequest{Pool: pool, Tenant: row.GetId()}
	before, err := c.Status().GetTenant(ctx, which)
	refused := status.Code(err) == codes.NotFound // the tenant, or the pool, as the put says
	if err != nil && !refused {
		return err
	}
	resp, err := c.Policy().PutTenants(ctx, &admitv1.PutTenantsRequest{Pool: pool, Rows: []*admitv1.TenantPut{{Tenant: row}}})
	if err != nil {
		return err
	}
	after, err := c.Status().GetTenant(ctx, which)
	if err != nil {
		return fmt.Errorf("the row is set, but reading it failed: %w", err)
	}
	unchanged := ""
	if resp.GetChanged() == 0 {
		unchanged = ", unchanged"
	}
	now := after.GetTenant().GetShare()
	a.say("tenant %s of pool %s has a row of its own%s: %s", row.GetId(), pool, unchanged, rowText(now))
	if refused || before.GetTenant().GetUnknown() {
		a.say("tenant %s is new: the pool did not know it", row.GetId())
	} else if lost := resetText(before.GetTenant().GetShare(), now, row); lost != "" {
		a.say("not named, and so a default again: %s", lost)
	}
	return a.print(resp, func(io.Writer) {})
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
			resp, err := c.Policy().PutTenants(ctx, &admitv1.PutTenantsRequest{Pool: args[0], Rows: []*admitv1.TenantPut{put}})
			if err != nil {
				return err
			}
			unchanged := ""
			if resp.GetChanged() == 0 {
				unchanged = ", unchanged"
			}
			a.say("tenant %s of pool %s has no row of its own%s", args[1], args[0], unchanged)
			return a.print(resp, func(io.Writer) {})
		}),
	}
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
		if t.Buckets == nil {
			t.Buckets = map[string]*admitv1.BucketOverride{}
		}
		if t.Buckets[name] != nil {
			return nil, &usageError{fmt.Sprintf("--bucket: %s is named twice", name)}
		}
		own, err := bucketOverride(numbers)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--bucket %q: %v", text, err)}
		}
		t.Buckets[name] = own
	}
	return t, nil
}
