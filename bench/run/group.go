package run

import (
	"context"

	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/system"
)

// Group is what is measured in one go.
type Group struct {
	ID, Title, Text string
	// Systems are started in this order.
	Systems []system.System
	Rows    []Row
	// Measure, where it is set, measures what fits no row, after the rows. It returns what
	// it has measured where it fails, too.
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

func (r Row) openCallers() int {
	if r.OpenCallers > 0 {
		return r.OpenCallers
	}
	return max(r.Callers, 256)
}
