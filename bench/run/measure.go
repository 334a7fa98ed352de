package run

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/machine"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/system"
)

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
