// Package echo is gRPC and nothing behind it: the service of admit's workers,
// with the same answer to each. What it can do is what the wire costs.
package echo

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Server is the name under which the program runs as the echo.
const Server = "echo"

// Answers are what it says to each call. They are a real node's, so that they are
// as long.
type Answers struct {
	Acquire *admitv1.AcquireResponse
	Release *admitv1.ReleaseResponse
}

// Echo is the system.
type Echo struct {
	answers   func(context.Context) (Answers, error)
	addr      string
	processes system.Processes
}

// New returns an echo that says what answers returns when it starts.
func New(answers func(context.Context) (Answers, error)) *Echo { return &Echo{answers: answers} }

func (e *Echo) Name() string     { return "bare gRPC echo" }
func (e *Echo) Version() string  { return "grpc-go " + grpc.Version }
func (e *Echo) Processes() []int { return e.processes.IDs() }
func (e *Echo) Stop() error      { return e.processes.Stop() }
func (e *Echo) Target() string   { return e.addr }

func (e *Echo) Start(ctx context.Context, dir string) error {
	answers, err := e.answers(ctx)
	if err != nil {
		return fmt.Errorf("learn what to echo: %w", err)
	}
	var args []string
	for _, m := range []proto.Message{answers.Acquire, answers.Release} {
		bytes, err := proto.Marshal(m)
		if err != nil {
			return fmt.Errorf("marshal an answer: %w", err)
		}
		args = append(args, base64.StdEncoding.EncodeToString(bytes))
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return err
	}
	e.addr = addrs[0]
	cmd, err := system.Self(Server, append([]string{e.addr}, args...)...)
	if err != nil {
		return err
	}
	p, err := system.StartProcess(dir+"/echo.log", cmd)
	if err != nil {
		return err
	}
	e.processes = append(e.processes, p)
	return p.Await(ctx, func(ctx context.Context) error { return listens(ctx, e.addr) })
}

func listens(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// Serve runs the echo: args are the address and the two answers.
func Serve(args []string) error {
	s := &server{acquire: &admitv1.AcquireResponse{}, release: &admitv1.ReleaseResponse{}}
	for i, m := range []proto.Message{s.acquire, s.release} {
		bytes, err := base64.StdEncoding.DecodeString(args[i+1])
		if err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
		if err := proto.Unmarshal(bytes, m); err != nil {
			return fmt.Errorf("read an answer: %w", err)
		}
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	g := grpc.NewServer()
	admitv1.RegisterAdmissionServiceServer(g, s)
	fmt.Fprintln(os.Stderr, "listening on", l.Addr())
	return g.Serve(l)
}

type server struct {
	admitv1.UnimplementedAdmissionServiceServer
	acquire *admitv1.AcquireResponse
	release *admitv1.ReleaseResponse
}

func (s *server) Acquire(context.Context, *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	return s.acquire, nil
}

func (s *server) Release(context.Context, *admitv1.ReleaseRequest) (*admitv1.ReleaseResponse, error) {
	return s.release, nil
}

func (s *server) BatchAcquire(_ context.Context, req *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	resp := &admitv1.BatchAcquireResponse{}
	for range req.GetRequests() {
		resp.Results = append(resp.Results, &admitv1.BatchAcquireResult{
			Result: &admitv1.BatchAcquireResult_Response{Response: s.acquire},
		})
	}
	return resp, nil
}

func (s *server) BatchRelease(_ context.Context, req *admitv1.BatchReleaseRequest) (*admitv1.BatchReleaseResponse, error) {
	resp := &admitv1.BatchReleaseResponse{}
	for range req.GetRequests() {
		resp.Results = append(resp.Results, &admitv1.BatchReleaseResult{
			Result: &admitv1.BatchReleaseResult_Response{Response: s.release},
		})
	}
	return resp, nil
}
