package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// The frame fits the smallest terminal that people have.
const (
	frameWidth  = 80
	frameHeight = 24
)

// What a terminal does before a frame and when there are no more.
const (
	clearScreen = "\x1b[H\x1b[2J"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
)

func (a *app) topCommand() *cobra.Command {
	var once bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top [POOL]",
		Short: "Watch the pools, and who is held in one of them",
		Long: `Watch the pools, and closely one of them, the first unless another is named: its
lanes and buckets, and the tenants with the most held. It is what the page shows that
each node serves, in 80 columns and 24 lines, until interrupted. Where the output is no
terminal the frames come one below the other, an empty line between them.`,
		Example: "  admitctl top email --once",
		Args:    cobra.MaximumNArgs(1),
	}
	cmd.Flags().BoolVar(&once, "once", false, "show one frame and end")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "the time between frames, 100ms to 60s")
	cmd.RunE = a.does(func(ctx context.Context, _ *cobra.Command, args []string) error {
		if interval < 100*time.Millisecond || interval > time.Minute {
			return &usageError{fmt.Sprintf("--interval: expected 100ms to 60s, got %s", interval)}
		}
		c, err := a.dial(client.WithRetryFor(retryFor))
		if err != nil {
			return err
		}
		defer c.Close()
		pool := strings.Join(args, "")
		if once {
			seen, err := a.look(ctx, c, pool)
			if err == nil {
				_, err = io.WriteString(a.stdout, seen.frame())
			}
			return err
		}
		return a.watchTop(ctx, c, pool, interval)
	})
	return cmd
}

// watchTop shows frames until it is interrupted. A cluster that does not answer for a
// while is waited for: that is when people look.
func (a *app) watchTop(ctx context.Context, c *client.Client, pool string, interval time.Duration) error {
	before, between := "", "\n"
	if isTerminal(a.stdout) {
		before, between = hideCursor+clearScreen, clearScreen
		defer fmt.Fprint(a.stdout, showCursor)
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last topView
	for {
		seen, err := a.look(ctx, c, pool)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted: that is how it ends
		case err == nil:
			last = seen
		case exitCode(err) != exitUnreachable && exitCode(err) != exitDeadline:
			return err
		default:
			last.trouble = errorText(nil, err, a.addr)
		}
		if _, err := io.WriteString(a.stdout, before+last.frame()); err != nil {
			return err
		}
		before = between
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// topView is what a frame shows.
type topView struct {
	health  *admitv1.QueueHealthResponse
	pool    *admitv1.PoolHealth
	held    []*admitv1.TopTenant
	members *admitv1.ListMembersResponse
	// trouble says that all this is old, and why.
	trouble string
}

// look asks for what a frame shows.
func (a *app) look(ctx context.Context, c *client.Client, pool string) (v topView, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if v.health, err = c.Status().QueueHealth(ctx, &admitv1.QueueHealthRequest{}); err != nil {
		return v, err
	}
	for _, p := range v.health.GetPools() {
		if v.pool == nil && pool == "" || p.GetPool() == pool {
			v.pool = p
		}
	}
	if v.pool != nil {
		pool = v.pool.GetPool()
	}
	if pool != "" { // one that is not there is the server's to refuse
		top, err := c.Status().TopShed(ctx, &admitv1.TopShedRequest{Pool: pool, N: frameHeight})
		if err != nil {
			return v, err
		}
		v.held = top.GetTenants()
	}
	v.members, err = c.Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
	return v, err
}

// frame is the whole picture, no wider and no higher than a frame may be.
func (v topView) frame() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	answer := 0
	for _, m := range v.members.GetMembers() {
		if m.GetReachable() {
			answer++
		}
	}
	add("admit   %d of %d nodes answer   policy %d   log %d   up %s", answer, len(v.members.GetMembers()),
		v.health.GetPolicyRevision(), v.health.GetLogIndex(), v.health.GetClusterTime().AsDuration().Round(time.Second))
	add("%s", v.trouble)
	const most = 4 // rows of pools, lanes and buckets each: the rest is for who is held
	add("%-24s %17s %9s %8s %8s %8s", "POOL", "PERMITS", "COULD RUN", "IN LINE", "HELD", "DEAD")
	pools := v.health.GetPools()
	for _, p := range pools[:min(most, len(pools))] {
		add("%-24s %17s %9d %8d %8d %8d", clip(p.GetPool(), 24), slots(p), depth(p), p.GetWaiting(), heldPairs(p), p.GetDead())
	}
	if len(pools) > most {
		add("and %d more pools", len(pools)-most)
	}
	if v.pool != nil {
		add("")
		add("%-24s %17s %9s %8s %8s %8s", clip("LANES OF "+v.pool.GetPool(), 24), "PERMITS", "COULD RUN", "IN LINE", "OLDEST", "STATE")
		lanes := v.pool.GetLanes()
		for _, l := range lanes[:min(most, len(lanes))] {
			add("%-24s %17d %9d %8d %8s %8s", clip(l.GetLane(), 24), l.GetActive(), l.GetDepth(), l.GetWaiting(), brief(l.GetOldestAge().AsDuration()), laneText(l))
		}
		for _, b := range v.pool.GetBuckets()[:min(most-1, len(v.pool.GetBuckets()))] {
			add("bucket %-17s %17s %s %s", clip(b.GetBucket(), 17), fmt.Sprintf("%d of %d", b.GetLevel(), b.GetCapacity()),
				gauge(b.GetLevel(), b.GetCapacity(), 24), pausedText(b.GetPaused(), brief(b.GetPausedFor().AsDuration())))
		}
		add("")
		lines = append(lines, v.heldLines(frameHeight-len(lines))...)
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(clip(line, frameWidth), " ")
	}
	return strings.Join(lines[:min(len(lines), frameHeight)], "\n") + "\n"
}

// heldLines show who is held, as many as there is room for.
func (v topView) heldLines(room int) []string {
	if len(v.held) == 0 {
		return []string{"nobody is held back"}
	}
	lines := []string{fmt.Sprintf("%-20s %-14s %-15s %7s %7s %6s %5s", "HELD TENANT", "LANE", "REASON", "DUE", "IN LINE", "OLDEST", "FREE")}
	for _, t := range v.held {
		for _, h := range t.GetHeld() {
			free := ""
			if h.RetryAfter != nil {
				free = brief(h.GetRetryAfter().AsDuration())
			}
			lines = append(lines, fmt.Sprintf("%-20s %-14s %-15s %7d %7d %6s %5s", clip(h.GetTenant(), 20), clip(h.GetLane(), 14),
				apiName(h.GetReason(), "REASON_"), h.GetDue(), h.GetWaiting(), brief(h.GetOldestAge().AsDuration()), free))
		}
	}
	return lines[:min(room, len(lines))]
}

// slots are the permits of a pool, of as many as there may be.
func slots(p *admitv1.PoolHealth) string {
	if p.MaxActive == nil {
		return fmt.Sprint(p.GetActive())
	}
	return fmt.Sprintf("%d of %d", p.GetActive(), p.GetMaxActive())
}

func depth(p *admitv1.PoolHealth) (n int64) {
	for _, l := range p.GetLanes() {
		n += l.GetDepth()
	}
	return n
}

func heldPairs(p *admitv1.PoolHealth) (n int64) {
	for _, h := range p.GetHeld() {
		n += h.GetTenants()
	}
	return n
}

// gauge shows a part of a whole in so many characters.
func gauge(value, whole int64, width int) string {
	full := 0
	if whole > 0 {
		full = int(min(max(float64(value)/float64(whole), 0), 1) * float64(width))
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// clip cuts a text that is too long for its place, and says so.
func clip(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s
}

// brief is a duration in at most five characters; nothing is empty.
func brief(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 100*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}
