package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// workFlags are the flags that describe work to be admitted.
type workFlags struct{ work client.Work }

func (f *workFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.work.Tenant, "tenant", "", "on whose behalf (required)")
	flags.StringVar(&f.work.Category, "category", "", "what the work is; the policy maps it to a lane")
	flags.Int64Var(&f.work.Cost, "cost", 1, "tokens to take from each bucket that charges COST, 1 to 2^53")
	flags.DurationVar(&f.work.TTL, "ttl", 0, "how long the permit lives unless renewed, 1s to 24h (default the pool's)")
	flags.StringVar(&f.work.LockKey, "lock", "", "what only so many permits of the tenant may hold, by the pool's lock_max_active")
	flags.StringVar(&f.work.DedupeKey, "dedupe", "", "names the job: it is shed while it runs, and when it is done")
	flags.StringVar(&f.work.WorkerID, "worker-id", "", "shown to operators beside the permit")
	required(cmd, "tenant")
}

// read completes the work from the command line. The client takes 0 for absent,
// so that a 0 that was given must be refused here.
func (f *workFlags) read(cmd *cobra.Command, pool string) (client.Work, error) {
	f.work.Pool = pool
	if f.work.Cost == 0 {
		return f.work, &usageError{"--cost: expected 1 to 2^53, got 0"}
	}
	if cmd.Flags().Changed("ttl") && f.work.TTL == 0 {
		return f.work, &usageError{"--ttl: expected 1s to 24h, got 0s"}
	}
	return f.work, nil
}

func required(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist: a slip in this program
		}
	}
}

func (a *app) acquireCommand() *cobra.Command {
	var f workFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "acquire POOL --tenant TENANT",
		Short: "Ask for a permit, once",
		Long: `Ask for a permit, once, and with --wait stand in line for it. Prints the permit's
token: pass it to "admitctl release" when the work is done; with --rate-only alone
there is none. Exits with 3 if the request was shed, or with --dry-run would be.`,
		Example: "  token=$(admitctl acquire email --tenant acme --category otp)",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.work.RequestID, "request-id", "", "names this call, so that a retry has the effect of one call")
	flags.DurationVar(&f.work.MaxWait, "wait", 0, "how long to wait in line, up to 60s (default not at all)")
	flags.BoolVar(&f.work.RateOnly, "rate-only", false, "take tokens and no slot")
	flags.BoolVar(&f.work.Settle, "settle", false, "with --rate-only: print a token, to tell the actual cost by")
	flags.Int64Var(&f.work.Backlog, "backlog", 0, "how much waits behind this in your own queue")
	flags.BoolVar(&dryRun, "dry-run", false, "only ask what would be decided now")
	waits := a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		work, err := f.read(cmd, args[0])
		if err != nil {
			return err
		}
		ask := c.Acquire
		if dryRun {
			ask = c.DryRun
		}
		d, err := ask(ctx, work)
		if err != nil {
			return err
		}
		return a.printDecision(d)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.timeout += max(f.work.MaxWait, 0)
		return waits(cmd, args)
	}
	return cmd
}

func (a *app) printDecision(d client.Decision) error {
	out := &admitv1.AcquireResponse{
		Decision: &admitv1.Decision{Replayed: d.Replayed, Borrowed: d.Borrowed, WouldShed: d.WouldShed},
		Shedding: d.Shedding,
	}
	switch p := d.Permit; {
	case p != nil:
		out.Decision.Outcome = &admitv1.Decision_Permit{Permit: &admitv1.Permit{
			Token: p.Token, Fence: p.Fence, ExpiresIn: durationpb.New(p.TTL),
			Pool: p.Pool, Tenant: p.Tenant, Lane: p.Lane, State: p.State,
		}}
		return a.print(out, func(w io.Writer) { a.grantText(w, d) })
	case d.WouldGrant != nil:
		out.Decision.Outcome = &admitv1.Decision_WouldGrant{WouldGrant: d.WouldGrant}
		return a.print(out, func(w io.Writer) { fmt.Fprintln(w, "would be granted: lane", d.WouldGrant.GetLane()) })
	}
	out.Decision.Outcome = &admitv1.Decision_Shed{Shed: d.Shed}
	if err := a.print(out, func(io.Writer) {}); err != nil {
		return err
	}
	return &client.ShedError{Shed: d.Shed}
}

func (a *app) grantText(w io.Writer, d client.Decision) {
	p := d.Permit
	text := fmt.Sprintf("granted: lane %s, fence %d", p.Lane, p.Fence)
	if p.State == admitv1.PermitState_PERMIT_STATE_SPENT {
		text += ", nothing to release"
	} else {
		fmt.Fprintln(w, p.Token)
		text += ", expires in " + short(durationpb.New(p.TTL))
	}
	if d.Replayed {
		text += ", replayed: " + apiName(p.State, "PERMIT_STATE_")
	}
	a.say("%s", text)
	if d.WouldShed != nil {
		a.say("would have been shed: %s", shedText(d.WouldShed))
	}
}

// shedText says why a request was held back and when to come back.
func shedText(s *admitv1.Shed) string {
	var b strings.Builder
	b.WriteString(apiName(s.GetReason(), "REASON_"))
	for i, l := range s.GetBlocking() {
		sep := ", "
		if i == 0 {
			sep = " by "
		}
		fmt.Fprintf(&b, "%s%s (%d of %d used", sep, l.GetName(), l.GetUsed(), l.GetCapacity())
		if l.GetReserve() > 0 {
			fmt.Fprintf(&b, ", %d kept for higher lanes", l.GetReserve())
		}
		b.WriteString(")")
	}
	switch {
	case s.MaxGrantable != nil:
		fmt.Fprintf(&b, "; the most that can be granted is %d", s.GetMaxGrantable())
	case s.GetRetryAfter() != nil:
		fmt.Fprintf(&b, "; retry in %s", rough(s.GetRetryAfter()))
	case s.GetPollAfter() != nil:
		fmt.Fprintf(&b, "; needs a release, ask again in %s", rough(s.GetPollAfter()))
	}
	return b.String()
}

// apiName is an enum's value as the API's texts call it.
func apiName(v fmt.Stringer, prefix string) string { return strings.TrimPrefix(v.String(), prefix) }

func (a *app) renewCommand() *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:     "renew TOKEN...",
		Short:   "Extend permits",
		Long:    "Extend permits. Exits with 1 if one of them is not renewed.",
		Example: "  admitctl renew --ttl 5m \"$token\"",
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "new time to live from now, 1s to 24h (default each permit's own)")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("ttl") && ttl == 0 {
			return &usageError{"--ttl: expected 1s to 24h, got 0s"}
		}
		results, err := c.Renew(ctx, ttl, args...)
		if err != nil {
			return err
		}
		err = a.print(&admitv1.RenewResponse{Results: results}, func(w io.Writer) {
			for _, r := range results {
				fmt.Fprintln(w, strings.TrimSpace(apiName(r.GetResult(), "LEASE_RESULT_")+" "+short(r.GetExpiresIn())))
			}
		})
		lost := slices.ContainsFunc(results, func(r *admitv1.RenewResult) bool {
			return r.GetResult() != admitv1.LeaseResult_LEASE_RESULT_RENEWED
		})
		if err == nil && lost {
			return &codeError{code: exitFailure}
		}
		return err
	})
	return cmd
}

// outcomeNames are the outcomes by the names that people type.
var outcomeNames = map[string]admitv1.Outcome{
	"DONE":        admitv1.Outcome_OUTCOME_DONE,
	"FAILED":      admitv1.Outcome_OUTCOME_FAILED,
	"THROTTLED":   admitv1.Outcome_OUTCOME_THROTTLED,
	"NOT_STARTED": admitv1.Outcome_OUTCOME_NOT_STARTED,
	"DEAD":        admitv1.Outcome_OUTCOME_DEAD,
}

func (a *app) releaseCommand() *cobra.Command {
	var outcome string
	var actualCost int64
	var miss bool
	var r client.Release
	cmd := &cobra.Command{
		Use:   "release TOKEN",
		Short: "Give a permit back",
		Long: `Give a permit back and say how the work ended. Releasing twice is harmless. Exits
with 1 if the permit had expired.`,
		Example: "  admitctl release \"$token\" --outcome THROTTLED --retry-after 30s --bucket provider",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	names := slices.Sorted(maps.Keys(outcomeNames))
	flags.StringVar(&outcome, "outcome", "DONE", "how the work ended: "+strings.Join(names, ", "))
	flags.Int64Var(&actualCost, "actual-cost", 0, "what the work really cost, 0 to 2^53 (default the cost asked for)")
	flags.DurationVar(&r.RetryAfter, "retry-after", 0, "with THROTTLED: how long the provider asked to wait")
	flags.StringVar(&r.Bucket, "bucket", "", "with THROTTLED: the bucket to pause (default the only POOL bucket)")
	flags.BoolVar(&miss, "miss", false, "with DONE: the work found nothing, so that a cadence backs off")
	complete(cmd, "outcome", names...)
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		var ok bool
		if r.Outcome, ok = outcomeNames[outcome]; !ok {
			return &usageError{fmt.Sprintf("--outcome: expected one of %s, got %q", strings.Join(names, ", "), outcome)}
		}
		if cmd.Flags().Changed("actual-cost") {
			r.ActualCost = &actualCost
		}
		if miss {
			r.Result = admitv1.Finding_FINDING_MISS
		}
		result, err := c.Release(ctx, args[0], r)
		if err != nil {
			return err
		}
		err = a.print(&admitv1.ReleaseResponse{Result: result}, func(w io.Writer) {
			fmt.Fprintln(w, apiName(result, "LEASE_RESULT_"))
		})
		if err == nil && result == admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST {
			return &codeError{code: exitFailure}
		}
		return err
	})
	return cmd
}
