package sidecar

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

func asks(id uint64) *admitv1alpha1.SessionCall {
	return &admitv1alpha1.SessionCall{Id: id, Request: &admitv1alpha1.SessionCall_Acquire{Acquire: work}}
}

// opens begins a session that sends one message.
func opens(t *testing.T, w *conn, req *admitv1alpha1.SessionRequest) admitv1alpha1.SessionService_SessionClient {
	t.Helper()
	s, err := admitv1alpha1.NewSessionServiceClient(w).Session(t.Context())
	if err == nil {
		err = s.Send(req)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// receives returns the next answers, which must be so many.
func receives(t *testing.T, s admitv1alpha1.SessionService_SessionClient, n int) map[uint64]*admitv1alpha1.SessionAnswer {
	t.Helper()
	got := map[uint64]*admitv1alpha1.SessionAnswer{}
	for len(got) < n {
		resp, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range resp.GetAnswers() {
			got[a.GetId()] = a
		}
	}
	return got
}

// Calls on a session are answered each by itself, and what they are granted is kept like
// anything else.
func TestASession(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second}, func(t *testing.T, m *machine) {
		w := m.worker()
		s := opens(t, w, &admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{asks(7), {Id: 8}}})
		got := receives(t, s, 2)
		token := got[7].GetAcquire().GetDecision().GetPermit().GetToken()
		if token == "" || codes.Code(got[8].GetFailure().GetCode()) != codes.InvalidArgument {
			t.Fatalf("the answers are %v", got)
		}
		goes(time.Minute)
		wantLive(t, m, token)
		renew := &admitv1alpha1.SessionCall_Renew{Renew: &admitv1.RenewRequest{Tokens: []string{token}}}
		if err := s.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{{Id: 7, Request: renew}}}); err != nil {
			t.Fatal(err)
		}
		if got := receives(t, s, 1); len(got[7].GetRenew().GetResults()) != 1 {
			t.Errorf("the answer is %v", got)
		}
		if err := s.CloseSend(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); status.Code(err) != codes.Unknown || err.Error() != "EOF" {
			t.Errorf("the session ended with %v", err)
		}
		w.cut()
		goes(2 * time.Second)
		wantEnded(t, m, token, admitv1.Outcome_OUTCOME_FAILED)
	})
}

// A call ends that is given up, or whose time is over, and others go on.
func TestACallOfASessionThatEnds(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		m.node.hook(func(ctx context.Context, _ int, req any) error {
			if r, ok := req.(*admitv1.AcquireRequest); ok && r.GetMaxWait() != nil {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		waits := func(id uint64, timeout time.Duration) *admitv1alpha1.SessionCall {
			in := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", MaxWait: durationpb.New(time.Minute)}
			return &admitv1alpha1.SessionCall{Id: id, Timeout: durationpb.New(timeout), Request: &admitv1alpha1.SessionCall_Acquire{Acquire: in}}
		}
		s := opens(t, m.worker(), &admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{waits(1, time.Minute), waits(2, 3*time.Second), asks(3)}})
		if got := receives(t, s, 1); got[3].GetAcquire() == nil {
			t.Errorf("the answers are %v", got)
		}
		if err := s.Send(&admitv1alpha1.SessionRequest{Abandoned: []uint64{1}}); err != nil {
			t.Fatal(err)
		}
		if got := receives(t, s, 1); codes.Code(got[1].GetFailure().GetCode()) != codes.Canceled {
			t.Errorf("what was given up was answered %v", got)
		}
		if got := receives(t, s, 1); codes.Code(got[2].GetFailure().GetCode()) != codes.DeadlineExceeded {
			t.Errorf("what took too long was answered %v", got)
		}
	})
}

// A message that breaks a limit ends the session, once what was open is answered.
func TestASessionThatBreaksALimit(t *testing.T) {
	many := &admitv1alpha1.SessionRequest{}
	for id := range uint64(1001) {
		many.Calls = append(many.Calls, asks(id+1))
	}
	for name, req := range map[string]*admitv1alpha1.SessionRequest{
		"nothing":     {},
		"an id of 0":  {Calls: []*admitv1alpha1.SessionCall{asks(0)}},
		"an id twice": {Calls: []*admitv1alpha1.SessionCall{asks(5), asks(5)}},
		"too many":    many,
	} {
		t.Run(name, func(t *testing.T) {
			onAMachine(t, Options{}, func(t *testing.T, m *machine) {
				s := opens(t, m.worker(), &admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{asks(1)}})
				if err := s.Send(req); err != nil {
					t.Fatal(err)
				}
				receives(t, s, 1)
				if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
					t.Errorf("the session ended with %v", err)
				}
				if n := len(seen[*admitv1.AcquireRequest](m.node)); n != 1 {
					t.Errorf("%d calls were made", n)
				}
			})
		})
	}
}

// A sidecar that stops answers what is open on a session, and ends it.
func TestASessionOfASidecarThatStops(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		reached, answer := make(chan struct{}), make(chan struct{})
		m.node.hook(func(context.Context, int, any) error {
			close(reached)
			<-answer
			return nil
		})
		s := opens(t, m.worker(), &admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{asks(1)}})
		<-reached
		m.node.hook(nil)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			m.stop()
		}()
		goes(time.Second)
		close(answer)
		if got := receives(t, s, 1); got[1].GetAcquire() == nil {
			t.Errorf("the answers are %v", got)
		}
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable || reasonOf(err) != reasonShuttingDown {
			t.Errorf("the session ended with %v", err)
		}
		<-stopped
	})
}
