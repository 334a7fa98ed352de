package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/protoadapt"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server/forward"
)

const errorDomain = "admit"

// callError is the failure of a call: the status that is sent, and what lies
// behind it, which is only logged.
type callError struct {
	sent  *status.Status
	cause error
}

// GRPCStatus is what the transport sends.
func (e *callError) GRPCStatus() *status.Status { return e.sent }

// Error is for the log.
func (e *callError) Error() string { return e.cause.Error() }

func (e *callError) Unwrap() error { return e.cause }

// statusError turns what went wrong with a call into what its caller is told;
// what is a status already stays. retrySafe says that the call may be sent again
// without a second effect.
func statusError(err error, retrySafe bool) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return &callError{sent: newStatus(err, retrySafe), cause: err}
}

// writeStatus is a status as an answer of a session holds it.
func writeStatus(err error) *admitv1alpha1.CallStatus {
	p := status.Convert(err).Proto()
	return &admitv1alpha1.CallStatus{Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails()}
}

func newStatus(err error, retrySafe bool) *status.Status {
	var (
		fields     *fieldError
		undecided  *admission.Error
		notLeader  *raftstore.NotLeaderError
		overloaded *raftstore.OverloadedError
	)
	switch {
	// First, because it may come with the reason why the rest was not done.
	case errors.Is(err, raftstore.ErrOutcomeUnknown), errors.Is(err, forward.ErrLost):
		return unknownOutcome(retrySafe)
	case errors.Is(err, errUnauthenticated):
		return build(codes.Unauthenticated, admitv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED,
			"the call has neither a token nor a certificate that this node knows", nil)
	case errors.As(err, &fields):
		return fieldStatus(fields)
	case errors.As(err, &undecided) && coreCode(undecided.Reason) != codes.Internal:
		return coreStatus(undecided)
	case errors.As(err, &notLeader):
		return build(codes.Unavailable, admitv1.ErrorReason_ERROR_REASON_NOT_LEADER, "this node does not lead",
			meta("leader_addr", notLeader.LeaderAddr, "leader_id", notLeader.LeaderID), retryIn(retryElsewhere))
	case errors.As(err, &overloaded):
		return overloadedStatus(overloaded.RetryAfter)
	case errors.Is(err, raftstore.ErrUnknownMember):
		return build(codes.NotFound, admitv1.ErrorReason_ERROR_REASON_MEMBER_NOT_FOUND, err.Error(), nil)
	case errors.Is(err, raftstore.ErrMembership):
		return build(codes.FailedPrecondition, admitv1.ErrorReason_ERROR_REASON_MEMBERSHIP, err.Error(), nil)
	case errors.Is(err, forward.ErrBusy):
		return overloadedStatus(retryLater)
	case errors.Is(err, forward.ErrTooLarge):
		return status.New(codes.ResourceExhausted, "the request is too large; nothing was changed")
	case errors.Is(err, errLongAnswer):
		return status.New(codes.ResourceExhausted, errLongAnswer.Error())
	case errors.Is(err, errNoNode):
		return status.New(codes.PermissionDenied, errNoNode.Error())
	case errors.Is(err, errNoMethod):
		return status.New(codes.Unimplemented, errNoMethod.Error())
	case errors.Is(err, raftstore.ErrNoQuorum):
		return build(codes.Unavailable, admitv1.ErrorReason_ERROR_REASON_NO_QUORUM, "no node leads at present",
			nil, retryIn(retryElsewhere))
	case errors.Is(err, raftstore.ErrShuttingDown):
		return build(codes.Unavailable, admitv1.ErrorReason_ERROR_REASON_SHUTTING_DOWN, "this node is shutting down",
			nil, retryIn(retryLater))
	case errors.Is(err, context.DeadlineExceeded):
		return status.New(codes.DeadlineExceeded, "the call's deadline passed before it was decided; nothing was changed")
	case errors.Is(err, context.Canceled):
		return status.New(codes.Canceled, "the caller went away before the call was decided; nothing was changed")
	}
	return build(codes.Internal, admitv1.ErrorReason_ERROR_REASON_INTERNAL, "internal error; the node's log has more", nil)
}

// endedThere says whether the leader ended a call since its caller was said to have
// gone. It did nothing then.
func endedThere(err error) bool { return status.Code(err) == codes.Canceled }

func overloadedStatus(after time.Duration) *status.Status {
	return build(codes.ResourceExhausted, admitv1.ErrorReason_ERROR_REASON_OVERLOADED,
		"the server has too many calls queued; nothing was decided", nil, retryIn(after))
}

// unknownOutcome is UNAVAILABLE only where a second call is harmless: proxies
// and clients send UNAVAILABLE calls again by themselves.
func unknownOutcome(retrySafe bool) *status.Status {
	if retrySafe {
		return build(codes.Unavailable, admitv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN,
			"the call may or may not have had effect; send the same call again", nil, retryIn(retryElsewhere))
	}
	return build(codes.Aborted, admitv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN,
		"the call may or may not have had effect", nil)
}

// coreCode is the code of what the core could not decide.
func coreCode(r admission.ErrorReason) codes.Code {
	switch r {
	case admission.InvalidField, admission.UnknownCategory, admission.PolicyInvalid:
		return codes.InvalidArgument
	case admission.PoolNotFound, admission.EntryNotFound, admission.RevisionNotFound, admission.TargetNotFound, admission.UnknownTenant:
		return codes.NotFound
	case admission.RevisionConflict, admission.RequestMismatch, admission.StaleRequest, admission.InUse,
		admission.LimitReached, admission.NotShared:
		return codes.FailedPrecondition
	default:
		return codes.Internal
	}
}

func coreStatus(e *admission.Error) *status.Status {
	code := coreCode(e.Reason)
	reason := admitv1.ErrorReason(admitv1.ErrorReason_value["ERROR_REASON_"+string(e.Reason)])
	if code != codes.InvalidArgument || e.Field == "" {
		return build(code, reason, e.Message, meta(e.Meta...))
	}
	found := &fieldError{violations: []admission.Violation{{Field: e.Field, Message: e.Message}}}
	return build(code, reason, found.Error(), meta(e.Meta...), badRequest(found.violations))
}

func fieldStatus(e *fieldError) *status.Status {
	reason := admitv1.ErrorReason(admitv1.ErrorReason_value["ERROR_REASON_"+string(e.reason)])
	details := badRequest(e.violations)
	message := e.Error()
	if told := len(details.GetFieldViolations()); told < len(e.violations) {
		message = strconv.Itoa(len(e.violations)) + " fields are at fault, the first " + strconv.Itoa(told) + " are listed; " + message
	}
	return build(codes.InvalidArgument, reason, message, nil, details)
}

func build(code codes.Code, reason admitv1.ErrorReason, message string, metadata map[string]string,
	details ...protoadapt.MessageV1,
) *status.Status {
	st := status.New(code, clip(message))
	info := &errdetails.ErrorInfo{
		Reason:   strings.TrimPrefix(reason.String(), "ERROR_REASON_"),
		Domain:   errorDomain,
		Metadata: metadata,
	}
	full, err := st.WithDetails(append([]protoadapt.MessageV1{info}, details...)...)
	if err != nil {
		// Only a message that can't be marshalled comes here; the code still holds.
		return st
	}
	return full
}

// httpFailure is the answer to a call over HTTP that failed.
func httpFailure(err error) (code int, body []byte) {
	st := status.Convert(err)
	body, _ = protojson.Marshal(st.Proto()) // the details are all our own
	return httpCode(st.Code()), body
}

func httpCode(code codes.Code) int {
	switch code {
	case codes.InvalidArgument, codes.FailedPrecondition:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unavailable, codes.Canceled:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// ending is what the log says of how a call ended, and how loudly.
func ending(err error) (code string, level slog.Level) {
	c := status.Code(err)
	if c > codes.Unauthenticated {
		c = codes.Unknown
	}
	return c.String(), logLevel(c)
}

// spanStatus is what the span of a call says of how it ended; fault says that the caller is
// not to blame.
func spanStatus(err error) (code int, fault bool) {
	c := status.Code(err)
	switch c {
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		fault = true
	}
	return int(c), fault
}

// codeNames are those of all codes that a call can end with: ending maps any other to
// Unknown.
func codeNames() []string {
	var names []string
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		names = append(names, c.String())
	}
	return names
}

// logLevel is how loudly a call's end is told. A change of leader is a line of the
// node's, and metrics count the calls that were refused over it: not one line each.
func logLevel(code codes.Code) slog.Level {
	switch code {
	case codes.OK, codes.Canceled, codes.Unavailable:
		return slog.LevelDebug
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelError
	case codes.Aborted, codes.ResourceExhausted:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
