package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func (a *app) dueGetCommand() *cobra.Command {
	var tenant, key string
	cmd := &cobra.Command{
		Use:     "get POOL --tenant TENANT --key KEY",
		Short:   "Show an entry and its failed attempts, also one that is dead",
		Example: "  admitctl due get email --tenant acme --key welcome-1",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "whose")
	cmd.Flags().StringVar(&key, "key", "", "which")
	for _, flag := range []string{"tenant", "key"} {
		_ = cmd.MarkFlagRequired(flag) // it is there
	}
	cmd.RunE = a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
		resp, err := c.DueWork().GetEntry(ctx, &admitv1.GetEntryRequest{Pool: args[0], Tenant: tenant, Key: key})
		if err != nil {
			return err
		}
		return a.print(resp, func(w io.Writer) { entryText(w, resp.GetEntry()) })
	})
	return cmd
}

func entryText(w io.Writer, e *admitv1.Entry) {
	entryTable(w, []*admitv1.Entry{e})
	if e.GetDiedAt() != nil {
		fmt.Fprintf(w, "\ndied at %s\n", moment(e.GetDiedAt()))
	}
	if len(e.GetHistory()) == 0 {
		return
	}
	fmt.Fprintln(w)
	table(w, "ENDED ATTEMPT OUTCOME WORKER", func(row func(...any)) {
		for _, h := range e.GetHistory() {
			row(moment(h.GetEndedAt()), h.GetNumber(), apiName(h.GetOutcome(), "OUTCOME_"), h.GetWorkerId())
		}
	})
}
