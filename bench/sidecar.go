package main

import (
	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// sidecarGroup compares calls by way of a sidecar with the same calls to the leader.
func sidecarGroup(a *admitd.Admit) run.Group {
	s := admitd.NewSidecar(a)
	row := func(id, title, does string, callers int, want float64, open func(calls.Target) system.Open) run.Row {
		return run.Row{
			ID: id, Title: title, Callers: callers, Want: want,
			Admit: run.Side{System: s, Does: does, Open: open(s.Target)},
			Peer:  run.Side{System: a, Does: does, Open: open(a.Target)},
		}
	}
	inBatches := func(at calls.Target) system.Open { return calls.LentTokenBatches(at, 64) }
	return run.Group{
		ID: "sidecar", Title: "By way of a sidecar",
		Text: "Callers ask a sidecar on a Unix socket, and beside it the leader of three nodes. Tokens that sidecars may hold are\n" +
			"granted from a share without a call to the cluster; for permits the sidecar asks the cluster on one stream.",
		Systems: []system.System{a, s},
		Rows: []run.Row{
			row("lent-1", "one caller", tokens, 1, 10, calls.LentTokens),
			row("lent-64", "64 callers", tokens, 64, 10, calls.LentTokens),
			row("lent-256", "256 callers", tokens, 256, 10, calls.LentTokens),
			row("lent-batch", "16 callers with 64 requests in a call", "BatchAcquire of tokens", 16, 10, inBatches),
			row("coalesced-256", "256 callers", permits, 256, 2, calls.Permits),
		},
		Check: a.Check,
	}
}
