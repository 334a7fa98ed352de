package main

import (
	"github.com/spf13/cobra"

	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/node"
)

const aboutLog = `Print the log of a node that is stopped, as lines of JSON: one for each entry, with
its index, the raft term, cluster time t and wall time w in nanoseconds, and the
operations that were decided together at that moment, in order, each under its name.

What snapshots have replaced is not in the log any more. In a cluster the last entries
may be some that were never committed: those that no other member has.`

func newLogCommand() *cobra.Command {
	var dir string
	var from uint64
	cmd := &cobra.Command{
		Use:     "log",
		Short:   "Print the log of a stopped node",
		Long:    aboutLog,
		Example: `  admitd log --data /var/lib/admit --from 1000 | jq -c 'select(.ops[].Release)'`,
		Args:    noArgs,
	}
	cmd.Flags().StringVar(&dir, "data", config.DefaultConfig().Data, "`directory` of the log")
	cmd.Flags().Uint64Var(&from, "from", 0, "the first `index` to print")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return node.WriteLog(cmd.OutOrStdout(), dir, from)
	}
	return cmd
}
