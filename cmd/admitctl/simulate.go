package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/internal/policy"
	"github.com/admitd/admit/internal/simulate"
)

// topTenants is how many tenants of a pool are listed unless told otherwise.
const topTenants = 20

func (a *app) simulateCommand() *cobra.Command {
	var policyFile, workloadFile string
	var top int
	cmd := &cobra.Command{
		Use:   "simulate -f POLICY -w WORKLOAD",
		Short: "Replay a workload against a policy, in virtual time and without a node",
		Long: `Replay a workload against a policy in virtual time, on the core that decides in
production and without a node. Prints what each tenant got against its weight, how
long it waited, what was shed and why, and how long slots stood idle. Where the
workload says what must hold, prints a line to stderr for each thing that does
not, and exits with 1 if there is one.

  duration: 10s
  seed: 1
  streams:
  - {name: mail, tenant: acme, arrivals: {poisson: {rate: 20}}, work: {exponential: 100ms}}
  workers:
  - {name: senders, kind: long_poll, count: 4}
  expect:
  - wait_p99: {stream: mail, at_most: 1s}`,
		Example: "  admitctl simulate -f policy.yaml -w workload.yaml",
		Args:    cobra.NoArgs,
		RunE: a.does(func(context.Context, *cobra.Command, []string) error {
			if policyFile == "-" && workloadFile == "-" {
				return &usageError{"only one of the files can be read from standard input"}
			}
			w, err := a.readWorkload(policyFile, workloadFile)
			if err != nil {
				return err
			}
			bar := a.newProgress()
			w.Watch = func(at time.Duration) {
				bar.at(float64(at)/float64(w.Duration), fmt.Sprintf("%s of %s", at.Round(time.Second), w.Duration))
			}
			report, err := w.Run(top)
			bar.end()
			if err != nil {
				return err
			}
			return a.printSimulation(w.Name, report)
		}),
	}
	flags := cmd.Flags()
	flags.StringVarP(&policyFile, "file", "f", "", "the policy `file`, or - for standard input")
	flags.StringVarP(&workloadFile, "workload", "w", "", "the workload `file`, or - for standard input")
	flags.IntVarP(&top, "top", "n", topTenants, "how many tenants to list in each pool; the others are summed")
	for _, name := range []string{"file", "workload"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist: a slip in this program
		}
	}
	return cmd
}

func (a *app) readWorkload(policyFile, workloadFile string) (*simulate.Workload, error) {
	data, err := a.readFile(policyFile)
	if err != nil {
		return nil, err
	}
	_, core, err := policy.Load(shownName(policyFile), data)
	if err != nil {
		return nil, err
	}
	if data, err = a.readFile(workloadFile); err != nil {
		return nil, err
	}
	return simulate.Parse(shownName(workloadFile), data, core)
}

func (a *app) printSimulation(name string, report *simulate.Report) error {
	var err error
	switch a.output {
	case outputJSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	case outputYAML:
		err = yaml.NewEncoder(a.stdout).Encode(report)
	default:
		err = report.WriteText(a.stdout)
	}
	breaches := report.Breaches()
	for _, c := range breaches {
		a.say("%s:%d: %s", name, c.Line, c)
	}
	if err == nil && len(breaches) > 0 {
		return &codeError{code: exitFailure}
	}
	return err
}
