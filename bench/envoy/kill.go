package envoy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/admitd/admit/bench/load"
)

// limit is one of those in admitd/policy.yaml and ratelimit/limits.yaml: for each value
// of its key so many in a period.
type limit struct {
	key, per string
	tokens   float64
	period   time.Duration
}

var limits = []limit{
	{key: "second", per: "a second", tokens: 100, period: time.Second},
	{key: "hour", per: "an hour", tokens: 500, period: time.Hour},
}

const (
	// rate is how many calls a second ask for each limit: three times what the wider one
	// allows.
	rate = 300
	// asked is for how long, killedAfter how much of it is over at the kill: enough for
	// both limits to be reached before, and again after it.
	asked, killedAfter = 8 * time.Second, 3 * time.Second
)

// allows is how many may pass in that time: what comes back, and one burst.
func (l limit) allows(in time.Duration) float64 {
	return l.tokens*float64(in)/float64(l.period) + l.tokens
}

// Store is what holds a system's counters, and can be killed.
type Store struct {
	// Killed is what is killed of the system.
	Killed string
	// At are the servers that are asked, which live on.
	At   Targets
	Kill func() error
	// Revive starts again what was killed: after Down, or where that is 0 when nobody asks
	// any more.
	Revive func(context.Context) error
	Down   time.Duration
}

// killed is what came of one kill, for each limit.
type killed []load.Outcome

// die kills the store while it is asked.
func (s Store) die(ctx context.Context) error {
	if err := wait(ctx, killedAfter); err != nil {
		return err
	}
	if err := s.Kill(); err != nil || s.Down == 0 {
		return err
	}
	if err := wait(ctx, s.Down); err != nil {
		return err
	}
	return s.Revive(ctx)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// kill asks for both limits, with counters that the round has for itself, while the
// store dies.
func (s Store) kill(ctx context.Context, round int) (killed, error) {
	ops := make([]*requests, len(limits))
	for i, l := range limits {
		op, err := limited(s.At, l.key, fmt.Sprintf("round-%d", round))
		if err != nil {
			return nil, err
		}
		defer op.Close()
		ops[i] = op
	}
	died := make(chan error, 1)
	go func() { died <- s.die(ctx) }()
	out := make(killed, len(limits))
	var all sync.WaitGroup
	for i, op := range ops {
		// So many callers that none is late, however long each call takes.
		many := int(rate * 2 * patience.Seconds())
		all.Go(func() { out[i] = load.Open{Rate: rate, Callers: many, For: asked}.Run(ctx, op) })
	}
	all.Wait()
	err := <-died
	if s.Down == 0 {
		err = errors.Join(err, s.Revive(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("kill %s: %w", s.Killed, err)
	}
	return out, ctx.Err()
}
