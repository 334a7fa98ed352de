package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) demandCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:     "demand",
		Short:   "Tell of work that waits elsewhere",
		Example: "  admitctl demand report email --tenant acme --backlog 12",
	})
	cmd.AddCommand(a.reportCommand())
	return cmd
}

func (a *app) reportCommand() *cobra.Command {
	var d client.Demand
	cmd := &cobra.Command{
		Use:   "report POOL --tenant TENANT --backlog COUNT",
		Short: "Report what waits in a queue that admit does not own",
		Long: `Report what waits in a queue that admit does not own. While the report holds, an
entitled tenant's free slots are kept for it, and lower lanes yield to it.`,
		Example: "  admitctl demand report email --tenant acme --category otp --backlog 12 --ttl 30s",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&d.Tenant, "tenant", "", "whose work it is (required)")
	flags.StringVar(&d.Category, "category", "", "what the work is; the policy maps it to a lane")
	flags.Int64Var(&d.Backlog, "backlog", 0, "how much waits; 0 takes an earlier report back (required)")
	flags.DurationVar(&d.TTL, "ttl", 0, "how long the report holds, up to 60s (default 5s)")
	required(cmd, "tenant", "backlog")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		d.Pool = args[0]
		if cmd.Flags().Changed("ttl") && d.TTL == 0 {
			return &usageError{"--ttl: expected up to 60s, got 0s"}
		}
		shedding, err := c.ReportDemand(ctx, d)
		if err != nil {
			return err
		}
		return a.print(&admitv1.ReportDemandResponse{Shedding: shedding}, func(io.Writer) {})
	})
	return cmd
}
