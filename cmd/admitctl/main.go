// Command admitctl talks to admit from a shell: it applies and tests policies,
// asks for permits, runs commands under them, and schedules and lists due work.
//
// Data goes to stdout, talk to stderr; what the exit codes mean is told by
// `admitctl help exit-codes`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
)

const (
	defaultAddr     = "127.0.0.1:7420"
	defaultPeerPort = "7421"
	defaultTimeout  = 10 * time.Second
	// retryFor outlasts the restart of a node, and still says soon that there is
	// none.
	retryFor = 3 * time.Second
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	err = a.explainUsage(cmd, err)
	if text := errorText(cmd, err, a.addr); text != "" {
		a.say("%s", text)
	}
	return exitCode(err)
}

// app is what the commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	connection
	timeout time.Duration
	output  string

	// started says that a command was run: flags and arguments were right.
	started bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "admitctl",
		Short: "Talk to admit: policies, permits, due work",
		Long: `admitctl talks to an admit node: it applies and tests policies, asks for
permits, runs commands under them, and schedules and lists due work.

Data goes to stdout and talk to stderr.`,
		Example:       "  admitctl exec email --tenant acme -- ./send-newsletter",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	a.connection.addFlags(root)
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for an answer")
	flags.VarP(&outputFlag{&a.output}, "output", "o", "how to print data: text, json or yaml")
	a.output = outputText
	complete(root, "output", outputFormats...)
	root.AddCommand(
		a.policyCommand(), a.acquireCommand(), a.renewCommand(), a.releaseCommand(), a.execCommand(), a.workCommand(), a.permitCommand(),
		a.dueCommand(), a.deadCommand(), a.demandCommand(),
		a.tenantCommand(), a.pausableCommand("lane", "LANE", "marketing"),
		a.pausableCommand("bucket", "BUCKET", "provider"), a.pausableCommand("group", "TENANT GROUP", "acme run-1"),
		a.benchCommand(), a.healthCommand(), a.topCommand(), a.shedCommand(), a.explainCommand(), a.debugCommand(), a.simulateCommand(),
		a.clusterCommand(), a.certsCommand(), a.tokenCommand(), a.versionCommand(), exitCodesTopic(),
	)
	group(root)
	a.completeArguments(root)
	nameArguments(root)
	root.SetFlagErrorFunc(flagError)
	return root
}

// group makes a command that only has commands below say so when it is called
// without one, or with one that there is not.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		problem := fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			problem += fmt.Sprintf(", did you mean %q?", near[0])
		}
		return &usageError{problem}
	}
	return cmd
}

// does wraps what a command does once its flags and arguments are right.
func (a *app) does(f func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started = true
		return f(cmd.Context(), cmd, args)
	}
}

// calls is does for a command that talks to the node, within the timeout.
func (a *app) calls(f func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		c, err := a.dial(client.WithRetryFor(retryFor))
		if err != nil {
			return err
		}
		defer c.Close()
		return f(ctx, c, cmd, args)
	})
}

// say tells the user something that is not data.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}
