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
	"github.com/admitd/admit/bench/system"
)

// Group is what is measured in one go.
type Group struct {
	ID, Title, Text string
	// Systems are started in this order.
	Systems []system.System
	Rows    []Row
	// Measure, where it is set, measures what fits no row, after the rows.
	Measure func(context.Context, *Plan) ([]result.Fact, []result.Check, error)
	// Check is asked at the end, while all still run.
	Check func(context.Context) []result.Check
}

// Row is one load on two systems.
type Row struct {
	ID, Title string
	Callers   int
	// OpenCallers is how many calls can be under way at half the rate. 0 means Callers,
	// or 256 where that is more.
	OpenCallers int
	// Want, Stretch and MostP50 are as in result.Row.
	Want, Stretch, MostP50 float64
	Admit, Peer            Side
}

// Side is what a row asks of one system.
type Side struct {
	System system.System
	Does   string
	Open   system.Open
	// Before is run before each round, where it is set, and not measured.
	Before func(context.Context) error
}

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
	for i, s := range g.Systems {
		defer func() { err = errors.Join(err, s.Stop()) }()
		p.Say("%s: starting %s", g.ID, s.Name())
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return res, fmt.Errorf("make a directory: %w", err)
		}
		if err := s.Start(ctx, home); err != nil {
			return res, fmt.Errorf("start %s: %w", s.Name(), err)
		}
		res.Versions = append(res.Versions, result.Version{System: s.Name(), Version: s.Version()})
	}
	syscall.Sync() // what they wrote to begin with is not to be flushed while they are measured
	for _, r := range g.Rows {
		row, err := p.row(ctx, r)
		if err != nil {
			return res, fmt.Errorf("%s, %s: %w", g.ID, r.ID, err)
		}
		res.Rows = append(res.Rows, row)
	}
	if g.Measure != nil {
		facts, checks, err := g.Measure(ctx, p)
		if err != nil {
			return res, fmt.Errorf("%s: %w", g.ID, err)
		}
		res.Facts, res.Checks = facts, checks
	}
	if g.Check != nil {
		res.Checks = append(res.Checks, g.Check(ctx)...)
	}
	return res, ctx.Err()
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

func (r Row) openCallers() int {
	if r.OpenCallers > 0 {
		return r.OpenCallers
	}
	return max(r.Callers, 256)
}

func order(sides []*turn, round int) []*turn {
	if round%2 == 0 {
		return sides
	}
	turned := slices.Clone(sides)
	slices.Reverse(turned)
	return turned
}

// turn is one side while it is measured.
type turn struct {
	Side
	res *result.Side
}

// measure puts the load on the side once.
func (t *turn) measure(ctx context.Context, callers int, l load.Load) (result.Sample, error) {
	if o, ok := l.(load.Open); ok {
		callers = o.Callers
	}
	if t.Before != nil {
		if err := t.Before(ctx); err != nil {
			return result.Sample{}, fmt.Errorf("prepare %s: %w", t.System.Name(), err)
		}
		syscall.Sync()
	}
	op, err := t.Open(ctx, callers)
	if err != nil {
		return result.Sample{}, fmt.Errorf("open %s: %w", t.System.Name(), err)
	}
	s, err := Measure(ctx, t.System, op, l)
	if err := errors.Join(err, op.Close()); err != nil {
		return s, fmt.Errorf("measure %s: %w", t.System.Name(), err)
	}
	return s, nil
}

// Measure puts the load on the system once. It fails where no call was answered.
func Measure(ctx context.Context, s system.System, op system.Operation, l load.Load) (result.Sample, error) {
	server, err := machine.Used(s.Processes())
	if err != nil {
		return result.Sample{}, err
	}
	own := ownTime()
	o := l.Run(ctx, op)
	after, err := machine.Used(s.Processes())
	if err != nil {
		return result.Sample{}, err
	}
	sample := result.Sample{
		Requests: o.Requests, Calls: o.Calls, Failed: o.Failed, Seconds: o.Elapsed.Seconds(),
		ServerCPU: (after - server).Seconds(), LoadCPU: (ownTime() - own).Seconds(),
		P50: micros(o.Quantile(0.50)), P99: micros(o.Quantile(0.99)),
	}
	if o.Failure != nil {
		sample.Failure = o.Failure.Error()
	}
	if o.Calls == 0 {
		return sample, fmt.Errorf("no call was answered: %w", errors.Join(o.Failure, ctx.Err()))
	}
	return sample, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ownTime is the processor time of this process.
func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
