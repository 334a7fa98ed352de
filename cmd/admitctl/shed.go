package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// shedFlags select what of a pool's shedding is shown.
type shedFlags struct {
	all, watch           bool
	top                  int32
	interval             time.Duration
	tenant, lane, reason string
}

func (a *app) shedCommand() *cobra.Command {
	var f shedFlags
	cmd := &cobra.Command{
		Use:   "shed POOL",
		Short: "Show who is held back, and why",
		Long: `Show who is held back in a pool, and why: the lanes, how many are held for each
reason, and the tenants with the most held. With --all every held tenant, all as of
one index of the log; with --watch the shedding whenever it changes, until
interrupted.`,
		Example: "  admitctl shed email --top 5",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "show every held tenant")
	flags.BoolVar(&f.watch, "watch", false, "show it again whenever it changes")
	flags.Int32Var(&f.top, "top", 0, "show so many tenants with the most held, 1 to 100 (default 10)")
	flags.DurationVar(&f.interval, "interval", time.Second, "with --watch: at most once in this time, 100ms to 60s")
	flags.StringVar(&f.tenant, "tenant", "", "with --all: only this tenant")
	flags.StringVar(&f.lane, "lane", "", "only this lane")
	flags.StringVar(&f.reason, "reason", "", "only what is held for this reason, as in POOL_CAP")
	cmd.MarkFlagsMutuallyExclusive("all", "watch", "top")
	complete(cmd, "reason", reasonNames()...)
	short := a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		return a.shedNow(ctx, c, args[0], &f)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if f.watch {
			return a.watchShed(cmd, args[0], &f)
		}
		return short(cmd, args)
	}
	return cmd
}

// reasonNames are the reasons as people type them.
func reasonNames() []string {
	var names []string
	for number, name := range admitv1.Reason_name {
		if number != 0 {
			names = append(names, strings.TrimPrefix(name, "REASON_"))
		}
	}
	slices.Sort(names)
	return names
}

func (f *shedFlags) why() (admitv1.Reason, error) {
	if f.reason == "" {
		return admitv1.Reason_REASON_UNSPECIFIED, nil
	}
	number, ok := admitv1.Reason_value["REASON_"+f.reason]
	if !ok || number == 0 {
		return 0, &usageError{fmt.Sprintf("--reason: expected one of %s, got %q", strings.Join(reasonNames(), ", "), f.reason)}
	}
	return admitv1.Reason(number), nil
}

func (a *app) shedNow(ctx context.Context, c *client.Client, pool string, f *shedFlags) error {
	why, err := f.why()
	if err != nil {
		return err
	}
	if f.all || f.tenant != "" {
		all, err := allShed(ctx, c, &admitv1.GetSheddingRequest{Pool: pool, Tenant: f.tenant, Lane: f.lane, Reason: why})
		if err != nil {
			return err
		}
		return a.print(all, func(w io.Writer) { shedPage(w, all) })
	}
	top, err := c.Status().TopShed(ctx, &admitv1.TopShedRequest{Pool: pool, N: f.top, Lane: f.lane, Reason: why})
	if err != nil {
		return err
	}
	return a.print(top, func(w io.Writer) {
		table(w, heldHead, func(row func(...any)) {
			for _, t := range top.GetTenants() {
				heldRows(row, t.GetHeld())
			}
		})
	})
}

// allShed puts the chunks of a picture together.
func allShed(ctx context.Context, c *client.Client, req *admitv1.GetSheddingRequest) (*admitv1.Shedding, error) {
	stream, err := c.Status().GetShedding(ctx, req)
	if err != nil {
		return nil, err
	}
	var all *admitv1.Shedding
	for {
		chunk, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			all.More = false
			return all, nil
		case err != nil:
			return nil, err
		case all == nil:
			all = chunk.GetShedding()
		default:
			all.Held = append(all.Held, chunk.GetShedding().GetHeld()...)
		}
	}
}

// watchShed shows the shedding until it is interrupted.
func (a *app) watchShed(cmd *cobra.Command, pool string, f *shedFlags) error {
	a.started = true
	c, err := a.dial(client.WithRetryFor(retryFor))
	if err != nil {
		return err
	}
	defer c.Close()
	stream, err := c.Status().WatchShedding(cmd.Context(), &admitv1.WatchSheddingRequest{Pool: pool, Interval: durationpb.New(f.interval)})
	if err != nil {
		return err
	}
	for {
		resp, err := stream.Recv()
		if cmd.Context().Err() != nil {
			return nil // interrupted: that is how a watch ends
		}
		if err != nil {
			return err
		}
		if err := a.print(resp.GetShedding(), func(w io.Writer) { shedPage(w, resp.GetShedding()) }); err != nil {
			return err
		}
	}
}

func shedPage(w io.Writer, s *admitv1.Shedding) {
	fmt.Fprintf(w, "log index %d, cluster time %s\n", s.GetLogIndex(), s.GetClusterTime().AsDuration().Round(time.Second))
	table(w, "LANE DEPTH OLDEST STATE", func(row func(...any)) {
		for _, l := range s.GetLanes() {
			state := ""
			if l.GetYielding() {
				state = "yields"
			}
			row(l.GetLane(), l.GetDepth(), rough(l.GetOldestAge()), state)
		}
	})
	for _, held := range s.GetTotals() {
		fmt.Fprintf(w, "held: %d for %s\n", held.GetTenants(), apiName(held.GetReason(), "REASON_"))
	}
	if len(s.GetHeld()) > 0 {
		table(w, heldHead, func(row func(...any)) { heldRows(row, s.GetHeld()) })
	}
}

const heldHead = "TENANT LANE REASON DUE WAITING OLDEST RETRY"

func heldRows(row func(...any), held []*admitv1.HeldTenant) {
	for _, h := range held {
		row(h.GetTenant(), h.GetLane(), apiName(h.GetReason(), "REASON_"), h.GetDue(), h.GetWaiting(),
			rough(h.GetOldestAge()), rough(h.GetRetryAfter()))
	}
}
