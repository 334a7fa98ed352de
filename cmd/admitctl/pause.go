package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// pausableCommand is the command of something that can be paused: a tenant, a
// lane, a bucket or a group.
func (a *app) pausableCommand(kind, argument, example string) *cobra.Command {
	named := 1 + len(strings.Fields(argument))
	cmd := &cobra.Command{
		Use:     kind,
		Short:   fmt.Sprintf("Pause and resume a %s", kind),
		Example: fmt.Sprintf("  admitctl %s pause email %s", kind, example),
	}
	pause := &cobra.Command{
		Use:   "pause POOL " + argument,
		Short: fmt.Sprintf("Hold a %s until it is resumed", kind),
		Long: fmt.Sprintf(`Hold a %s until it is resumed. Permits that are out live on; entries stay due.
Pausing what is paused changes nothing.`, kind),
		Example: fmt.Sprintf("  admitctl %s pause email %s", kind, example),
		Args:    cobra.ExactArgs(named),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			resp, err := c.Policy().Pause(ctx, pauseRequest(kind, args[0], args[1:]))
			if err != nil {
				return err
			}
			a.say("%s %s of pool %s is paused", kind, strings.Join(args[1:], " "), args[0])
			return a.print(resp, func(io.Writer) {})
		}),
	}
	lifted := ""
	if kind == "bucket" {
		lifted = ", also one that a provider's 429 paused"
	}
	resume := &cobra.Command{
		Use:   "resume POOL " + argument,
		Short: fmt.Sprintf("Let a paused %s go on", kind),
		Long: fmt.Sprintf(`Let a paused %s go on%s. Resuming what is not
paused changes nothing.`, kind, lifted),
		Example: fmt.Sprintf("  admitctl %s resume email %s", kind, example),
		Args:    cobra.ExactArgs(named),
		RunE: a.calls(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string) error {
			resp, err := c.Policy().Resume(ctx, resumeRequest(kind, args[0], args[1:]))
			if err != nil {
				return err
			}
			a.say("%s %s of pool %s is not paused", kind, strings.Join(args[1:], " "), args[0])
			return a.print(resp, func(io.Writer) {})
		}),
	}
	cmd.AddCommand(pause, resume)
	return group(cmd)
}

func pauseRequest(kind, pool string, names []string) *admitv1.PauseRequest {
	req := &admitv1.PauseRequest{Pool: pool}
	switch kind {
	case "tenant":
		req.Target = &admitv1.PauseRequest_Tenant{Tenant: names[0]}
	case "lane":
		req.Target = &admitv1.PauseRequest_Lane{Lane: names[0]}
	case "bucket":
		req.Target = &admitv1.PauseRequest_Bucket{Bucket: names[0]}
	case "group":
		req.Target = &admitv1.PauseRequest_Group{Group: &admitv1.GroupTarget{Tenant: names[0], Group: names[1]}}
	}
	return req
}

func resumeRequest(kind, pool string, names []string) *admitv1.ResumeRequest {
	req := &admitv1.ResumeRequest{Pool: pool}
	switch kind {
	case "tenant":
		req.Target = &admitv1.ResumeRequest_Tenant{Tenant: names[0]}
	case "lane":
		req.Target = &admitv1.ResumeRequest_Lane{Lane: names[0]}
	case "bucket":
		req.Target = &admitv1.ResumeRequest_Bucket{Bucket: names[0]}
	case "group":
		req.Target = &admitv1.ResumeRequest_Group{Group: &admitv1.GroupTarget{Tenant: names[0], Group: names[1]}}
	}
	return req
}
