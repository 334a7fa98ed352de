package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server/forward"
)

func coreError(r admission.ErrorReason, field string, meta ...string) error {
	return &admission.Error{Reason: r, Field: field, Message: "no good", Meta: meta}
}

// errorTable has every way in which a call can fail. All errors come wrapped.
var errorTable = []struct {
	name string
	err  error
	safe bool
	want told
}{
	{name: "a field", err: &fieldError{admission.InvalidField, []admission.Violation{{Field: "cost", Message: "is -1"}, {Field: "ttl"}}},
		want: told{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: "cost ttl"}},
	{name: "a policy", err: &fieldError{admission.PolicyInvalid, []admission.Violation{{Field: "pools[0].name", Message: "twice"}}},
		want: told{code: codes.InvalidArgument, reason: "POLICY_INVALID", fields: "pools[0].name"}},
	{name: "a field by the core", err: coreError(admission.InvalidField, "lanes[0]"),
		want: told{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: "lanes[0]"}},
	{name: "category", err: coreError(admission.UnknownCategory, "category", "pool", "p", "category", "c"),
		want: told{code: codes.InvalidArgument, reason: "UNKNOWN_CATEGORY", fields: "category",
			meta: map[string]string{"pool": "p", "category": "c"}}},
	{name: "policy by the core", err: coreError(admission.PolicyInvalid, "pools[0]"),
		want: told{code: codes.InvalidArgument, reason: "POLICY_INVALID", fields: "pools[0]"}},
	{name: "pool", err: coreError(admission.PoolNotFound, "pool", "pool", "p"),
		want: told{code: codes.NotFound, reason: "POOL_NOT_FOUND", meta: map[string]string{"pool": "p"}}},
	{name: "entry", err: coreError(admission.EntryNotFound, ""), want: told{code: codes.NotFound, reason: "ENTRY_NOT_FOUND"}},
	{name: "tenant", err: coreError(admission.UnknownTenant, ""), want: told{code: codes.NotFound, reason: "UNKNOWN_TENANT"}},
	{name: "limit", err: coreError(admission.LimitReached, ""), want: told{code: codes.FailedPrecondition, reason: "LIMIT_REACHED"}},
	{name: "target", err: coreError(admission.TargetNotFound, ""), want: told{code: codes.NotFound, reason: "TARGET_NOT_FOUND"}},
	{name: "revision", err: coreError(admission.RevisionConflict, "", "expected", "1", "actual", "2"),
		want: told{code: codes.FailedPrecondition, reason: "REVISION_CONFLICT", meta: map[string]string{"expected": "1", "actual": "2"}}},
	{name: "no such revision", err: coreError(admission.RevisionNotFound, "revision", "revision", "3"),
		want: told{code: codes.NotFound, reason: "REVISION_NOT_FOUND", meta: map[string]string{"revision": "3"}}},
	{name: "mismatch", err: coreError(admission.RequestMismatch, "request_id"),
		want: told{code: codes.FailedPrecondition, reason: "REQUEST_MISMATCH"}},
	{name: "stale", err: coreError(admission.StaleRequest, "issued_at"),
		want: told{code: codes.FailedPrecondition, reason: "STALE_REQUEST"}},
	{name: "not shared", err: coreError(admission.NotShared, "", "pool", "p"),
		want: told{code: codes.FailedPrecondition, reason: "NOT_SHARED", meta: map[string]string{"pool": "p"}}},
	{name: "in use", err: coreError(admission.InUse, "", "pool", "p", "lane", "", "permits", "3"),
		want: told{code: codes.FailedPrecondition, reason: "IN_USE", meta: map[string]string{"pool": "p", "permits": "3"}}},
	{name: "a reason of the core that we don't know", err: coreError("NEW_ONE", ""),
		want: told{code: codes.Internal, reason: "INTERNAL"}},
	{name: "not leader", err: &raftstore.NotLeaderError{LeaderAddr: "10.0.0.7:7420", LeaderID: "n7"},
		want: told{code: codes.Unavailable, reason: "NOT_LEADER",
			meta: map[string]string{"leader_addr": "10.0.0.7:7420", "leader_id": "n7"}, retry: retryElsewhere}},
	{name: "not leader, not reached", err: fmt.Errorf("%w: %w", &raftstore.NotLeaderError{LeaderAddr: "10.0.0.7:7420"}, forward.ErrNotSent),
		want: told{code: codes.Unavailable, reason: "NOT_LEADER", meta: map[string]string{"leader_addr": "10.0.0.7:7420"}, retry: retryElsewhere}},
	{name: "lost on the way, safe", err: forward.ErrLost, safe: true,
		want: told{code: codes.Unavailable, reason: "OUTCOME_UNKNOWN", retry: retryElsewhere}},
	{name: "lost on the way", err: forward.ErrLost, want: told{code: codes.Aborted, reason: "OUTCOME_UNKNOWN"}},
	{name: "too many on the way", err: forward.ErrBusy,
		want: told{code: codes.ResourceExhausted, reason: "OVERLOADED", retry: retryLater}},
	{name: "too large for the way", err: forward.ErrTooLarge, want: told{code: codes.ResourceExhausted}},
	{name: "a stranger", err: errNoNode, want: told{code: codes.PermissionDenied}},
	{name: "a newer node's method", err: errNoMethod, want: told{code: codes.Unimplemented}},
	{name: "no quorum", err: raftstore.ErrNoQuorum, want: told{code: codes.Unavailable, reason: "NO_QUORUM", retry: retryElsewhere}},
	{name: "unknown outcome, safe", err: raftstore.ErrOutcomeUnknown, safe: true,
		want: told{code: codes.Unavailable, reason: "OUTCOME_UNKNOWN", retry: retryElsewhere}},
	{name: "unknown outcome", err: raftstore.ErrOutcomeUnknown, want: told{code: codes.Aborted, reason: "OUTCOME_UNKNOWN"}},
	{name: "unknown outcome at the deadline", err: errors.Join(context.DeadlineExceeded, raftstore.ErrOutcomeUnknown),
		want: told{code: codes.Aborted, reason: "OUTCOME_UNKNOWN"}},
	{name: "unknown outcome, a part refused", err: errors.Join(raftstore.ErrOutcomeUnknown, &raftstore.OverloadedError{RetryAfter: 1}),
		want: told{code: codes.Aborted, reason: "OUTCOME_UNKNOWN"}},
	{name: "overloaded", err: &raftstore.OverloadedError{RetryAfter: 70 * time.Millisecond},
		want: told{code: codes.ResourceExhausted, reason: "OVERLOADED", retry: 70 * time.Millisecond}},
	{name: "shutting down", err: raftstore.ErrShuttingDown,
		want: told{code: codes.Unavailable, reason: "SHUTTING_DOWN", retry: retryLater}},
	{name: "no such member", err: fmt.Errorf("%w: n9", raftstore.ErrUnknownMember), want: told{code: codes.NotFound, reason: "MEMBER_NOT_FOUND"}},
	{name: "members don't allow it", err: fmt.Errorf("%w: n1 is alone", raftstore.ErrMembership),
		want: told{code: codes.FailedPrecondition, reason: "MEMBERSHIP"}},
	{name: "a caller nobody knows", err: errUnauthenticated, want: told{code: codes.Unauthenticated, reason: "UNAUTHENTICATED"}},
	{name: "deadline", err: context.DeadlineExceeded, want: told{code: codes.DeadlineExceeded}},
	{name: "cancelled", err: context.Canceled, want: told{code: codes.Canceled}},
	{name: "anything else", err: errors.New("disk at /secret/path is gone"), want: told{code: codes.Internal, reason: "INTERNAL"}},
}

func TestErrorsBecomeStatuses(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range errorTable {
		t.Run(c.name, func(t *testing.T) {
			got := tell(t, statusError(fmt.Errorf("decide: %w", c.err), c.safe))
			if got.code != c.want.code || got.reason != c.want.reason || got.fields != c.want.fields || got.retry != c.want.retry {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if len(c.want.meta)+len(got.meta) > 0 && !maps.Equal(got.meta, c.want.meta) {
				t.Errorf("got metadata %v, want %v", got.meta, c.want.meta)
			}
			if strings.Contains(got.text, "secret") {
				t.Errorf("the cause is sent: %q", got.text)
			}
			seen[got.reason] = true
		})
	}
	for number, name := range admitv1.ErrorReason_name {
		if reason := strings.TrimPrefix(name, "ERROR_REASON_"); number != 0 && !seen[reason] {
			t.Errorf("no case yields %s", reason)
		}
	}
}

// Many clients show the text alone.
func TestTheTextNamesTheField(t *testing.T) {
	for _, err := range []error{
		&fieldError{admission.InvalidField, []admission.Violation{{Field: "bucket", Message: "no good"}}},
		coreError(admission.InvalidField, "bucket"),
	} {
		if got := tell(t, statusError(err, false)); got.text != "bucket: no good" {
			t.Errorf("got %q", got.text)
		}
	}
}

func TestTheCauseStaysForTheLog(t *testing.T) {
	cause := errors.New("disk is gone")
	err := statusError(cause, false)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "disk is gone") {
		t.Errorf("got %v", err)
	}
}

// Clients of other languages refuse trailers beyond 8 KiB.
func TestManyViolationsAreCutToAHeader(t *testing.T) {
	c := newChecker()
	for i := range 10_000 {
		c.in("pools", i).fail("name", "%s", strings.Repeat("ü", 1000))
	}
	err := statusError(c.err(), false)
	if n := proto.Size(newStatus(err, false).Proto()); n > 6<<10 {
		t.Errorf("the status has %d bytes", n)
	}
	got := tell(t, err)
	if !strings.HasPrefix(got.fields, "pools[0].name pools[1].name") || !strings.Contains(got.text, "10000 fields") {
		t.Errorf("got %+v", got)
	}
}
