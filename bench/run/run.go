// Package run measures systems side by side: both run at once, and take turns round
// by round, so that whatever the machine does meanwhile happens to both.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/machine"
	"github.com/admitd/admit/bench/result"
)

// Plan is how it is measured.
type Plan struct {
	Rounds int
	// For is how long a round takes.
	For time.Duration
	// Dir is where servers keep their data.
	Dir string
	// Log is told what is being done.
	Log io.Writer
}

// Say tells what is being done.
func (p *Plan) Say(format string, args ...any) { fmt.Fprintf(p.Log, format+"\n", args...) }

// Run measures the group.
func (p *Plan) Run(ctx context.Context, g Group) (res result.Group, err error) {
	res = result.Group{
		ID: g.ID, Title: g.Title, Text: g.Text, At: time.Now().UTC().Truncate(time.Second),
		Rounds: p.Rounds, Seconds: p.For.Seconds(), Before: machine.LoadAverage(),
	}
	dir := filepath.Join(p.Dir, g.ID)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return res, fmt.Errorf("make a directory: %w", err)
	}
	if res.Flush, err = machine.MeasureFlush(dir); err != nil {
		return res, err
	}
	var stop func() error
	res.Versions, stop, err = p.start(ctx, g, dir)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return res, err
	}
	syscall.Sync() // what they wrote to begin with is not to be flushed while they are measured
	for _, r := range g.Rows {
		row, err := p.row(ctx, r)
		if err != nil {
			return res, fmt.Errorf("%s, %s: %w", g.ID, r.ID, err)
		}
		res.Rows = append(res.Rows, row)
	}
	if len(res.Rows) > 0 {
		res.Checks = append(res.Checks, answered(res.Rows))
	}
	if g.Measure != nil {
		facts, checks, err := g.Measure(ctx, p)
		res.Facts, res.Checks = facts, append(res.Checks, checks...)
		if err != nil {
			return res, fmt.Errorf("%s: %w", g.ID, err)
		}
	}
	if g.Check != nil {
		res.Checks = append(res.Checks, g.Check(ctx)...)
	}
	return res, ctx.Err()
}

// start starts the systems. What it returns ends those that it started, also when one
// did not.
func (p *Plan) start(ctx context.Context, g Group, dir string) (versions []result.Version, stop func() error, err error) {
	started := 0
	stop = func() error {
		var all error
		for _, s := range g.Systems[:started] {
			all = errors.Join(all, s.Stop())
		}
		return all
	}
	for i, s := range g.Systems {
		p.Say("%s: starting %s", g.ID, s.Name())
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return nil, stop, fmt.Errorf("make a directory: %w", err)
		}
		started++
		if err := s.Start(ctx, home); err != nil {
			return nil, stop, fmt.Errorf("start %s: %w", s.Name(), err)
		}
		versions = append(versions, result.Version{System: s.Name(), Version: s.Version()})
	}
	return versions, stop, nil
}

// answered says whether a call failed in any round.
func answered(rows []result.Row) result.Check {
	c := result.Check{What: "no call failed"}
	for _, r := range rows {
		for _, side := range []result.Side{r.Admit, r.Peer} {
			for _, s := range slices.Concat(side.Closed, side.Open) {
				if s.Failed > 0 && c.Wrong == "" {
					c.Wrong = fmt.Sprintf("%s, %s: %d of %d in a round, one with %s", r.Title, side.System, s.Failed, s.Failed+s.Calls, s.Failure)
				}
			}
		}
	}
	return c
}

// row measures both sides by turns, each first in every other round: what they can
// do, and then what callers wait for at half of that.
func (p *Plan) row(ctx context.Context, r Row) (result.Row, error) {
	res := result.Row{ID: r.ID, Title: r.Title, Want: r.Want, Stretch: r.Stretch, MostP50: r.MostP50}
	sides := []*turn{{Side: r.Admit, res: &res.Admit}, {Side: r.Peer, res: &res.Peer}}
	for _, t := range sides {
		t.res.System, t.res.Does = t.System.Name(), t.Does
		closed := load.Closed{Callers: r.Callers, For: min(p.For, time.Second)}
		if _, err := t.measure(ctx, r.Callers, closed); err != nil {
			return res, err // the round to get warm
		}
	}
	for round := range p.Rounds {
		for _, t := range order(sides, round) {
			s, err := t.measure(ctx, r.Callers, load.Closed{Callers: r.Callers, For: p.For})
			if err != nil {
				return res, err
			}
			t.res.Closed = append(t.res.Closed, s)
			p.Say("%s: %s: %.0f requests/s, p50 %.0f µs, %.2f cores", r.ID, t.System.Name(), s.Rate(), s.P50, s.BusyCores())
		}
	}
	for round := range p.Rounds {
		for _, t := range order(sides, round) {
			half := result.Median(result.Of(t.res.Closed, func(s result.Sample) float64 { return float64(s.Calls) / s.Seconds })) / 2
			s, err := t.measure(ctx, r.Callers, load.Open{Rate: half, Callers: r.openCallers(), For: p.For})
			if err != nil {
				return res, err
			}
			t.res.Open = append(t.res.Open, s)
			p.Say("%s: %s: at half of it p50 %.0f µs, p99 %.0f µs", r.ID, t.System.Name(), s.P50, s.P99)
		}
	}
	return res, nil
}

func order(sides []*turn, round int) []*turn {
	if round%2 == 0 {
		return sides
	}
	turned := slices.Clone(sides)
	slices.Reverse(turned)
	return turned
}
