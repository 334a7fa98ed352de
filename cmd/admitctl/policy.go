package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "policy",
		Short:   "Apply, show, check and test policies",
		Example: "  admitctl policy validate policy.yaml && admitctl policy apply policy.yaml",
	}
	cmd.AddCommand(a.policyApplyCommand(), a.policyGetCommand(), a.policyValidateCommand(), a.policyTestCommand(),
		a.policyDiffCommand(), a.policyLintCommand(), a.policyHistoryCommand(), a.policyRollbackCommand(), a.policySchemaCommand(), a.policyImportCommand())
	return group(cmd)
}

func (a *app) policyApplyCommand() *cobra.Command {
	var expected int64
	var f applyFlags
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Put a policy in force",
		Long: `Put a policy in force from the next decision on: YAML or JSON, "-" for stdin. What
is wrong with it is told with line and column, before anything is sent.`,
		Example: "  admitctl policy apply policy.yaml --expected-revision 1",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().Int64Var(&expected, "expected-revision", 0, "apply only if this revision is in force, 0 before the first")
	f.add(cmd)
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error {
		p, err := a.loadPolicy(args[0])
		if err != nil {
			return err
		}
		req := &admitv1.ApplyPolicyRequest{Policy: p, DryRun: f.dryRun, Drain: f.drain}
		if cmd.Flags().Changed("expected-revision") {
			req.ExpectedRevision = &expected
		}
		return a.applyPolicy(ctx, c, req)
	})
	return cmd
}

// applyFlags say how a policy is applied.
type applyFlags struct{ dryRun, drain bool }

func (f *applyFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would come of it and change nothing")
	cmd.Flags().BoolVar(&f.drain, "drain", false, "let pools, lanes and categories go that are in use, once they are empty")
}

func (a *app) applyPolicy(ctx context.Context, c *client.Client, req *admitv1.ApplyPolicyRequest) error {
	resp, err := c.Policy().ApplyPolicy(ctx, req)
	if err != nil {
		return err
	}
	return a.print(resp, func(w io.Writer) {
		would := ""
		if req.GetDryRun() {
			would = "would be "
		}
		if resp.GetChanged() {
			fmt.Fprintf(w, "%srevision %d\n", would, resp.GetRevision())
		} else {
			fmt.Fprintf(w, "%srevision %d, unchanged\n", would, resp.GetRevision())
		}
		for _, d := range resp.GetDraining() {
			fmt.Fprintf(w, "%sdraining: %s, with %d permits and %d entries\n", would, drainText(d), d.GetPermits(), d.GetEntries())
		}
	})
}

func drainText(d *admitv1.Draining) string {
	if d.GetLane() == "" {
		return "pool " + d.GetPool()
	}
	return "lane " + d.GetLane() + " of pool " + d.GetPool()
}

func (a *app) policyGetCommand() *cobra.Command {
	req := &admitv1.GetPolicyRequest{}
	cmd := &cobra.Command{
		Use:     "get",
		Short:   "Show the policy in force",
		Long:    "Show the policy in force, or one before it, as text in the form of a policy file.",
		Example: "  admitctl policy get > policy.yaml",
		Args:    cobra.NoArgs,
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, _ []string) error {
			resp, err := c.Policy().GetPolicy(ctx, req)
			if err != nil {
				return err
			}
			if resp.GetRevision() == 0 && a.output == outputText {
				a.say("no policy was ever applied")
				return nil
			}
			file, err := toYAML(resp.GetPolicy())
			if err != nil {
				return err
			}
			return a.print(resp, func(w io.Writer) {
				fmt.Fprintf(w, "# revision %d, applied %s\n%s", resp.GetRevision(),
					resp.GetAppliedAt().AsTime().Format(time.RFC3339), file)
			})
		}),
	}
	cmd.Flags().Int64Var(&req.Revision, "revision", 0, "show the policy of this revision (default the one in force)")
	return cmd
}

func (a *app) policyValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "validate FILE...",
		Short:   "Check policy files, without a node",
		Long:    `Check policy files, without a node: every error is told, with line and column.`,
		Example: "  admitctl policy validate policy.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
			var wrong bool
			for _, name := range args {
				var fe *policy.FileError
				switch _, err := a.loadPolicy(name); {
				case errors.As(err, &fe):
					wrong = true
					a.say("%s", fe)
				case err != nil:
					return err
				default:
					a.say("%s is valid", name)
				}
			}
			if wrong {
				return &codeError{code: exitFailure}
			}
			return nil
		}),
	}
}

// loadPolicy reads a policy file, or stdin as "-".
func (a *app) loadPolicy(name string) (*admitv1.Policy, error) {
	data, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	p, _, err := policy.Load(shownName(name), data)
	return p, err
}

func (a *app) readFile(name string) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(a.stdin)
		if err != nil {
			return nil, fmt.Errorf("reading stdin: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(name)
}

func shownName(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}
