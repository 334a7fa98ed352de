package client_test

import (
	"context"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	first, second, third = "n1:7420", "n2:7420", "n3:7420"
	told                 = first + ", " + second
)

// inCluster runs a test against three nodes, of which the client is told two.
func inCluster(t *testing.T, a, b, c *fake, test func(t *testing.T, cl *client.Client, nodes map[string]*fakeNode)) {
	t.Helper()
	for way, opts := range ways {
		t.Run(way, func(t *testing.T) { inClusterBy(t, opts, a, b, c, test) })
	}
}

func inClusterBy(
	t *testing.T, opts []client.Option, a, b, c *fake, test func(t *testing.T, cl *client.Client, nodes map[string]*fakeNode),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		nodes := map[string]*fakeNode{first: serve(a), second: serve(b), third: serve(c)}
		for _, n := range nodes {
			defer n.stop()
		}
		cl := dialled(t, told, nodes, opts...)
		cl.Conn().(*grpc.ClientConn).Connect()
		synctest.Wait() // else the first connection wins, whichever it is
		test(t, cl, nodes)
		if err := cl.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

func acquire(t *testing.T, c *client.Client) {
	t.Helper()
	if _, err := c.Acquire(t.Context(), work); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

// asked is how many Acquires each has seen.
func asked(fakes ...*fake) (n [3]int) {
	for i, f := range fakes {
		n[i] = len(noted(f, &f.acquires))
	}
	return n
}

func notLeader(addr string) error {
	st, err := status.New(codes.Unavailable, "as told").WithDetails(&errdetails.ErrorInfo{
		Reason: "NOT_LEADER", Domain: "admit", Metadata: map[string]string{"leader_addr": addr},
	})
	if err != nil {
		panic(err)
	}
	return st.Err()
}

func TestCallsFollowTheLeader(t *testing.T) {
	a, b, c := &fake{leader: third}, &fake{}, &fake{}
	inCluster(t, a, b, c, func(t *testing.T, cl *client.Client, _ map[string]*fakeNode) {
		acquire(t, cl)
		if n := asked(a, b, c); n != [3]int{1, 0, 0} {
			t.Fatalf("asked %v first", n)
		}
		for range 4 {
			acquire(t, cl)
		}
		// A session is left once the leader is connected, which may take another call.
		n, inSession := asked(a, b, c), strings.HasSuffix(t.Name(), "in_a_session")
		if n != [3]int{1, 0, 4} && (!inSession || n != [3]int{2, 0, 3}) {
			t.Errorf("asked %v", n)
		}
	})
}

func TestARefusalNamesTheLeader(t *testing.T) {
	refuse := func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) { return nil, notLeader(third) }
	a, b, c := &fake{onAcquire: refuse}, &fake{onAcquire: refuse}, &fake{}
	inCluster(t, a, b, c, func(t *testing.T, cl *client.Client, _ map[string]*fakeNode) {
		acquire(t, cl)
		if n := asked(a, b, c); n[0]+n[1] > 2 || n[2] != 1 {
			t.Errorf("asked %v", n)
		}
		ids := map[string]bool{}
		for _, f := range []*fake{a, b, c} {
			for _, call := range noted(f, &f.acquires) {
				ids[call.req.GetRequestId()] = true
			}
		}
		if len(ids) != 1 {
			t.Errorf("sent the call under %d ids", len(ids))
		}
	})
}

func TestAnotherNodeTakesOver(t *testing.T) {
	a, b, c := &fake{}, &fake{}, &fake{}
	inCluster(t, a, b, c, func(t *testing.T, cl *client.Client, nodes map[string]*fakeNode) {
		acquire(t, cl)
		if asked(a, b, c) != [3]int{1, 0, 0} {
			t.Fatalf("asked %v first", asked(a, b, c))
		}
		nodes[first].stop()
		began := time.Now()
		acquire(t, cl)
		if took := time.Since(began); asked(a, b, c)[1] != 1 || took > time.Second {
			t.Errorf("asked %v after %v", asked(a, b, c), took)
		}
	})
}

// One that hangs and does not break off is left, and its call sent to another under
// the same id.
func TestASilentNodeIsLeft(t *testing.T) {
	a := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		hold(context.Background(), time.Minute)
		return nil, nil
	}}
	b, c := &fake{}, &fake{}
	inCluster(t, a, b, c, func(t *testing.T, cl *client.Client, _ map[string]*fakeNode) {
		began := time.Now()
		acquire(t, cl)
		if took := time.Since(began); took < time.Second || took > 4*time.Second {
			t.Errorf("took %v", took)
		}
		if n := asked(a, b, c); n != [3]int{1, 1, 0} ||
			noted(a, &a.acquires)[0].req.GetRequestId() != noted(b, &b.acquires)[0].req.GetRequestId() {
			t.Errorf("asked %v", n)
		}
	})
}

// A poll that breaks off goes on elsewhere under the same id, for what is left of it.
func TestAPollGoesOnElsewhere(t *testing.T) {
	a := &fake{onNextDue: func(ctx context.Context, _ int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		hold(ctx, 20*time.Second)
		return nil, refusal(codes.Unavailable, "NO_QUORUM", 0)
	}}
	b := &fake{onNextDue: func(context.Context, int, *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		return []*admitv1.Claim{{Permit: permit("p", time.Minute), Key: "k"}}, nil
	}}
	inCluster(t, a, b, &fake{}, func(t *testing.T, cl *client.Client, _ map[string]*fakeNode) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &client.Worker{Client: cl, Pool: "p", Handler: func(context.Context, *client.Claim) error { cancel(); return nil }}
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		before, after := noted(a, &a.polls), noted(b, &b.polls)
		if len(before) != 1 || len(after) != 1 || before[0].req.GetRequestId() != after[0].req.GetRequestId() {
			t.Fatalf("polled %v and %v", before, after)
		}
		if left := after[0].req.GetMaxWait().AsDuration(); left > 10*time.Second || left < 9*time.Second {
			t.Errorf("waits for %v more, want the rest of 30s", left)
		}
	})
}

func TestOtherTargetsAreDialledAsTheyAre(t *testing.T) {
	for _, target := range []string{"passthrough:///x", "unix:/run/admit.sock", "dns:///admit:7420", "admit"} {
		c, err := client.Dial(target)
		if err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What docs/errors.md gives plain gRPC sends again what may be sent again.
func TestTheDocumentedServiceConfig(t *testing.T) {
	docs, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(docs), "```json\n")
	config, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("there is none")
	}
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int32
		n := newNode(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			tries.Add(1)
			if err := stream.RecvMsg(&emptypb.Empty{}); err != nil { // else a refusal may overtake the request
				return err
			}
			return refusal(codes.Unavailable, "NO_QUORUM", 0)
		}))
		n.start()
		defer n.stop()
		conn, err := grpc.NewClient("passthrough:///x", grpc.WithDefaultServiceConfig(config),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.listener.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, service := range []grpc.ServiceDesc{admitv1.AdmissionService_ServiceDesc, admitv1.DueWorkService_ServiceDesc} {
			for _, m := range service.Methods {
				want := int32(5)
				if m.MethodName == "Redrive" || m.MethodName == "PurgeDead" {
					want = 1
				}
				err := conn.Invoke(t.Context(), "/"+service.ServiceName+"/"+m.MethodName, &emptypb.Empty{}, &emptypb.Empty{})
				if got := tries.Swap(0); got != want || status.Code(err) != codes.Unavailable {
					t.Errorf("%s is sent %d times, want %d; %v", m.MethodName, got, want, err)
				}
			}
		}
	})
}
