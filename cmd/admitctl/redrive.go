package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) deadRedriveCommand() *cobra.Command {
	var which deadFlags
	var f listFlags
	var perSecond int32
	cmd := &cobra.Command{
		Use:   "redrive POOL",
		Short: "Do dead entries after all",
		Long: `Put dead entries back into line, those first that have been dead for longest. Each
keeps what it was scheduled with and has all its attempts again. With --per-second
they come due one after the other, so that a provider that just recovered is not
flooded. What dies while this goes on is left dead.`,
		Example: "  admitctl dead redrive email --tenant acme --reason EXPIRED --per-second 10",
		Args:    cobra.ExactArgs(1),
	}
	which.register(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 0, "the most to redrive; 0 for all")
	cmd.Flags().Int32Var(&perSecond, "per-second", 0, "how many come due in each second; 0 for all at once")
	cmd.RunE = a.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
		if err := which.check(); err != nil {
			return err
		}
		all := &admitv1.RedriveResponse{}
		err := a.eachDead(ctx, &f, "redriven", func(ctx context.Context, c *client.Client, limit int32) (int32, string, error) {
			resp, err := c.DueWork().Redrive(ctx, &admitv1.RedriveRequest{
				Pool: args[0], Filter: &which.filter, Limit: limit, PerSecond: perSecond, PageToken: all.NextPageToken,
			})
			all.Redriven, all.NextPageToken = all.Redriven+resp.GetRedriven(), resp.GetNextPageToken()
			return all.Redriven, all.NextPageToken, err
		})
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { fmt.Fprintf(w, "%d redriven\n", all.GetRedriven()) })
	})
	return cmd
}

func (a *app) deadPurgeCommand() *cobra.Command {
	var which deadFlags
	var f listFlags
	var everything bool
	cmd := &cobra.Command{
		Use:     "purge POOL {--tenant T | --lane L | --key-prefix P | --reason R | --all}",
		Short:   "Drop dead entries for good",
		Long:    "Drop dead entries for good, those first that have been dead for longest. What dies\nwhile this goes on is left.",
		Example: "  admitctl dead purge email --tenant acme --key-prefix welcome-",
		Args:    cobra.ExactArgs(1),
	}
	which.register(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 0, "the most to drop; 0 for all")
	cmd.Flags().BoolVar(&everything, "all", false, "drop whatever is dead in the pool")
	cmd.MarkFlagsOneRequired("tenant", "lane", "key-prefix", "reason", "all")
	cmd.RunE = a.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
		if err := which.check(); err != nil {
			return err
		}
		all := &admitv1.PurgeDeadResponse{}
		err := a.eachDead(ctx, &f, "purged", func(ctx context.Context, c *client.Client, limit int32) (int32, string, error) {
			resp, err := c.DueWork().PurgeDead(ctx, &admitv1.PurgeDeadRequest{
				Pool: args[0], Filter: &which.filter, Limit: limit, PageToken: all.NextPageToken,
			})
			all.Purged, all.NextPageToken = all.Purged+resp.GetPurged(), resp.GetNextPageToken()
			return all.Purged, all.NextPageToken, err
		})
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { fmt.Fprintf(w, "%d purged\n", all.GetPurged()) })
	})
	return cmd
}

// eachDead makes a call until it is through or has done as many as were wanted. The
// call returns how many were done so far, and where to go on. Each has the timeout
// for itself.
func (a *app) eachDead(
	ctx context.Context, f *listFlags, done string, call func(ctx context.Context, c *client.Client, limit int32) (int32, string, error),
) error {
	if err := f.check(); err != nil {
		return err
	}
	c, err := a.dial(client.WithRetryFor(retryFor))
	if err != nil {
		return err
	}
	defer c.Close()
	bar := a.newProgress()
	defer bar.end()
	for n := int32(0); ; {
		before := n
		var next string
		timed, cancel := context.WithTimeout(ctx, a.timeout)
		n, next, err = call(timed, c, f.page(int(n)))
		cancel()
		if err != nil {
			if before > 0 {
				a.say("%d were %s before this", before, done)
			}
			return err
		}
		if next == "" || int(n) == f.limit {
			return nil
		}
		part := -1.0
		if f.limit > 0 {
			part = float64(n) / float64(f.limit)
		}
		bar.at(part, fmt.Sprintf("%d %s", n, done))
	}
}
