package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/envoyimport"
	"github.com/admitd/admit/internal/policy"
)

func (a *app) policyImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import",
		Short:   "Turn another service's configuration into a policy",
		Example: "  admitctl policy import envoy-ratelimit ratelimit.yaml > imported.yaml",
	}
	cmd.AddCommand(a.policyImportEnvoyCommand())
	return group(cmd)
}

func (a *app) policyImportEnvoyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "envoy-ratelimit FILE",
		Short: "Turn a configuration of Envoy's reference rate limit service into a policy",
		Long: `Turn a configuration of Envoy's reference rate limit service into a policy with one
pool, named like the domain, and print it: "-" reads stdin. What has no equal is told
on stderr, with line and column. Where that is a limit which now holds otherwise, the
exit code is 1, and the policy is printed all the same.`,
		Example: "  admitctl policy import envoy-ratelimit ratelimit.yaml > imported.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
			data, err := a.readFile(args[0])
			if err != nil {
				return err
			}
			name := shownName(args[0])
			got, err := envoyimport.Read(name, data)
			if err != nil {
				return err
			}
			file, err := toYAML(got.Policy)
			if err != nil {
				return err
			}
			if err := a.print(got.Policy, func(w io.Writer) { _, _ = w.Write(file) }); err != nil {
				return err
			}
			if told := policy.NewFileError(name, slices.Concat(got.Lost, got.Notes)); told != nil {
				a.say("%s", told)
			}
			if len(got.Lost) > 0 {
				return &codeError{code: exitFailure}
			}
			return nil
		}),
	}
}
