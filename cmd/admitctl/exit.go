package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/policy"
)

// The exit codes, which scripts rely on.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitShed        = 3
	exitUnreachable = 4
	exitDeadline    = 5
)

func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `Exit codes of admitctl:

  0  it worked
  1  it failed: the node refused, a test or a file is wrong
  2  the command line is wrong
  3  shed: not admitted now; stderr says why and when to come back
  4  the node can't be reached, or no node leads
  5  there was no answer within --timeout

"admitctl exec" exits with the code of the command that it ran, and with 128 + n
if signal n ended it.`,
	}
}

// usageError says that the command line is wrong.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

// codeError ends the program with a code; err may be nil where all was said.
type codeError struct {
	code int
	err  error
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

// explainUsage turns what kept a command from being run into a usageError that
// says where to read on.
func (a *app) explainUsage(cmd *cobra.Command, err error) error {
	var usage *usageError
	if a.started && !errors.As(err, &usage) {
		return err
	}
	return &usageError{fmt.Sprintf("%s (see %s --help)", err, cmd.CommandPath())}
}

func exitCode(err error) int {
	var (
		coded *codeError
		usage *usageError
		shed  *client.ShedError
	)
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &shed):
		return exitShed
	case errors.Is(err, context.DeadlineExceeded):
		return exitDeadline
	}
	switch status.Code(err) {
	case codes.Unavailable:
		return exitUnreachable
	case codes.DeadlineExceeded:
		return exitDeadline
	default:
		return exitFailure
	}
}

// errorText describes an error in one line, from the details of its status where
// it has one, in the words of the command. What is wrong with a file takes a line for
// each fault.
func errorText(cmd *cobra.Command, err error, addr string) string {
	var (
		shed *client.ShedError
		file *policy.FileError
	)
	switch {
	case errors.As(err, &file):
		return file.Error()
	case errors.As(err, &shed):
		return "admitctl: shed: " + shedText(shed.Shed)
	case err.Error() == "":
		return ""
	}
	line := err.Error()
	if st := statusOf(err); st != nil {
		line = statusLine(cmd, st, addr)
	}
	return "admitctl: " + strings.Join(strings.Fields(line), " ")
}

func statusLine(cmd *cobra.Command, st *status.Status, addr string) string {
	d := details{cmd: cmd}
	for _, detail := range st.Details() {
		d.add(detail)
	}
	line := st.Message()
	switch {
	case len(d.fields) > 0:
		line = strings.Join(d.fields, "; ")
	case st.Code() == codes.Unavailable && d.reason == "":
		line = fmt.Sprintf("can't reach %s: %s", addr, innermost(st.Message()))
	case st.Code() == codes.DeadlineExceeded && d.reason == "":
		line = fmt.Sprintf("no answer from %s within the timeout", addr)
	}
	if d.reason == "" {
		d.reason = st.Code().String()
	}
	return line + " (" + strings.Join(append([]string{d.reason}, d.hints...), ", ") + ")"
}

// details are what a status says beside its message.
type details struct {
	cmd    *cobra.Command
	reason string
	fields []string
	hints  []string
}

func (d *details) add(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		d.reason = detail.GetReason()
		for _, key := range slices.Sorted(maps.Keys(detail.GetMetadata())) {
			d.hints = append(d.hints, key+" "+detail.GetMetadata()[key])
		}
	case *errdetails.BadRequest:
		for _, v := range detail.GetFieldViolations() {
			d.fields = append(d.fields, typed(d.cmd, v.GetField())+": "+v.GetDescription())
		}
	case *errdetails.RetryInfo:
		d.hints = append(d.hints, "retry in "+rough(detail.GetRetryDelay()))
	}
}

// innermost is the end of a chain of messages such as the transport makes.
func innermost(message string) string {
	message = strings.Trim(message, `"`)
	if i := strings.LastIndex(message, ": "); i >= 0 {
		return message[i+2:]
	}
	return message
}

// statusOf returns the status that came from the node or the way there, or nil.
// What wraps it would repeat what the status says.
func statusOf(err error) *status.Status {
	var sent interface{ GRPCStatus() *status.Status }
	if !errors.As(err, &sent) {
		return nil
	}
	return sent.GRPCStatus()
}
