package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/logging"
	"github.com/admitd/admit/internal/sidecar"
)

const aboutSidecar = `Serve the API to the workers of this machine, on a Unix socket or a loopback port, and
ask the cluster for them: over one stream to the node that leads, again where that
helps. Permits are renewed while their workers' connections are there, and given back
when these have gone. Where the policy lets it, tokens are granted from a share of them
that the cluster lends. docs/sidecar.md tells more.

Each setting comes from its flag, else from its environment variable, else from
the configuration file (max_lifetime for --max-lifetime), else it has its default.`

func newSidecarCommand(lookup func(string) (string, bool)) *cobra.Command {
	var file string
	var check bool
	cmd := &cobra.Command{
		Use:     "sidecar",
		Short:   "Serve the workers of one machine",
		Long:    aboutSidecar,
		Example: `  admitd sidecar --listen unix:/run/admit/sidecar.sock --upstream 10.0.0.1:7420,10.0.0.2:7420`,
		Args:    noArgs,
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file, in YAML")
	cmd.Flags().BoolVar(&check, "check-config", false, "check the configuration and the files that it names, and exit")
	config.AddSidecarFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.LoadSidecar(file, lookup, cmd.Flags())
		if err != nil {
			return usageError{err}
		}
		wrong := cfg.Validate()
		if wrong == nil || check {
			wrong = errors.Join(wrong, sidecar.Check(sidecarConfig(cfg)))
		}
		switch {
		case wrong != nil:
			return usageError{wrong}
		case check:
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "the configuration is valid")
			return err
		}
		return runSidecar(cmd.Context(), cfg, lookup, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

func runSidecar(ctx context.Context, cfg config.Sidecar, lookup func(string) (string, bool), stdout, stderr io.Writer) error {
	log, err := logging.New(stderr, cfg.LogLevel, cfg.LogFormat)
	if err != nil {
		return usageError{err}
	}
	if _, err := manageMemory(lookup); err != nil {
		log.Warn("collects garbage as usual", "error", err)
	}
	return sidecar.Run(ctx, sidecarConfig(cfg), log, func(p *sidecar.Process) {
		_, _ = fmt.Fprintf(stdout, "\nthe sidecar takes calls on %s\n", p.Addr()) // a closed stdout is no reason to stop
	})
}

func sidecarConfig(cfg config.Sidecar) sidecar.Config {
	mode, _ := cfg.Mode() // which Validate has looked at
	return sidecar.Config{
		Options: sidecar.Options{
			Grace: cfg.Grace, MaxLifetime: cfg.MaxLifetime, MaxPermits: cfg.MaxPermits,
			MaxShares: cfg.MaxShares, Node: cfg.Node, NodeOwned: int64(cfg.NodeOwned), NodeTotal: int64(cfg.NodeTotal),
		},
		Listen:     cfg.Listen,
		SocketMode: mode,
		Upstream:   cfg.Upstream,
		CACert:     cfg.CACert, Cert: cfg.Cert, Key: cfg.Key, TokenFile: cfg.TokenFile,
		HTTPAddr: cfg.HTTPAddr, ShutdownTimeout: cfg.ShutdownTimeout,
	}
}
