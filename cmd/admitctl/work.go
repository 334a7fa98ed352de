package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
)

func (a *app) workCommand() *cobra.Command {
	w := &client.Worker{}
	c := &child{app: a}
	cmd := &cobra.Command{
		Use:   "work POOL -- COMMAND [ARGUMENT...]",
		Short: "Claim due work and run a command for each claim",
		Long: `Claim due work and run a command for each claim, --concurrency at a time, until
interrupted. The claims are renewed while their commands run, and released with
what the exit code says, as for "admitctl exec"; what fails is retried as the
policy says. The command learns what it is to do from its environment:

  ADMIT_POOL, ADMIT_TENANT, ADMIT_LANE   whose work it is
  ADMIT_KEY, ADMIT_CATEGORY              as scheduled, and so
  ADMIT_ROUTE, ADMIT_GROUP               these two, which may be empty
  ADMIT_DUE_AT                           when it came due, as in 2030-01-31T12:00:00Z
  ADMIT_ATTEMPT                          which attempt this is, from 1
  ADMIT_CATCH_UP                         true if later occurrences are due as well
  ADMIT_FENCE                            the permit's fence, for resources that refuse lower ones

SIGINT and SIGTERM end the claiming: commands that run go on to their end, for up to
--drain-timeout, and are killed then. A second signal ends it all at once; what was
claimed is given to others when its permits expire.`,
		Example: "  admitctl work email --concurrency 4 -- ./send-claimed",
		Args:    cobra.MinimumNArgs(2),
	}
	flags := cmd.Flags()
	flags.IntVar(&w.Concurrency, "concurrency", 1, "how many commands run at a time")
	flags.StringSliceVar(&w.Lanes, "lane", nil, "only work of this lane; can be repeated")
	flags.DurationVar(&w.TTL, "ttl", 0, "how long a claim lives unless renewed, 1s to 24h (default the pool's)")
	flags.StringVar(&w.ID, "worker-id", "", "shown to operators beside the claims")
	flags.DurationVar(&w.DrainTimeout, "drain-timeout", 0, "how long commands may go on once it is interrupted (default as long as they take)")
	flags.StringVar(&c.bucket, "bucket", "", "the bucket that code 75 pauses (default the only POOL bucket)")
	cmd.RunE = a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		switch {
		case cmd.ArgsLenAtDash() != 1:
			return &usageError{"expected POOL -- COMMAND"}
		case w.Concurrency < 1:
			return &usageError{fmt.Sprintf("--concurrency: expected 1 or more, got %d", w.Concurrency)}
		}
		conn, err := a.dial(client.WithRetryFor(a.timeout))
		if err != nil {
			return err
		}
		defer conn.Close()
		w.Client, w.Pool = conn, args[0]
		w.Handler = func(ctx context.Context, claim *client.Claim) error {
			one := &child{app: a, argv: args[1:], bucket: c.bucket}
			_, err := one.run(ctx, claimEnv(claim)...)
			return err
		}
		w.Log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
		return w.Run(ctx)
	})
	return cmd
}

// withoutTime leaves out when a line was written: whoever keeps them knows.
func withoutTime(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// claimEnv is what a command learns of its claim.
func claimEnv(c *client.Claim) []string {
	return []string{
		"ADMIT_POOL=" + c.Pool, "ADMIT_TENANT=" + c.Tenant, "ADMIT_LANE=" + c.Lane,
		"ADMIT_KEY=" + c.Key, "ADMIT_CATEGORY=" + c.Category, "ADMIT_ROUTE=" + c.Route, "ADMIT_GROUP=" + c.Group,
		"ADMIT_DUE_AT=" + c.DueAt.UTC().Format(time.RFC3339Nano), fmt.Sprintf("ADMIT_ATTEMPT=%d", c.Attempt),
		fmt.Sprintf("ADMIT_CATCH_UP=%t", c.CatchUp), fmt.Sprintf("ADMIT_FENCE=%d", c.Fence),
	}
}
