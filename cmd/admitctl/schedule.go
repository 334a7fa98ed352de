package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// scheduleBatch is the most entries that the API takes in one call.
const scheduleBatch = 1000

// scheduleFlags describe one entry, or what the lines of a file leave out.
type scheduleFlags struct {
	spec  admitv1.EntrySpec
	dueIn time.Duration
	dueAt string
	// every and cadence say how the entry comes back.
	every   time.Duration
	cadence string
	file    string
}

func (a *app) dueScheduleCommand() *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "schedule POOL {--tenant TENANT --key KEY | -f FILE}",
		Short: "Put entries into the index of due work",
		Long: `Put entries into the index of due work: one from flags, or many from a file with a
JSON object on each line, "-" for stdin:

  {"tenant": "acme", "key": "welcome-1", "category": "newsletter", "due_in": "600s"}

The fields are those of the API's EntrySpec. With a file the flags --tenant,
--category, --route, --group and --max-attempts stand in where a line says
nothing. Entries are sent by the thousand, in order; scheduling the same thing
again changes nothing, so a file can be sent again after a failure.`,
		Example: `  admitctl due schedule email --tenant acme --key welcome-1 --category newsletter --in 10m
  admitctl due schedule email --tenant acme --key nightly-digest --every 24h
  admitctl due schedule email -f campaign.jsonl`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.spec.Tenant, "tenant", "", "on whose behalf")
	flags.StringVar(&f.spec.Key, "key", "", "names the entry within its pool and tenant")
	flags.StringVar(&f.spec.Category, "category", "", "what the work is; the policy maps it to a lane")
	flags.StringVar(&f.spec.Route, "route", "", "the tenant's sub-queue")
	flags.StringVar(&f.spec.Group, "group", "", "the run or campaign that the entry belongs to")
	flags.Int32Var(&f.spec.MaxAttempts, "max-attempts", 0, "attempts before the entry is dead (default the pool's)")
	flags.DurationVar(&f.dueIn, "in", 0, "come due after this time (default now)")
	flags.StringVar(&f.dueAt, "at", "", "come due at this time, as in 2030-01-31T12:00:00Z")
	flags.DurationVar(&f.every, "every", 0, "come back on a fixed grid from the due time on, 1s to 8784h")
	flags.StringVar(&f.cadence, "cadence", "", "come back at this cadence of the pool")
	flags.StringVarP(&f.file, "file", "f", "", "read entries from this file, a JSON object on each line")
	cmd.MarkFlagsMutuallyExclusive("in", "at", "file")
	cmd.MarkFlagsMutuallyExclusive("every", "cadence", "file")
	cmd.MarkFlagsMutuallyExclusive("key", "file")
	cmd.MarkFlagsOneRequired("key", "file")
	cmd.RunE = a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		entries, err := f.source(a, cmd)
		if err != nil {
			return err
		}
		return a.schedule(ctx, args[0], entries)
	})
	return cmd
}

// source returns where the entries come from.
func (f *scheduleFlags) source(a *app, cmd *cobra.Command) (entrySource, error) {
	if f.file != "" {
		return a.openEntries(f.file, &f.spec)
	}
	if f.spec.Tenant == "" {
		return nil, &usageError{"--key needs --tenant"}
	}
	switch {
	case cmd.Flags().Changed("every"):
		f.spec.Recurrence = &admitv1.EntrySpec_Every{Every: durationpb.New(f.every)}
	case f.cadence != "":
		f.spec.Recurrence = &admitv1.EntrySpec_Cadence{Cadence: f.cadence}
	}
	switch {
	case f.dueAt != "":
		t, err := time.Parse(time.RFC3339Nano, f.dueAt)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--at: expected a time such as 2030-01-31T12:00:00Z, got %q", f.dueAt)}
		}
		f.spec.Due = &admitv1.EntrySpec_DueAt{DueAt: timestamppb.New(t)}
	case cmd.Flags().Changed("in"):
		f.spec.Due = &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(f.dueIn)}
	}
	return &oneEntry{spec: &f.spec}, nil
}

// scheduled counts what became of the entries.
type scheduled struct {
	byStatus map[admitv1.ScheduleResult_Status]int
	all      admitv1.ScheduleResponse
}

// schedule sends the entries in batches.
func (a *app) schedule(ctx context.Context, pool string, entries entrySource) error {
	defer entries.close()
	done := scheduled{byStatus: map[admitv1.ScheduleResult_Status]int{}}
	c, err := a.dial(client.WithRetryFor(retryFor))
	if err != nil {
		return err
	}
	defer c.Close()
	bar := a.newProgress()
	defer bar.end()
	for {
		batch, err := entries.next(scheduleBatch)
		if err == nil && len(batch) > 0 {
			err = a.sendBatch(ctx, c, pool, batch, &done)
		}
		if err != nil {
			if n := len(done.all.GetResults()); n > 0 {
				a.say("%d entries were sent before this", n)
			}
			return err
		}
		if len(batch) < scheduleBatch {
			bar.end()
			return a.printScheduled(&done)
		}
		bar.at(entries.read(), fmt.Sprintf("%d entries sent", len(done.all.GetResults())))
	}
}

func (a *app) sendBatch(ctx context.Context, c *client.Client, pool string, batch []namedEntry, done *scheduled) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	req := &admitv1.ScheduleRequest{Pool: pool, Entries: make([]*admitv1.EntrySpec, len(batch))}
	for i, e := range batch {
		req.Entries[i] = e.spec
	}
	resp, err := c.DueWork().Schedule(ctx, req)
	if err != nil {
		return inFile(err, batch)
	}
	for i, r := range resp.GetResults() {
		done.byStatus[r.GetStatus()]++
		switch r.GetStatus() {
		case admitv1.ScheduleResult_STATUS_SHED:
			a.say("%sshed: %s", batch[i].where, apiName(r.GetReason(), "REASON_"))
		case admitv1.ScheduleResult_STATUS_ERROR:
			a.say("%s%s (%s)", batch[i].where, r.GetError().GetMessage(), r.GetError().GetReason())
		}
	}
	done.all.Results = append(done.all.Results, resp.GetResults()...)
	done.all.Shedding = resp.GetShedding()
	return nil
}

func (a *app) printScheduled(done *scheduled) error {
	err := a.print(&done.all, func(w io.Writer) {
		var parts []string
		for status := admitv1.ScheduleResult_STATUS_SCHEDULED; status <= admitv1.ScheduleResult_STATUS_ERROR; status++ {
			if n := done.byStatus[status]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, strings.ToLower(apiName(status, "STATUS_"))))
			}
		}
		if len(parts) == 0 {
			parts = []string{"no entries"}
		}
		fmt.Fprintln(w, strings.Join(parts, ", "))
	})
	switch {
	case err != nil:
		return err
	case done.byStatus[admitv1.ScheduleResult_STATUS_ERROR] > 0:
		return &codeError{code: exitFailure}
	case done.byStatus[admitv1.ScheduleResult_STATUS_SHED] > 0:
		return &codeError{code: exitShed}
	}
	return nil
}
