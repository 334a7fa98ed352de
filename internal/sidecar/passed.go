package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/admitd/admit/internal/repeat"
)

// pass returns a service whose calls are passed on as they are. Those that only read, or
// name what they change, are retried.
func (u *upstream) pass(desc *grpc.ServiceDesc) (*grpc.ServiceDesc, error) {
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(desc.ServiceName))
	if err != nil {
		return nil, notPassed(desc.ServiceName, err)
	}
	methods := found.(protoreflect.ServiceDescriptor).Methods()
	out := &grpc.ServiceDesc{ServiceName: desc.ServiceName, Metadata: desc.Metadata}
	for i := range methods.Len() {
		m, err := newPassedMethod(u, methods.Get(i))
		switch {
		case err != nil:
			return nil, notPassed(desc.ServiceName, err)
		case methods.Get(i).IsStreamingClient():
			return nil, notPassed(desc.ServiceName, errors.New("a worker would send a stream"))
		case methods.Get(i).IsStreamingServer():
			out.Streams = append(out.Streams, grpc.StreamDesc{StreamName: m.name, Handler: m.stream, ServerStreams: true})
		default:
			out.Methods = append(out.Methods, grpc.MethodDesc{MethodName: m.name, Handler: m.unary})
		}
	}
	return out, nil
}

// passedMethod is a method whose calls are passed on.
type passedMethod struct {
	up         *upstream
	name, full string
	in, out    protoreflect.MessageType
}

func newPassedMethod(u *upstream, d protoreflect.MethodDescriptor) (m *passedMethod, err error) {
	m = &passedMethod{up: u, name: string(d.Name()), full: fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name())}
	if m.in, err = protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName()); err != nil {
		return nil, err
	}
	m.out, err = protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	return m, err
}

func (m *passedMethod) unary(srv any, ctx context.Context, decode func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
	in := m.in.New().Interface()
	if err := decode(in); err != nil {
		return nil, err
	}
	return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: m.full}, func(ctx context.Context, in any) (any, error) {
		out := m.out.New().Interface()
		err := m.up.send(ctx, 0, repeat.Safe(in), func(ctx context.Context, _ time.Duration) error {
			proto.Reset(out) // of a try before
			return m.up.client.Conn().Invoke(ctx, m.full, in, out)
		})
		return out, err
	})
}

func (m *passedMethod) stream(_ any, worker grpc.ServerStream) error {
	in := m.in.New().Interface()
	if err := worker.RecvMsg(in); err != nil {
		return err
	}
	node, err := m.up.client.Conn().NewStream(worker.Context(), &grpc.StreamDesc{StreamName: m.name, ServerStreams: true}, m.full)
	if err != nil {
		return err
	}
	if err := errors.Join(node.SendMsg(in), node.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for {
		out := m.out.New().Interface()
		switch err := node.RecvMsg(out); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := worker.SendMsg(out); err != nil {
			return err
		}
	}
}
