package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a server over a store, and a client of it.
type harness struct {
	admitv1.AdmissionServiceClient
	due     admitv1.DueWorkServiceClient
	policy  admitv1.PolicyServiceClient
	status  admitv1.StatusServiceClient
	cluster admitv1.ClusterServiceClient
	shares  admitv1alpha1.ShareServiceClient
	conn    *grpc.ClientConn
	server  *Server
	reg     *prometheus.Registry
	log     *lockedBuffer
}

// lockedBuffer collects what a server logs.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Split(strings.TrimSuffix(b.buf.String(), "\n"), "\n")
}

// discard logs nothing.
func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func start(t *testing.T, store Store) *harness {
	t.Helper()
	return startWith(t, store, Options{}, insecure.NewCredentials())
}

func startWith(t *testing.T, store Store, opts Options, creds credentials.TransportCredentials) *harness {
	t.Helper()
	h := &harness{reg: prometheus.NewRegistry(), log: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	var err error
	if h.server, err = New(store, opts, log, h.reg); err != nil {
		t.Fatal(err)
	}
	l := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- h.server.Serve(l) }()
	h.conn, err = grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.conn.Close(); err != nil {
			t.Error(err)
		}
		h.server.Stop(soon(t))
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	h.AdmissionServiceClient = admitv1.NewAdmissionServiceClient(h.conn)
	h.due = admitv1.NewDueWorkServiceClient(h.conn)
	h.policy = admitv1.NewPolicyServiceClient(h.conn)
	h.status = admitv1.NewStatusServiceClient(h.conn)
	h.cluster = admitv1.NewClusterServiceClient(h.conn)
	h.shares = admitv1alpha1.NewShareServiceClient(h.conn)
	return h
}

// soon bounds a call in a test.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// told is what a caller learns of a failure.
type told struct {
	code   codes.Code
	reason string
	fields string
	meta   map[string]string
	retry  time.Duration
	text   string
}

func tell(t *testing.T, err error) told {
	t.Helper()
	st, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	out := told{code: st.Code(), text: st.Message()}
	var fields []string
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() != "admit" {
				t.Errorf("domain is %q", d.GetDomain())
			}
			out.reason, out.meta = d.GetReason(), d.GetMetadata()
		case *errdetails.BadRequest:
			for _, v := range d.GetFieldViolations() {
				fields = append(fields, v.GetField())
			}
		case *errdetails.RetryInfo:
			out.retry = d.GetRetryDelay().AsDuration()
		default:
			t.Errorf("unexpected detail %T", d)
		}
	}
	out.fields = strings.Join(fields, " ")
	return out
}
