// Package scale looks at how a node fares with a great deal of due work: what a claim
// takes by how much there is, what each entry takes in memory, how long a start takes,
// and what callers wait for while something large happens.
package scale

import (
	"context"
	"fmt"
	"time"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// Node is a node that can be started again with its data.
type Node interface {
	system.System
	// Target is where it takes calls, Web where its metrics are, Data its directory.
	Target() string
	Web() string
	Data() string
	// Restart stops it and waits until it serves again.
	Restart(ctx context.Context) error
}

const (
	// dueTenants share the backlog.
	dueTenants = 100
	// mostGrowth is the most that is wanted of a claim, by one of the smallest backlog.
	mostGrowth = 1.3
	// mostEntryBytes is the most that is wanted of an entry, its ids aside.
	mostEntryBytes = 350
	// mostApply is the most that is wanted of an apply, in milliseconds.
	mostApply = 10
	// mostStart is the most that is wanted of a start, in seconds.
	mostStart = 30
)

// Measure fills the node up to so many entries, a power of ten from ten thousand on, and
// measures on the way.
func Measure(ctx context.Context, p *run.Plan, n Node, entries int) ([]result.Fact, error) {
	due := calls.NewBacklog(n.Target, calls.Due, dueTenants)
	facts, err := grow(ctx, p, n, due, entries)
	if err != nil {
		return facts, err
	}
	stalled, err := stalls(ctx, p, n)
	facts = append(facts, stalled...)
	if err != nil {
		return facts, err
	}
	written, err := snapshots(ctx, p, n)
	facts = append(facts, written...)
	if err != nil {
		return facts, err
	}
	longest, err := longestApply(ctx, n.Web())
	if err != nil {
		return facts, err
	}
	facts = append(facts, most(mostApply, result.Fact{
		What: "longest apply of all these, at most", Unit: "ms", Rounds: []float64{longest * 1e3},
	}))
	start := time.Now()
	if err := n.Restart(ctx); err != nil {
		return facts, fmt.Errorf("start again: %w", err)
	}
	return append(facts, most(mostStart, result.Fact{
		What: fmt.Sprintf("stop and start with %d entries", entries), Unit: "s", Rounds: []float64{time.Since(start).Seconds()},
	})), nil
}

// grow measures claims while there is more and more, and what the last nine of ten
// entries take.
func grow(ctx context.Context, p *run.Plan, n Node, due *calls.Backlog, entries int) ([]result.Fact, error) {
	var facts []result.Fact
	var first, before float64
	var err error
	for size := 1000; size <= entries; size *= 10 {
		p.Say("scale: %d entries", size)
		if size == entries {
			if before, err = liveHeap(ctx, n.Web()); err != nil {
				return facts, err
			}
		}
		scheduled, err := schedule(ctx, due, size)
		if err != nil {
			return facts, err
		}
		facts = append(facts, result.Fact{What: fmt.Sprintf("entries scheduled in a second, up to %d", size), Rounds: []float64{scheduled}})
		if size == entries {
			full, err := liveHeap(ctx, n.Web())
			if err != nil {
				return facts, err
			}
			each := (full-before)/(0.9*float64(size)) - float64(due.IDBytes())/float64(size)
			facts = append(facts, most(mostEntryBytes, result.Fact{What: "live heap for an entry, beside its ids", Unit: "bytes", Rounds: []float64{each}}))
		}
		took, err := claims(ctx, p, due, size)
		if err != nil {
			return facts, err
		}
		facts = append(facts, growth(fmt.Sprintf("NextDue of 10 with %d entries", size), took, &first)...)
	}
	return facts, nil
}

// growth tells what a claim takes, and how much more that is than the first one told.
func growth(what string, took []float64, first *float64) []result.Fact {
	facts := []result.Fact{{What: what + ", p50 of one caller", Unit: "µs", Rounds: took}}
	if *first == 0 {
		*first = result.Median(took)
		return facts
	}
	by := result.Fact{What: "the same by the first"}
	for _, t := range took {
		by.Rounds = append(by.Rounds, t / *first)
	}
	return append(facts, most(mostGrowth, by))
}

func most(v float64, f result.Fact) result.Fact {
	f.Most = &v
	return f
}
