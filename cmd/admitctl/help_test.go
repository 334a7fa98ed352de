package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that does something has an example of its own, which the script
// `examples` runs.
func TestEveryCommandHasAnExample(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Name() == "exit-codes" {
			return
		}
		example := strings.TrimSpace(cmd.Example)
		if !strings.Contains(example, cmd.CommandPath()) {
			t.Errorf("%s: the example is %q", cmd.CommandPath(), example)
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it does", cmd.CommandPath())
		}
	}
	walk((&app{}).root())
}
