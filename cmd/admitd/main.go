// Command admitd runs one admit node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainCode()) }

// mainCode owns the process's signals: the first asks the node to stop in order,
// a second ends the process at once.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	cmd := newCommand(os.LookupEnv)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "admitd:", err)
		return exitCode(err)
	}
	return 0
}
