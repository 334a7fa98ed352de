package echo

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

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
	admitv1alpha1.RegisterSessionServiceServer(g, &sessions{server: s})
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

// sessions answers the calls of each message with one.
type sessions struct {
	admitv1alpha1.UnimplementedSessionServiceServer
	*server
}

func (s *sessions) Session(stream grpc.BidiStreamingServer[admitv1alpha1.SessionRequest, admitv1alpha1.SessionResponse]) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp := &admitv1alpha1.SessionResponse{}
		for _, c := range req.GetCalls() {
			resp.Answers = append(resp.Answers, s.answer(c))
		}
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
}

func (s *sessions) answer(c *admitv1alpha1.SessionCall) *admitv1alpha1.SessionAnswer {
	a := &admitv1alpha1.SessionAnswer{Id: c.GetId()}
	if c.GetRelease() != nil {
		a.Outcome = &admitv1alpha1.SessionAnswer_Release{Release: s.release}
	} else {
		a.Outcome = &admitv1alpha1.SessionAnswer_Acquire{Acquire: s.acquire}
	}
	return a
}
