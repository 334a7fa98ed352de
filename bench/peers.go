package main

import (
	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/etcd"
	"github.com/admitd/admit/bench/gubernator"
	"github.com/admitd/admit/bench/rawraft"
	"github.com/admitd/admit/bench/redis"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// What rows say that admit does.
const (
	permits = "Acquire, Release"
	tokens  = "Acquire of tokens alone"
	batches = "BatchAcquire of tokens"
)

// onSession is the row with admit asked on one session, as the Go client asks when told
// to coalesce.
func onSession(r run.Row, open system.Open) run.Row {
	r.ID += "-session"
	r.Admit.Does, r.Admit.Open = "Session: "+r.Admit.Does, open
	return r
}

func etcdGroup(a *admitd.Admit) run.Group {
	e := &etcd.Etcd{}
	swap, put := run.Side{System: e, Does: "compare-and-swap", Open: e.Swap}, run.Side{System: e, Does: "put", Open: e.Put}
	row := func(id, title string, callers int, want, stretch float64, peer run.Side) run.Row {
		return run.Row{
			ID: id, Title: title, Callers: callers, Want: want, Stretch: stretch,
			Admit: run.Side{System: a, Does: permits, Open: calls.Permits(a.Target)},
			Peer:  peer,
		}
	}
	session := calls.SessionPermits(a.Target)
	return run.Group{
		ID: "etcd", Title: "etcd",
		Text: "What programs build leases and limits from where there is nothing better: three members, each with its log flushed\n" +
			"to disk, default settings. A compare-and-swap of one key is the least that such a program does for each Acquire and\n" +
			"each Release, and knows of no limit, tenant or fairness. Callers have a key each, so that none ever fails.",
		Systems: []system.System{a, e},
		Rows: []run.Row{
			row("etcd-swap-64", "64 callers", 64, 3, 4, swap),
			row("etcd-swap-256", "256 callers", 256, 3, 4, swap),
			row("etcd-put-64", "64 callers", 64, 2, 3, put),
			row("etcd-put-256", "256 callers", 256, 2, 3, put),
			onSession(row("etcd-swap-64", "64 callers", 64, 3, 4, swap), session),
			onSession(row("etcd-swap-256", "256 callers", 256, 3, 4, swap), session),
			onSession(row("etcd-put-64", "64 callers", 64, 2, 3, put), session),
			onSession(row("etcd-put-256", "256 callers", 256, 2, 3, put), session),
		},
		Check: a.Check,
	}
}

const redisText = "A token bucket in Lua, one for each tenant, with `appendfsync always`. admit takes of a tenant's bucket and of the\n" +
	"pool's, and has its lanes and tenants in order meanwhile. Each of Redis's callers has a connection, as its client has it.\n"

func redisGroup(a *admitd.Admit) run.Group {
	r, session := redis.New(2), calls.SessionTokens(a.Target)
	row := func(id, title string, callers int) run.Row {
		return run.Row{
			ID: id, Title: title, Callers: callers, Want: 1, Stretch: 1.3,
			Admit: run.Side{System: a, Does: tokens, Open: calls.Tokens(a.Target)},
			Peer:  run.Side{System: r, Does: "the bucket, then WAIT 1", Open: r.Tokens(1)},
		}
	}
	return run.Group{
		ID: "redis", Title: "Redis with two replicas",
		Text: redisText + "The replicas flush as well; WAIT\n" +
			"returns when one has received the change, flushed or not.",
		Systems: []system.System{a, r},
		Rows: []run.Row{
			row("redis-64", "64 callers", 64),
			row("redis-256", "256 callers", 256),
			onSession(row("redis-64", "64 callers", 64), session),
			onSession(row("redis-256", "256 callers", 256), session),
		},
		Check: a.Check,
	}
}

func singleRedisGroup(a *admitd.Admit) run.Group {
	r := redis.New(0)
	alone := run.Row{
		ID: "redis-alone-256", Title: "256 callers", Callers: 256, Want: 1.3,
		Admit: run.Side{System: a, Does: tokens, Open: calls.Tokens(a.Target)},
		Peer:  run.Side{System: r, Does: "the bucket", Open: r.Tokens(1)},
	}
	return run.Group{
		ID: "redis-alone", Title: "Redis alone",
		Text:    redisText + "One node each.",
		Systems: []system.System{a, r},
		Rows: []run.Row{alone, onSession(alone, calls.SessionTokens(a.Target)), {
			ID: "redis-alone-16x64", Title: "16 callers with 64 requests in a call", Callers: 16, Want: 2,
			Admit: run.Side{System: a, Does: batches, Open: calls.TokenBatches(a.Target, 64)},
			Peer:  run.Side{System: r, Does: "the bucket 64 times in a pipeline", Open: r.Tokens(64)},
		}},
		Check: a.Check,
	}
}

func gubernatorGroup(a *admitd.Admit) run.Group {
	g := &gubernator.Gubernator{}
	row := func(id, title string, callers int, want, stretch float64) run.Row {
		return run.Row{
			ID: id, Title: title, Callers: callers, Want: want, Stretch: stretch,
			Admit: run.Side{System: a, Does: tokens, Open: calls.Tokens(a.Target)},
			Peer:  run.Side{System: g, Does: "GetRateLimits", Open: g.Tokens},
		}
	}
	return run.Group{
		ID: "gubernator", Title: "gubernator",
		Text: "Token buckets in the memory of three nodes, each on one of them: nothing is replicated or written down, and a node\n" +
			"that ends takes its buckets with it. admit decides on three nodes, with its log flushed to disk.",
		Systems: []system.System{a, g},
		Rows: []run.Row{
			row("gubernator-64", "64 callers", 64, 0, 0),
			row("gubernator-256", "256 callers", 256, 1.5, 2),
			onSession(row("gubernator-256", "256 callers", 256, 1.5, 2), calls.SessionTokens(a.Target)),
		},
		Check: a.Check,
	}
}

func raftGroup(a *admitd.Admit) run.Group {
	r := &rawraft.Raft{}
	return run.Group{
		ID: "raft", Title: "One caller",
		Text: "What one caller waits for beside what a commit takes in the library that admit replicates with: an entry that means\n" +
			"nothing, with the same log store on three nodes, asked for within the leader's own process. Its leader is the\n" +
			"process that asks, so that its processor time is that of both.",
		Systems: []system.System{a, r},
		Rows: []run.Row{{
			ID: "one-caller", Title: "one caller", Callers: 1, MostP50: 1.5,
			Admit: run.Side{System: a, Does: permits, Open: calls.Permits(a.Target)},
			Peer:  run.Side{System: r, Does: "commit", Open: r.Commit},
		}},
		Check: a.Check,
	}
}
