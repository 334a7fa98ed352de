package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/buildinfo"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "health [POOL]",
		Short:   "Show how the pools stand",
		Long:    "Show how the pools stand: permits, lanes, buckets, and what is held and why.",
		Example: "  admitctl health email",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			req := &admitv1.QueueHealthRequest{}
			if len(args) > 0 {
				req.Pool = args[0]
			}
			resp, err := c.Status().QueueHealth(ctx, req)
			if err != nil {
				return err
			}
			return a.print(resp, func(w io.Writer) { healthText(w, resp) })
		}),
	}
}

func healthText(w io.Writer, h *admitv1.QueueHealthResponse) {
	fmt.Fprintf(w, "policy revision %d, log index %d, cluster time %s\n",
		h.GetPolicyRevision(), h.GetLogIndex(), h.GetClusterTime().AsDuration().Round(time.Second))
	for _, p := range h.GetPools() {
		draining := ""
		if p.GetDraining() {
			draining = ", draining"
		}
		fmt.Fprintf(w, "\npool %s: %s, %d tenants, %d entries, %d dead%s\n",
			p.GetPool(), permits(p), p.GetTenants(), p.GetEntries(), p.GetDead(), draining)
		table(w, "LANE DEPTH OLDEST WAITING ACTIVE STATE", func(row func(...any)) {
			for _, l := range p.GetLanes() {
				row(l.GetLane(), l.GetDepth(), rough(l.GetOldestAge()), l.GetWaiting(), l.GetActive(), laneText(l))
			}
		})
		if len(p.GetBuckets()) > 0 {
			bucketTable(w, p.GetBuckets())
		}
		for _, l := range p.GetLimits() {
			if l.GetUsed() > l.GetCapacity()/2 {
				fmt.Fprintf(w, "limit %s: %d of %d\n", l.GetLimit(), l.GetUsed(), l.GetCapacity())
			}
		}
		for _, held := range p.GetHeld() {
			fmt.Fprintf(w, "held: %d for %s\n", held.GetTenants(), apiName(held.GetReason(), "REASON_"))
		}
	}
}

func laneText(l *admitv1.LaneHealth) string {
	var states []string
	if l.GetPaused() {
		states = append(states, "paused")
	} else if l.GetYielding() {
		states = append(states, "yields")
	}
	if l.GetDraining() {
		states = append(states, "draining")
	}
	return strings.Join(states, ", ")
}

func bucketTable(w io.Writer, buckets []*admitv1.BucketHealth) {
	table(w, "BUCKET LEVEL CAPACITY STATE", func(row func(...any)) {
		for _, b := range buckets {
			row(b.GetBucket(), b.GetLevel(), b.GetCapacity(), pausedText(b.GetPaused(), rough(b.GetPausedFor())))
		}
	})
}

func permits(p *admitv1.PoolHealth) string {
	if p.MaxActive == nil {
		return fmt.Sprintf("%d permits", p.GetActive())
	}
	return fmt.Sprintf("%d of %d permits", p.GetActive(), p.GetMaxActive())
}

func pausedText(paused bool, rest string) string {
	switch {
	case !paused:
		return ""
	case rest == "":
		return "paused"
	}
	return "paused for " + rest
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show which build this is",
		Example: "  admitctl version",
		Args:    cobra.NoArgs,
		RunE: a.does(func(context.Context, *cobra.Command, []string) error {
			fmt.Fprintln(a.stdout, "admitctl", buildinfo.String())
			return nil
		}),
	}
}
