package sidecar

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The reasons of admit.v1.ErrorReason that mean something here.
const (
	reasonNotLeader      = "NOT_LEADER"
	reasonOutcomeUnknown = "OUTCOME_UNKNOWN"
	reasonOverloaded     = "OVERLOADED"
	reasonShuttingDown   = "SHUTTING_DOWN"
	reasonNotShared      = "NOT_SHARED"
)

// comeBack is when to try again what the sidecar itself refused.
const comeBack = 100 * time.Millisecond

var (
	errManyCalls = build(codes.ResourceExhausted, reasonOverloaded,
		"the sidecar has too many calls under way; nothing was asked", comeBack)
	errManyPermits = build(codes.ResourceExhausted, reasonOverloaded,
		"the sidecar keeps as many permits as it may; nothing was asked", comeBack)
	// errNoLeader and errNoAnswer are of calls that were not made, or given up, because no
	// node decides.
	errNoLeader = build(codes.Unavailable, reasonNotLeader, "no node is reached that says that the cluster decides", comeBack)
	errNoAnswer = build(codes.Unavailable, reasonOutcomeUnknown, "the cluster was lost before it answered", comeBack)
	errStopping = build(codes.Unavailable, reasonShuttingDown, "the sidecar is stopping", comeBack)
)

func build(code codes.Code, reason, message string, retryIn time.Duration) error {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: reason, Domain: "admit"}}
	if retryIn > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(retryIn)})
	}
	st, err := status.New(code, message).WithDetails(details...)
	if err != nil { // only a message that can't be marshalled comes here
		return status.Error(code, message)
	}
	return st.Err()
}

// told is what a worker is told of a failure: what the cluster says, with two exceptions.
// Where the leader is, is left out: who went there would leave the sidecar. And where it is
// not known whether a call had effect, it is ABORTED for a worker that can't send it again:
// the cluster knew it by an id that the worker does not have.
func told(ctx context.Context, err error, repeatable bool) error {
	st, reason := status.Convert(err), reasonOf(err)
	switch {
	case reason == reasonNotLeader:
		return build(st.Code(), reason, "no node that leads was found", comeBack)
	case reason == reasonOutcomeUnknown, st.Code() == codes.DeadlineExceeded && hasTime(ctx):
		if repeatable {
			return build(codes.Unavailable, reasonOutcomeUnknown,
				"the call may or may not have had effect; send the same call again", comeBack)
		}
		return build(codes.Aborted, reasonOutcomeUnknown, "the call may or may not have had effect", 0)
	}
	return err
}

// hasTime says whether a call's worker would have waited for longer, so that it was a node
// that was silent.
func hasTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > time.Second)
}

// reasonOf is the reason that a status gives, or nothing.
func reasonOf(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetReason()
		}
	}
	return ""
}

func isCancelled(err error) bool { return status.Code(err) == codes.Canceled }

// codeOf is a call's end as metrics name it.
func codeOf(err error) string {
	code := status.Code(err)
	if code > codes.Unauthenticated { // which a node may have from anywhere
		code = codes.Unknown
	}
	return code.String()
}

// notPassed says that a service can't be passed on, which is a mistake in the program.
func notPassed(service string, err error) error {
	return fmt.Errorf("pass on %s: %w", service, err)
}
