package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) explainCommand() *cobra.Command {
	req := &admitv1.ExplainRequest{}
	var cost int64
	cmd := &cobra.Command{
		Use:   "explain POOL",
		Short: "Say why something waits",
		Long: `Say why a request would be held back, why an entry is not claimed, or how a permit
stands: every limit that was consulted, with its numbers, who stands ahead, and what
frees it. With --tenant alone it says how the tenant stands: what it may have and has,
and what of its work is held in which lane. Changes nothing.`,
		Example: "  admitctl explain email --tenant acme --category newsletter",
		Args:    cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&req.Tenant, "tenant", "", "on whose behalf; required but with --permit")
	flags.StringVar(&req.Category, "category", "", "what the work is; the policy maps it to a lane")
	flags.Int64Var(&cost, "cost", 1, "tokens to ask for, 0 to 2^53")
	flags.StringVar(&req.LockKey, "lock", "", "the lock key of the request")
	flags.StringVar(&req.DedupeKey, "dedupe", "", "the dedupe key of the request")
	flags.BoolVar(&req.RateOnly, "rate-only", false, "of a request for tokens and no slot")
	flags.StringVar(&req.RequestId, "request-id", "", "of a request that waits: explain it where it stands")
	flags.StringVar(&req.Key, "key", "", "explain this entry instead")
	flags.StringVar(&req.Permit, "permit", "", "explain this permit instead")
	cmd.MarkFlagsMutuallyExclusive("key", "permit")
	cmd.MarkFlagsOneRequired("tenant", "permit")
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		req.Pool, req.Cost = args[0], &cost
		resp, err := c.Status().Explain(ctx, req)
		if err != nil {
			return err
		}
		if req.GetPermit() != "" || req.GetKey() != "" || a.output != outputText {
			return a.print(resp.GetExplanation(), func(w io.Writer) { explanationText(w, resp.GetExplanation()) })
		}
		tenant, err := c.Status().GetTenant(ctx, &admitv1.GetTenantRequest{Pool: req.GetPool(), Tenant: req.GetTenant()})
		if err != nil {
			return err
		}
		if req.GetCategory() != "" {
			if tenant.GetTenant().GetUnknown() {
				fmt.Fprintln(a.stdout, unknownTenant(req.GetTenant()))
			}
			explanationText(a.stdout, resp.GetExplanation())
			return nil
		}
		held, err := allShed(ctx, c, &admitv1.GetSheddingRequest{Pool: req.GetPool(), Tenant: req.GetTenant()})
		if err != nil {
			return err
		}
		tenantStanding(a.stdout, tenant.GetTenant(), held)
		explanationText(a.stdout, resp.GetExplanation())
		return nil
	})
	return cmd
}

// tenantStanding writes how a tenant stands, above what holds its next request.
func tenantStanding(w io.Writer, t *admitv1.TenantStatus, held *admitv1.Shedding) {
	tenantTable(w, []*admitv1.TenantStatus{t})
	tenantParts(w, t)
	if len(held.GetHeld()) > 0 {
		fmt.Fprintln(w)
		table(w, heldHead, func(row func(...any)) { heldRows(row, held.GetHeld()) })
	}
	fmt.Fprintln(w, "\nits next request:")
}

func explanationText(w io.Writer, e *admitv1.Explanation) {
	if p := e.GetPermit(); p != nil {
		permitText(w, p)
	}
	if s := e.GetEntry(); s != nil {
		standingText(w, s)
	}
	if s := e.GetShed(); s != nil {
		fmt.Fprintf(w, "held: %s in lane %s\n", apiName(s.GetReason(), "REASON_"), e.GetLane())
		fmt.Fprintln(w, "freed by:", freedBy(s))
	} else if e.GetLine() != nil {
		fmt.Fprintf(w, "nothing holds it in lane %s\n", e.GetLane())
	}
	if s := e.GetShare(); s != nil {
		shareText(w, s)
	}
	if l := e.GetLine(); l != nil {
		lineText(w, l)
	}
	if r := e.GetReservation(); r != nil {
		fmt.Fprintf(w, "tokens reserved by: %s in lane %s, cost %d", r.GetTenant(), r.GetLane(), r.GetCost())
		if r.GetTokensIn() != nil {
			fmt.Fprintf(w, ", has them in %s", rough(r.GetTokensIn()))
		}
		fmt.Fprintln(w)
	}
	if len(e.GetLimits()) > 0 {
		limitsText(w, e.GetLimits())
	}
}

// freedBy says what lets a refused request pass, and when.
func freedBy(s *admitv1.Shed) string {
	text := "another policy, or nothing"
	switch {
	case s.MaxGrantable != nil:
		return fmt.Sprintf("nothing: the most that can be granted is %d", s.GetMaxGrantable())
	case s.GetRetryAfter() != nil:
		return "time, in " + rough(s.GetRetryAfter())
	case s.GetReason() == admitv1.Reason_REASON_PAUSED:
		text = "an operator"
	case s.GetPollAfter() != nil:
		text = "a release"
	}
	if s.GetEarliestExpiry() != nil {
		text += ", the earliest expiry is in " + rough(s.GetEarliestExpiry())
	}
	if s.GetPollAfter() != nil {
		text += ", ask again in " + rough(s.GetPollAfter())
	}
	return text
}

func permitText(w io.Writer, p *admitv1.PermitStanding) {
	fmt.Fprintf(w, "permit: %s", apiName(p.GetPermit().GetState(), "PERMIT_STATE_"))
	if p.GetPermit().GetState() == admitv1.PermitState_PERMIT_STATE_LIVE {
		fmt.Fprintf(w, ", expires in %s, cost %d", rough(p.GetPermit().GetExpiresIn()), p.GetCost())
	}
	for _, note := range []struct {
		told bool
		text string
	}{
		{p.GetEntry() != "", "entry " + p.GetEntry()},
		{p.GetWorkerId() != "", "worker " + p.GetWorkerId()},
		{p.GetBorrowed(), "borrowed"},
		{p.GetUncounted(), "holds no slot"},
	} {
		if note.told {
			fmt.Fprint(w, ", ", note.text)
		}
	}
	fmt.Fprintln(w)
}

func standingText(w io.Writer, s *admitv1.EntryStanding) {
	e := s.GetEntry()
	fmt.Fprintf(w, "entry: %s, attempt %d of %d", apiName(e.GetState(), "ENTRY_STATE_"), e.GetAttempts(), e.GetMaxAttempts())
	switch {
	case e.GetDiedAt() != nil:
		fmt.Fprint(w, ", died at ", moment(e.GetDiedAt()))
	case s.GetDueIn() != nil:
		fmt.Fprint(w, ", due in ", rough(s.GetDueIn()))
	case e.GetState() == admitv1.EntryState_ENTRY_STATE_QUEUED:
		fmt.Fprintf(w, ", due since %s, behind %d of its route and %d routes", moment(e.GetDueAt()), s.GetAhead(), s.GetRoutesAhead())
	}
	fmt.Fprintln(w)
}

func shareText(w io.Writer, s *admitv1.TenantShare) {
	class := "borrows"
	if s.GetEntitled() {
		class = "is entitled"
	}
	fmt.Fprintf(w, "the tenant %s: %d of %d preferred, %d permits", class, s.GetCounted(), s.GetPreferredActive(), s.GetActive())
	if s.MaxActive != nil {
		fmt.Fprintf(w, " of %d", s.GetMaxActive())
	}
	fmt.Fprintf(w, ", weight %d\n", s.GetWeight())
}

func lineText(w io.Writer, l *admitv1.LinePosition) {
	fmt.Fprintf(w, "ahead in the lane: %d of its own requests, %d tenants waiting, %d with due entries", l.GetOwn(), l.GetWaiting(), l.GetDue())
	for i, t := range l.GetFirst() {
		sep := ", "
		if i == 0 {
			sep = "; first "
		}
		fmt.Fprint(w, sep, t.GetTenant())
	}
	fmt.Fprintln(w)
}

func limitsText(w io.Writer, limits []*admitv1.ConsultedLimit) {
	table(w, "LIMIT SCOPE USED ASKED CAPACITY RESERVE BLOCKS RETRY", func(row func(...any)) {
		for _, c := range limits {
			l := c.GetLimit()
			blocks := ""
			if c.GetReason() != admitv1.Reason_REASON_UNSPECIFIED {
				blocks = apiName(c.GetReason(), "REASON_")
			}
			row(l.GetName(), apiName(l.GetScope(), "SCOPE_"), l.GetUsed(), l.GetAsked(), l.GetCapacity(), l.GetReserve(), blocks, rough(l.GetRetryAfter()))
		}
	})
}
