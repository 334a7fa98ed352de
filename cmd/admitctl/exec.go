package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
)

const (
	// exitTempFail is EX_TEMPFAIL of sysexits.h.
	exitTempFail = 75
	// exitNotRun is what shells say of a command that can't be run, exitNotFound
	// of one that is not there.
	exitNotRun   = 126
	exitNotFound = 127
	// longestWait is the longest that one request may wait in line.
	longestWait = time.Minute
)

var (
	errWaited      = errors.New("not admitted within the time that --wait gives")
	errInterrupted = errors.New("interrupted")
)

func (a *app) execCommand() *cobra.Command {
	var f workFlags
	var wait time.Duration
	var bucket string
	var keep bool
	cmd := &cobra.Command{
		Use:   "exec POOL --tenant TENANT -- COMMAND [ARGUMENT...]",
		Short: "Run a command under a permit",
		Long: `Run a command under a permit: wait in line to be admitted, run the command, renew
the permit while it runs, release it, and exit with the command's code. The code
says how the work ended:

  0         DONE
  75        THROTTLED: the provider refused for its rate limit; the bucket pauses
  126, 127  NOT_STARTED: the command can't be run, or is not there
  others    FAILED

SIGINT and SIGTERM are passed on to the command. If the permit is lost, the
command is killed: somebody else may be at work. With --keep it goes on, for work
that harms nobody if it is done twice. ADMIT_FENCE tells the command the permit's
fence, for resources that refuse lower ones. Where no node answers, it gives up
after --timeout.`,
		Example: "  admitctl exec email --tenant acme --category newsletter --wait 5m -- ./send-newsletter june",
		Args:    cobra.MinimumNArgs(2),
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to wait to be admitted; 0 asks once (default as long as it takes)")
	cmd.Flags().StringVar(&bucket, "bucket", "", "the bucket that code 75 pauses (default the only POOL bucket)")
	cmd.Flags().BoolVar(&keep, "keep", false, "let the command go on if the permit is lost")
	cmd.RunE = a.does(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		work, err := f.read(cmd, args[0])
		if err != nil {
			return err
		}
		if cmd.ArgsLenAtDash() != 1 {
			return &usageError{"expected POOL -- COMMAND"}
		}
		e := &execution{child: child{app: a, argv: args[1:], bucket: bucket, keep: keep}}
		if cmd.Flags().Changed("wait") {
			e.wait = &wait
		}
		return e.admit(ctx, work)
	})
	return cmd
}

// execution is one command under one permit.
type execution struct {
	child
	wait *time.Duration // nil: as long as it takes

	code int
	ran  bool
}

func (e *execution) admit(ctx context.Context, work client.Work) error {
	c, err := e.dial(client.WithRetryFor(e.timeout))
	if err != nil {
		return err
	}
	defer c.Close()
	// A signal ends the waiting, but not the work: the command gets it, and ends
	// in its own way.
	started := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(started))
	defer cancel(nil)
	defer e.passSignals(cancel)()
	if started.Err() != nil {
		return e.ended(ctx, errInterrupted) // it came before there was anything to end
	}
	admitted := func() {}
	switch {
	case e.wait == nil:
		work.MaxWait = longestWait
	case *e.wait <= 0:
		// Do comes back until it is admitted. Asking first under the id that Do
		// will use makes it find the permit, or not begin.
		work.RequestID = rand.Text()
		if err := e.askOnce(ctx, c, work); err != nil {
			return e.ended(ctx, err)
		}
	default:
		// In line no longer than there is time for the answer.
		work.MaxWait = min(max(*e.wait-200*time.Millisecond, 0), longestWait)
		timer := time.AfterFunc(*e.wait, func() { cancel(errWaited) })
		defer timer.Stop()
		admitted = func() { timer.Stop() }
	}
	err = c.Do(ctx, work, func(ctx context.Context, p *client.Permit) error {
		admitted()
		return e.work(ctx, p)
	})
	return e.ended(ctx, err)
}

func (e *execution) askOnce(ctx context.Context, c *client.Client, work client.Work) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	d, err := c.Acquire(ctx, work)
	if err == nil && d.Permit == nil {
		err = &client.ShedError{Shed: d.Shed}
	}
	return err
}

// passSignals sends signals on to the command while it runs, and ends the waiting
// before. The function that it returns stops that.
func (e *execution) passSignals(cancel context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-signals:
				if p := e.process.Load(); p != nil {
					_ = p.Signal(s) // it may have ended just now
				} else {
					cancel(errInterrupted)
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// work runs the command; its error is the outcome.
func (e *execution) work(ctx context.Context, p *client.Permit) (err error) {
	e.ran = ctx.Err() == nil
	e.code, err = e.run(ctx, fmt.Sprintf("ADMIT_FENCE=%d", p.Fence))
	return err
}

// ended turns the end of it all into the program's.
func (e *execution) ended(ctx context.Context, err error) error {
	var shed *client.ShedError
	switch cause := context.Cause(ctx); {
	case !e.ran && errors.Is(cause, errInterrupted):
		return errInterrupted
	case !e.ran && errors.Is(cause, errWaited) && !errors.As(err, &shed) && status.Code(err) == codes.Canceled:
		return &codeError{exitShed, errWaited} // it ended in the middle of a question
	case !e.ran:
		return err
	case errors.Is(err, client.ErrPermitLost):
		e.say("admitctl: the permit was lost before the work had ended")
	default:
		e.tellRelease(err)
	}
	return &codeError{code: e.code}
}

// tellRelease says so if the permit could not be released; it expires then.
func (e *execution) tellRelease(err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return
	}
	errs := joined.Unwrap()
	if last := errs[len(errs)-1]; statusOf(last) != nil {
		e.say("%s; the permit expires by itself", errorText(nil, last, e.addr))
	}
}
