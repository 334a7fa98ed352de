package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) policyHistoryCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "history",
		Short: "List the policies that were in force",
		Long: `List the policies that were in force, the one that is first: their revisions, when
they were applied, and the pools that they changed. The last 20 before the present
one are kept; "admitctl policy get --revision N" shows one, "admitctl policy
rollback N" applies it again.`,
		Example: "  admitctl policy history",
		Args:    cobra.NoArgs,
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, _ []string) error {
			resp, err := c.Policy().ListRevisions(ctx, &admitv1.ListRevisionsRequest{})
			if err != nil {
				return err
			}
			return a.print(resp, func(w io.Writer) {
				table(w, "REVISION APPLIED POOLS", func(row func(...any)) {
					for _, r := range resp.GetRevisions() {
						row(r.GetRevision(), r.GetAppliedAt().AsTime().Format(time.RFC3339), strings.Join(r.GetChangedPools(), ", "))
					}
				})
			})
		}),
	}
}

func (a *app) policyRollbackCommand() *cobra.Command {
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Apply a policy that was in force again",
		Long: `Apply a policy that was in force again, as a new revision. It is refused if another
policy is applied meanwhile.`,
		Example: "  admitctl policy rollback 1 --dry-run",
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd)
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		revision, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || revision < 1 {
			return &usageError{fmt.Sprintf("expected a revision, a number from 1, got %q", args[0])}
		}
		now, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
		if err != nil {
			return err
		}
		before, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{Revision: revision})
		if err != nil {
			return err
		}
		return a.applyPolicy(ctx, c, &admitv1.ApplyPolicyRequest{
			Policy: before.GetPolicy(), ExpectedRevision: &now.Revision, DryRun: f.dryRun, Drain: f.drain,
		})
	})
	return cmd
}

// policyDiff is what a policy would change.
type policyDiff struct {
	// Revision is that of the policy in force.
	Revision int64           `json:"revision" yaml:"revision"`
	Changes  []policy.Change `json:"changes" yaml:"changes"`
	Effects  []policy.Effect `json:"effects" yaml:"effects"`
}

func (a *app) policyDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff FILE",
		Short: "Show what a policy would change, and for whom",
		Long: `Show what a policy would change: each field that it has otherwise than the policy in
force, and what comes of it for the pools as they stand: whose cap falls below what
they hold, which buckets slow down, what drains. Changes nothing.`,
		Example: "  admitctl policy diff policy.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			next, err := a.loadPolicy(args[0])
			if err != nil {
				return err
			}
			d, err := a.diffPolicy(ctx, c, next)
			if err != nil {
				return err
			}
			return a.printValue(d, d.text)
		}),
	}
}

func (a *app) diffPolicy(ctx context.Context, c *client.Client, next *admitv1.Policy) (*policyDiff, error) {
	now, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
	if err != nil {
		return nil, err
	}
	was, _ := policy.FromProto(now.GetPolicy())
	is, _ := policy.FromProto(next)
	live, err := livePools(ctx, c, now.GetPolicy(), next)
	if err != nil {
		return nil, err
	}
	d := &policyDiff{
		Revision: now.GetRevision(), Changes: policy.Diff(now.GetPolicy(), next), Effects: policy.Effects(was, is, live),
	}
	would, err := c.Policy().ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{Policy: next, DryRun: true, Drain: true})
	if err != nil {
		return nil, err
	}
	for _, left := range would.GetDraining() {
		d.Effects = append(d.Effects, policy.Effect{Pool: left.GetPool(), Text: fmt.Sprintf(
			"%s drains, which wants --drain: %d permits and %d entries are left in it", drainText(left), left.GetPermits(), left.GetEntries(),
		)})
	}
	return d, nil
}

// livePools asks how the pools stand that both policies have.
func livePools(ctx context.Context, c *client.Client, was, is *admitv1.Policy) (map[string]policy.Live, error) {
	live := map[string]policy.Live{}
	for _, p := range was.GetPools() {
		live[p.GetName()] = policy.Live{}
	}
	for _, p := range is.GetPools() {
		if _, both := live[p.GetName()]; !both {
			continue
		}
		health, err := c.Status().QueueHealth(ctx, &admitv1.QueueHealthRequest{Pool: p.GetName()})
		if err != nil {
			return nil, err
		}
		tenants, err := listTenants(ctx, c, p.GetName(), &listFlags{})
		if err != nil {
			return nil, err
		}
		l := policy.Live{Active: health.GetPools()[0].GetActive()}
		for _, t := range tenants.GetTenants() {
			l.Tenants = append(l.Tenants, policy.LiveTenant{
				ID: t.GetShare().GetId(), Active: t.GetActive(), Put: t.GetSource() == admitv1.TenantStatus_SOURCE_PUT,
			})
		}
		live[p.GetName()] = l
	}
	return live, nil
}

func (d *policyDiff) text(w io.Writer) {
	if len(d.Changes) == 0 {
		fmt.Fprintf(w, "as revision %d\n", d.Revision)
		return
	}
	for _, c := range d.Changes {
		switch {
		case c.Was == "":
			fmt.Fprintf(w, "+ %s: %s\n", c.Field, c.Is)
		case c.Is == "":
			fmt.Fprintf(w, "- %s: %s\n", c.Field, c.Was)
		default:
			fmt.Fprintf(w, "~ %s: %s -> %s\n", c.Field, c.Was, c.Is)
		}
	}
	for _, e := range d.Effects {
		who := "pool " + e.Pool
		if e.Tenant != "" {
			who += ", tenant " + e.Tenant
		}
		fmt.Fprintf(w, "! %s: %s\n", who, e.Text)
	}
}

func (a *app) policyLintCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE...",
		Short: "Advise on policy files, without a node",
		Long: `Advise on policy files that are valid, without a node: what is allowed and is seldom
meant, such as a lower lane that leaves nothing, entitlements beyond what there is,
or a mark that is never reached. Exits with 1 if there is any advice.`,
		Example: "  admitctl policy lint policy.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
			all := []lintAdvice{}
			for _, name := range args {
				data, err := a.readFile(name)
				if err != nil {
					return err
				}
				advice, err := policy.Lint(shownName(name), data)
				if err != nil {
					return err
				}
				for _, p := range advice {
					all = append(all, lintAdvice{shownName(name), p.Line, p.Column, p.Field, p.Message})
				}
			}
			err := a.printValue(all, func(w io.Writer) {
				for _, p := range all {
					fmt.Fprintf(w, "%s:%d:%d: %s: %s\n", p.File, p.Line, p.Column, p.Field, p.Advice)
				}
			})
			if err == nil && len(all) > 0 {
				return &codeError{code: exitFailure}
			}
			return err
		}),
	}
}

type lintAdvice struct {
	File   string `json:"file" yaml:"file"`
	Line   int    `json:"line" yaml:"line"`
	Column int    `json:"column" yaml:"column"`
	Field  string `json:"field" yaml:"field"`
	Advice string `json:"advice" yaml:"advice"`
}

func (a *app) policySchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of policy files, for editors",
		Long: `Print the JSON Schema of policy files. Editors that know YAML complete and check keys
by it; the yaml-language-server finds it by a comment in the file:

  # yaml-language-server: $schema=policy.schema.json`,
		Example: "  admitctl policy schema > policy.schema.json",
		Args:    cobra.NoArgs,
		RunE: a.does(func(context.Context, *cobra.Command, []string) error {
			_, err := a.stdout.Write(policy.Schema())
			return err
		}),
	}
}

// printValue is print for what is no message of the API.
func (a *app) printValue(v any, text func(w io.Writer)) error {
	switch a.output {
	case outputJSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case outputYAML:
		return yaml.NewEncoder(a.stdout).Encode(v)
	}
	text(a.stdout)
	return nil
}
