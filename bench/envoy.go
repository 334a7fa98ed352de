package main

import (
	"context"
	"time"

	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/envoy"
	"github.com/admitd/admit/bench/ratelimit"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

func envoyGroup(a *admitd.Admit) run.Group {
	r := ratelimit.New()
	leader := func() []string { return []string{a.Target()} }
	sides := []envoy.Side{
		{System: a, At: leader, Barred: true, Store: envoy.Store{
			Killed: "the leader", At: a.Followers, Kill: a.KillLeader, Revive: a.Revive,
		}},
		{System: r, At: r.Targets, Store: envoy.Store{
			Killed: "Redis", At: r.Targets, Kill: r.KillRedis, Revive: r.ReviveRedis, Down: time.Second,
		}},
	}
	return run.Group{
		ID: "envoy", Title: "Envoy's rate limits",
		Text: "The messages that Envoy sends, each with two descriptors: one the same for all, and one with the caller's address. The\n" +
			"peer is Envoy's reference service with one Redis in memory, without a log; it buffers its writes to Redis for 150 µs,\n" +
			"as its documentation advises for many calls, and its cache is off. admit decides both descriptors together, on three\n" +
			"nodes, with its log flushed to disk. Then two limits are asked for at 300 calls a second each for 8 seconds. After 3 of\n" +
			"them Redis is killed and starts again a second later, or the leader is killed and stays away, while the callers ask the\n" +
			"other two nodes. What is allowed is the limit for that time and one burst. Of a call that had no answer Envoy decides\n" +
			"by itself: it counts as not admitted.",
		Systems: []system.System{a, r},
		Rows: []run.Row{{
			ID: "envoy-256", Title: "256 callers", Callers: 256, Want: 1,
			Admit: run.Side{System: a, Does: "ShouldRateLimit", Open: envoy.Requests(leader)},
			Peer:  run.Side{System: r, Does: "the same messages", Open: envoy.Requests(r.Targets)},
		}},
		Measure: func(ctx context.Context, p *run.Plan) ([]result.Fact, []result.Check, error) {
			return envoy.Measure(ctx, p, sides, a.CheckLeader)
		},
		Check: a.CheckDecisions,
	}
}
