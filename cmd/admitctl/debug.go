package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) debugCommand() *cobra.Command {
	var span time.Duration
	cmd := &cobra.Command{
		Use:   "debug POOL",
		Short: "Have the leader log what it decides about a pool",
		Long: `Have the leader log each decision about a pool for a while, at level info: what was
asked, what was decided, and the limit that stood in the way. At most 100 lines are
written in a second; the rest are counted. It ends by itself, with --for 0, or when
another node leads.`,
		Example: "  admitctl debug email --for 5m",
		Args:    cobra.ExactArgs(1),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			resp, err := c.Status().DebugPool(ctx, &admitv1.DebugPoolRequest{Pool: args[0], Duration: durationpb.New(span)})
			if err != nil {
				return err
			}
			return a.print(resp, func(w io.Writer) { debugText(w, args[0], resp) })
		}),
	}
	cmd.Flags().DurationVar(&span, "for", 5*time.Minute, "how long, up to 1h; 0 ends it")
	return cmd
}

func debugText(w io.Writer, pool string, d *admitv1.DebugPoolResponse) {
	if span := d.GetDuration().AsDuration(); span > 0 {
		fmt.Fprintf(w, "%s logs what is decided about pool %s for %s\n", d.GetNodeId(), pool, span)
		return
	}
	fmt.Fprintf(w, "%s does not log what is decided about pool %s\n", d.GetNodeId(), pool)
}
