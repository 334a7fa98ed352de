package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
)

// What a bench may be asked for.
const (
	maxCallers = 10_000
	maxRate    = 1_000_000
	maxBench   = time.Hour
)

// benchFlags say which load a cluster is put under.
type benchFlags struct {
	work    client.Work
	callers int
	span    time.Duration
	rate    int64
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench POOL --tenant TENANT",
		Short: "Put load on a cluster, and tell how it bears it",
		Long: `Put load on a cluster, and tell how it bears it: how many requests for permits were
granted, shed and failed in a second, and how long the answers took.

Each of --callers asks, gives back at once what it is granted, and asks again. With
--rate the requests come due at that rate instead, however long answers take, and the
callers only bound how many are out at a time: the time of an answer is then counted
from when its request was due, and those that no caller came to are told as unsent.

It is real work to the cluster: it takes tokens and slots of the pool that others then
lack, in the tenant's name. A tenant that the pool does not know becomes known. Nothing
is tried again. What could not be given back expires by itself. An interrupt ends it
early, with what was measured until then.`,
		Example: "  admitctl bench email --tenant acme --rate 2 --for 1s",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.work.Tenant, "tenant", "", "in whose name (required)")
	flags.StringVar(&f.work.Category, "category", "", "what the work is; the policy maps it to a lane")
	flags.Int64Var(&f.work.Cost, "cost", 1, "tokens to take each time, 1 to 2^53")
	flags.BoolVar(&f.work.RateOnly, "rate-only", false, "take tokens and no slot")
	flags.IntVar(&f.callers, "callers", 8, "how many requests are out at a time, 1 to 10000")
	flags.DurationVar(&f.span, "for", 10*time.Second, "how long, up to 1h")
	flags.Int64Var(&f.rate, "rate", 0, "how many requests come due in a second, up to 1000000 (default as many as are answered)")
	required(cmd, "tenant")
	cmd.RunE = a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		f.work.Pool = args[0]
		if err := f.check(cmd); err != nil {
			return err
		}
		return a.bench(ctx, &f)
	})
	return cmd
}

func (f *benchFlags) check(cmd *cobra.Command) error {
	switch {
	case f.work.Cost < 1:
		return &usageError{fmt.Sprintf("--cost: expected 1 to 2^53, got %d", f.work.Cost)}
	case f.callers < 1 || f.callers > maxCallers:
		return &usageError{fmt.Sprintf("--callers: expected 1 to %d, got %d", maxCallers, f.callers)}
	case f.span <= 0 || f.span > maxBench:
		return &usageError{fmt.Sprintf("--for: expected more than 0s and up to 1h, got %s", f.span)}
	case cmd.Flags().Changed("rate") && (f.rate < 1 || f.rate > maxRate):
		return &usageError{fmt.Sprintf("--rate: expected 1 to %d, got %d", maxRate, f.rate)}
	}
	return nil
}

// bench asks once what would be decided, so that what can't work ends here, and then
// puts the load on.
func (a *app) bench(ctx context.Context, f *benchFlags) error {
	c, err := a.dial(client.WithRetryFor(0))
	if err != nil {
		return err
	}
	defer c.Close()
	first, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	if _, err := c.DryRun(first, f.work); err != nil {
		return err
	}
	a.say("taking real tokens and slots of pool %s as tenant %s, for %s", f.work.Pool, f.work.Tenant, f.span)
	l := &load{flags: f, client: c, timeout: a.timeout, tally: newTally()}
	bar := a.newProgress()
	l.run(ctx, func(passed time.Duration) {
		bar.at(float64(passed)/float64(f.span), fmt.Sprintf("%d answers", l.tally.latency.count()))
	})
	bar.end()
	report := l.report()
	if err := a.printBench(report); err != nil {
		return err
	}
	if report.Unreleased > 0 {
		a.say("%d permits could not be given back and expire by themselves", report.Unreleased)
	}
	if l.tally.latency.count() == 0 {
		return l.tally.last // nothing was answered: it says why
	}
	return nil
}
