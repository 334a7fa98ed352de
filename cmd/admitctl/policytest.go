package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/internal/policy"
	"github.com/admitd/admit/internal/scenario"
)

func (a *app) policyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "test FILE...",
		Short: "Run scenario files, without a node",
		Long: `Run scenario files on the core, in virtual time and without a node. Prints a line
for each expectation that did not hold: file, line, test, step, want, got. Exits
with 1 if there is one.

  policy: {pools: [{name: email, max_active: 1}]}
  tests:
  - name: a slot is free again after its release
    steps:
    - {at: 0s, acquire: {pool: email, tenant: acme, as: A}, expect: {granted: 1}}
    - {acquire: {pool: email, tenant: acme}, expect: {shed: 1, reason: POOL_CAP}}
    - {at: 1s, release: {permit: A}, expect: {ok: true}}
    - {acquire: {pool: email, tenant: acme}, expect: {granted: 1}}`,
		Example: "  admitctl policy test scenarios/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: a.does(func(_ context.Context, _ *cobra.Command, args []string) error {
			var report testReport
			for _, name := range args {
				if err := a.testFile(name, &report); err != nil {
					return err
				}
			}
			return a.printReport(&report)
		}),
	}
}

// testReport is how the tests of all files ended.
type testReport struct {
	Passed   int           `json:"passed" yaml:"passed"`
	Failed   int           `json:"failed" yaml:"failed"`
	Failures []testFailure `json:"failures" yaml:"failures"`

	lines   []string
	invalid bool
}

type testFailure struct {
	File string `json:"file" yaml:"file"`
	Line int    `json:"line" yaml:"line"`
	Test string `json:"test" yaml:"test"`
	Step string `json:"step,omitempty" yaml:"step,omitempty"`
	Want string `json:"want,omitempty" yaml:"want,omitempty"`
	Got  string `json:"got,omitempty" yaml:"got,omitempty"`
}

func (a *app) testFile(name string, report *testReport) error {
	data, err := a.readFile(name)
	if err != nil {
		return err
	}
	f, err := scenario.Parse(shownName(name), data)
	var fe *policy.FileError
	if errors.As(err, &fe) {
		a.say("%s", fe)
		report.invalid = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, result := range f.Run() {
		if len(result.Mismatches) == 0 {
			report.Passed++
			continue
		}
		report.Failed++
		for _, m := range result.Mismatches {
			report.lines = append(report.lines, m.String())
			report.Failures = append(report.Failures, testFailure(m))
		}
	}
	return nil
}

func (a *app) printReport(report *testReport) error {
	var err error
	switch a.output {
	case outputJSON:
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(report)
	case outputYAML:
		err = yaml.NewEncoder(a.stdout).Encode(report)
	default:
		for _, line := range report.lines {
			fmt.Fprintln(a.stdout, line)
		}
		a.say("%d passed, %d failed", report.Passed, report.Failed)
	}
	if err == nil && (report.Failed > 0 || report.invalid) {
		return &codeError{code: exitFailure}
	}
	return err
}
