package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/echo"
	"github.com/admitd/admit/bench/overload"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// groups are all that can be measured, in the order of the page: in rounds of that
// length, and with up to so many entries.
func groups(ctx context.Context, root, dir string, round time.Duration, entries int) ([]run.Group, error) {
	built := filepath.Join(dir, "bin")
	if err := os.MkdirAll(built, 0o755); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	programs, err := admitd.Build(ctx, root, built)
	if err != nil {
		return nil, err
	}
	admit := func(nodes int) *admitd.Admit { return admitd.New(programs, nodes, commit(ctx, root)) }
	return []run.Group{
		echoGroup(admit(3)),
		etcdGroup(admit(3)),
		redisGroup(admit(3)),
		singleRedisGroup(admit(1)),
		gubernatorGroup(admit(3)),
		envoyGroup(admit(3)),
		postgresGroup(admit(3), round),
		raftGroup(admit(3)),
		shedGroup(admit(3)),
		sidecarGroup(admit(3)),
		scaleGroup(admit(1), entries),
		spreadGroup(admit(1)),
		overloadGroup(admit(1).OnCore(overload.ServerCore)),
	}, nil
}

// commit is what the checkout says it is.
func commit(ctx context.Context, root string) string {
	cmd := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "no version"
	}
	return strings.TrimSpace(string(out))
}

func echoGroup(a *admitd.Admit) run.Group {
	e := echo.New(func(ctx context.Context) (echo.Answers, error) {
		acquired, released, err := a.Answers(ctx)
		return echo.Answers{Acquire: acquired, Release: released}, err
	})
	row := func(id, title, does string, callers int, want, stretch float64, open func(calls.Target) system.Open) run.Row {
		return run.Row{
			ID: id, Title: title, Callers: callers, Want: want, Stretch: stretch,
			Admit: run.Side{System: a, Does: does, Open: open(a.Target)},
			Peer:  run.Side{System: e, Does: "the same messages", Open: open(e.Target)},
		}
	}
	inBatches := func(at calls.Target) system.Open { return calls.PermitBatches(at, 64) }
	return run.Group{
		ID: "echo", Title: "What the wire costs",
		Text: "The echo is a server of the same service that answers each call with the same messages, as long as a node's, and\n" +
			"does nothing else. It is what any service over gRPC could at most reach here. admit decides on three nodes, each\n" +
			"with its log flushed to disk; callers ask the leader, over two connections.",
		Systems: []system.System{a, e},
		Rows: []run.Row{
			row("unary-256", "256 callers", permits, 256, 0.50, 0.65, calls.Permits),
			row("unary-64", "64 callers", permits, 64, 0.33, 0.45, calls.Permits),
			row("session-1024", "1,024 callers on one stream", "Session: "+permits, 1024, 0.50, 0.65, calls.SessionPermits),
			row("tokens-256", "256 callers", tokens, 256, 0, 0, calls.Tokens),
			row("batch-16x64", "16 callers with 64 requests in a call", "BatchAcquire, BatchRelease", 16, 0.22, 0.40, inBatches),
		},
		Check: a.Check,
	}
}

func overloadGroup(a *admitd.Admit) run.Group {
	return run.Group{
		ID: "overload", Title: "Asked for too much",
		Text: "One node is kept to one core and asked from another for three times what it can do, by callers that wait half a second\n" +
			"for 64 permits. A quiet tenant asks 50 times in a second meanwhile.",
		Systems: []system.System{a},
		Measure: func(ctx context.Context, p *run.Plan) ([]result.Fact, []result.Check, error) {
			return overload.Measure(ctx, p, a, a.Target)
		},
		Check: a.Check,
	}
}
