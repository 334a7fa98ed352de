package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/buildinfo"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/logging"
	"github.com/admitd/admit/internal/node"
)

// Exit codes beside 0: the node failed or could not start, and it was called
// wrongly (flags, configuration).
const (
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in how the command was called or configured.
type usageError struct{ error }

func exitCode(err error) int {
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitFailure
}

const about = `admitd runs one admit node: the gRPC API, metrics and health. Without settings it is
alone, on loopback; docs/operations.md tells of three that are a cluster.

Each setting comes from its flag, else from its environment variable, else from
the configuration file (drain_delay for --drain-delay), else it has its default.

Exit codes: 0 stopped in order, 1 failed, 2 called or configured wrongly.`

// newCommand returns the command. lookup reads the environment.
func newCommand(lookup func(string) (string, bool)) *cobra.Command {
	var file string
	var check bool
	cmd := &cobra.Command{
		Use:           "admitd",
		Short:         "Runs one admit node",
		Long:          about,
		Args:          noArgs,
		Version:       buildinfo.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(file, lookup, cmd.Flags())
		if err != nil {
			return usageError{err}
		}
		if check {
			return checkConfig(cmd.OutOrStdout(), cfg)
		}
		if err := cfg.Validate(); err != nil {
			return usageError{err}
		}
		return run(cmd.Context(), cfg, lookup, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.Flags().StringVar(&file, "config", "", "configuration file, in YAML")
	cmd.Flags().BoolVar(&check, "check-config", false, "check the configuration and the policy file, and exit")
	config.AddFlags(cmd.Flags())
	cmd.AddCommand(newLogCommand(), newSidecarCommand(lookup))
	return cmd
}

func checkConfig(out io.Writer, cfg config.Config) error {
	if err := node.Check(cfg); err != nil {
		return usageError{err}
	}
	_, err := fmt.Fprintln(out, "the configuration is valid")
	return err
}

// run logs to stderr; stdout has what to try next.
func run(ctx context.Context, cfg config.Config, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	log, err := logging.New(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return usageError{err}
	}
	if limit, err := manageMemory(lookup); err != nil {
		log.Warn("collects garbage as usual", "error", err)
	} else {
		log.Debug("manages memory", "limit_bytes", limit)
	}
	return node.Run(ctx, cfg, log, func(n *node.Node) {
		_, _ = io.WriteString(stdout, welcome(ctx, n, cfg)) // a closed stdout is no reason to stop
	})
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}
