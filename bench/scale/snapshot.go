package scale

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// snapshotsTime is after how long no further snapshot is waited for: large ones are
// written seldom.
const snapshotsTime = 4 * time.Minute

// snapshotLimit is how long it may take until a snapshot begins, and until it is there.
const snapshotLimit = 5 * time.Minute

// snapshots measures what callers wait for while the node writes a snapshot, by turns
// with what they wait for else.
func snapshots(ctx context.Context, p *run.Plan, n Node) ([]result.Fact, error) {
	during := most(mostStall, result.Fact{What: "the same while a snapshot is written, by that"})
	took := result.Fact{What: "a snapshot takes", Unit: "s"}
	large, began := calls.NewLarge(n.Target), time.Now()
	for round := range p.Rounds {
		if round > 0 && time.Since(began) > snapshotsTime {
			p.Say("scale: no more than %d snapshots in %v", round, snapshotsTime)
			break
		}
		usual, err := beside(ctx, p, n, func(context.Context) error { return nil })
		if err != nil {
			return nil, err
		}
		o, err := besideSnapshot(ctx, n, large)
		if err != nil {
			return nil, fmt.Errorf("while a snapshot is written: %w", err)
		}
		p.Say("scale: p99 %v, and %v while a snapshot is written for %v", usual, o.Quantile(0.99), o.Elapsed)
		during.Rounds = append(during.Rounds, o.Quantile(0.99).Seconds()/usual.Seconds())
		took.Rounds = append(took.Rounds, o.Elapsed.Seconds())
	}
	return []result.Fact{during, took}, nil
}

// besideSnapshot has the log grow until a snapshot begins, and then asks for permits
// until it is there.
func besideSnapshot(ctx context.Context, n Node, large *calls.Large) (load.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotLimit)
	defer cancel()
	for {
		if writing, err := writes(n); err != nil {
			return load.Outcome{}, err
		} else if writing {
			break
		}
		if err := large.PutTenants(ctx, 1000); err != nil {
			return load.Outcome{}, err
		}
	}
	op, err := calls.Work(n.Target, "", 1, patience, &calls.Releases{})(ctx, rate)
	if err != nil {
		return load.Outcome{}, err
	}
	writing, written := context.WithCancel(ctx)
	defer written()
	watched := make(chan error, 1)
	go func() {
		defer written()
		watched <- awaitEnd(writing, n)
	}()
	o := load.Open{Rate: rate, Callers: rate, For: snapshotLimit}.Run(writing, patient{op, ctx})
	return o, errors.Join(o.Failure, <-watched, op.Close())
}

// writes says whether the node writes a snapshot: it has another name until it is there.
func writes(n Node) (bool, error) {
	unfinished, err := filepath.Glob(filepath.Join(n.Data(), "snapshots", "*.tmp"))
	if err != nil {
		return false, fmt.Errorf("look for snapshots: %w", err)
	}
	return len(unfinished) > 0, nil
}

// awaitEnd returns when the node writes no snapshot any more.
func awaitEnd(ctx context.Context, n Node) error {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		writing, err := writes(n)
		if err != nil || !writing {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("the snapshot is not there: %w", ctx.Err())
		}
	}
}

// patient finishes the calls that are under way when a load is ended before its time.
type patient struct {
	system.Operation
	ctx context.Context
}

func (o patient) Do(_ context.Context, caller int) (int, error) { return o.Operation.Do(o.ctx, caller) }
