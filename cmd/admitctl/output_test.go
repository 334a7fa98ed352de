package main

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func TestFormats(t *testing.T) {
	msg := &admitv1.Policy{Pools: []*admitv1.Pool{{
		Name: "7", MaxActive: proto.Int64(40), PermitTtl: durationpb.New(90 * time.Second),
		Lanes:      []*admitv1.Lane{{Name: "low", LeaveTokens: map[string]int64{"b": 2}}},
		Categories: map[string]string{"1": "low"},
		Retry:      &admitv1.Retry{MaxAttempts: proto.Int32(3)},
	}}}
	const wantYAML = `pools:
  - name: "7"
    max_active: 40
    permit_ttl: 90s
    lanes:
      - name: low
        leave_tokens:
          b: 2
    categories:
      "1": low
    retry:
      max_attempts: 3
`
	got, err := toYAML(msg)
	if err != nil || string(got) != wantYAML {
		t.Errorf("YAML, error %v:\n%s\nwant:\n%s", err, got, wantYAML)
	}
	const wantJSON = `{
  "name": "resend",
  "scope": "POOL",
  "capacity": "10"
}
`
	got, err = toJSON(&admitv1.Bucket{Name: "resend", Scope: admitv1.Bucket_POOL, Capacity: proto.Int64(10)})
	if err != nil || string(got) != wantJSON {
		t.Errorf("JSON, error %v:\n%s\nwant:\n%s", err, got, wantJSON)
	}
}

func TestDeadTable(t *testing.T) {
	var out bytes.Buffer
	deadTable(&out, []*admitv1.Entry{{
		Tenant: "acme", Key: "k1", Lane: "low", Attempts: 5, MaxAttempts: 5,
		History: []*admitv1.Attempt{{Outcome: admitv1.Outcome_OUTCOME_FAILED}, {Outcome: admitv1.Outcome_OUTCOME_EXPIRED}},
		DiedAt:  timestamppb.New(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)),
	}})
	const want = "DIED                  TENANT  KEY  LANE  REASON   ATTEMPTS\n" +
		"2030-01-02T03:04:05Z  acme    k1   low   EXPIRED  5/5\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestShedText(t *testing.T) {
	tests := map[string]struct {
		shed *admitv1.Shed
		want string
	}{
		"time frees it": {
			&admitv1.Shed{
				Reason:     admitv1.Reason_REASON_POOL_RATE,
				Blocking:   []*admitv1.Limit{{Name: "max_active", Used: 4, Capacity: 4}, {Name: "resend", Used: 9, Capacity: 10, Reserve: 2}},
				RetryAfter: durationpb.New(1500 * time.Millisecond),
			},
			"POOL_RATE by max_active (4 of 4 used), resend (9 of 10 used, 2 kept for higher lanes); retry in 1.5s",
		},
		"never": {
			&admitv1.Shed{Reason: admitv1.Reason_REASON_NEVER_GRANTABLE, MaxGrantable: proto.Int64(8)},
			"NEVER_GRANTABLE; the most that can be granted is 8",
		},
		"an operator": {&admitv1.Shed{Reason: admitv1.Reason_REASON_BLOCKED}, "BLOCKED"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := shedText(tt.shed); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	detailed := func(code codes.Code, message string, details ...protoadapt.MessageV1) error {
		st, err := status.New(code, message).WithDetails(details...)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	tests := map[string]struct {
		err  error
		text string
		code int
	}{
		"no leader": {
			detailed(codes.Unavailable, "no node leads at present",
				&errdetails.ErrorInfo{Reason: "NO_QUORUM"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}),
			"admitctl: no node leads at present (NO_QUORUM, retry in 1s)", exitUnreachable,
		},
		"not the leader": {
			detailed(codes.Unavailable, "this node does not lead",
				&errdetails.ErrorInfo{Reason: "NOT_LEADER", Metadata: map[string]string{"leader_addr": "10.0.0.2:7420"}}),
			"admitctl: this node does not lead (NOT_LEADER, leader_addr 10.0.0.2:7420)", exitUnreachable,
		},
		"fields": {
			detailed(codes.InvalidArgument, "two fields", &errdetails.ErrorInfo{Reason: "INVALID_FIELD"},
				&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
					{Field: "pool", Description: "is required"}, {Field: "cost", Description: "must be\nabove 0"},
				}}),
			"admitctl: pool: is required; cost: must be above 0 (INVALID_FIELD)", exitFailure,
		},
		"deadline": {
			status.Error(codes.DeadlineExceeded, "context deadline exceeded"),
			"admitctl: no answer from n:1 within the timeout (DeadlineExceeded)", exitDeadline,
		},
		"a wrapped status says it once": {
			errors.Join(errors.New("acquire"), status.Error(codes.Internal, "oops")), "admitctl: oops (Internal)", exitFailure,
		},
		"all was said": {&codeError{code: 7}, "", 7},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := errorText(nil, tt.err, "n:1"); got != tt.text {
				t.Errorf("text:\n got %s\nwant %s", got, tt.text)
			}
			if got := exitCode(tt.err); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
		})
	}
}

// A node that takes the connection and then says nothing.
func TestNoAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var stdout, stderr bytes.Buffer
	args := []string{"--addr", silent.Addr().String(), "--timeout", "50ms", "health"}
	if code := run(args, strings.NewReader(""), &stdout, &stderr); code != exitDeadline {
		t.Errorf("exit code %d, want %d", code, exitDeadline)
	}
	want := "admitctl: no answer from " + silent.Addr().String() + " within the timeout (DeadlineExceeded)\n"
	if stderr.String() != want || stdout.Len() != 0 {
		t.Errorf("stderr %q, want %q; stdout %q", stderr.String(), want, stdout.String())
	}
}
