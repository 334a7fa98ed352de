// Package echo is gRPC and nothing behind it: the service of admit's workers,
// with the same answer to each. What it can do is what the wire costs.
package echo

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"

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
