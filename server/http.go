package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

const (
	// maxHTTPCalls are answered at a time, however many look on; more are refused, and
	// come again.
	maxHTTPCalls = 16
	// maxHTTPRequest and maxHTTPAnswer are in bytes of JSON.
	maxHTTPRequest = 64 << 10
	maxHTTPAnswer  = 4 << 20
	httpTimeout    = 10 * time.Second
)

// shown are the methods that are answered over HTTP: those that the page needs, all of
// which only read.
var shown = map[string]bool{
	admitv1.StatusService_QueueHealth_FullMethodName:  true,
	admitv1.StatusService_LaneHistory_FullMethodName:  true,
	admitv1.StatusService_GetTenant_FullMethodName:    true,
	admitv1.StatusService_ListTenants_FullMethodName:  true,
	admitv1.StatusService_ListPermits_FullMethodName:  true,
	admitv1.StatusService_TopShed_FullMethodName:      true,
	admitv1.StatusService_Explain_FullMethodName:      true,
	admitv1.PolicyService_GetPolicy_FullMethodName:    true,
	admitv1.ClusterService_ListMembers_FullMethodName: true,
}

// httpCalls answers reads of the API over HTTP: POST /SERVICE/METHOD with the request
// as JSON. A call goes the way of one that came over gRPC, whoever calls and whoever
// leads.
type httpCalls struct {
	api     *dispatcher
	around  grpc.UnaryServerInterceptor
	places  chan struct{}
	counted *prometheus.CounterVec
}

// newHTTPCounter counts the calls over HTTP.
func newHTTPCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "admit_http_calls_total", Help: "Calls of the API over HTTP, as the page makes them, that were answered.",
	}, []string{"call", "grpc_code"})
}

// HTTP returns a handler of reads over HTTP, for callers whom the guard of that side
// knows; with nil for everybody.
func (s *Server) HTTP(guard Guard) http.Handler {
	around := *s.around
	around.gate = checkpoint{guard}
	return &httpCalls{api: s.api, around: around.unary, places: make(chan struct{}, maxHTTPCalls), counted: s.httpCalls}
}

func (h *httpCalls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !shown[r.URL.Path] {
		http.NotFound(w, r)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Method != http.MethodPost || kind != "application/json" {
		// What a form of another site can send comes no further.
		http.Error(w, "POST a request as application/json", http.StatusUnsupportedMediaType)
		return
	}
	answer, err := h.answer(r)
	ended, _ := ending(err)
	h.counted.WithLabelValues(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], ended).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		var code int
		code, answer = httpFailure(err)
		w.WriteHeader(code)
	}
	_, _ = w.Write(answer) // a caller who left needs no answer
}

// answer has a call answered. Its errors are statuses.
func (h *httpCalls) answer(r *http.Request) ([]byte, error) {
	// A place is for who has said what he wants: not for who says it slowly.
	body, err := io.ReadAll(io.LimitReader(r.Body, maxHTTPRequest+1))
	if err != nil {
		return nil, statusError(fmt.Errorf("read the request: %w", err), true)
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return nil, statusError(&raftstore.OverloadedError{Queue: "HTTP calls", RetryAfter: retryLater}, true)
	}
	ctx, cancel := context.WithTimeout(incoming(r), httpTimeout)
	defer cancel()
	m := h.api.methods[r.URL.Path]
	resp, err := m.Handler(m.service, ctx, func(v any) error { return decodeJSON(body, v) }, h.around)
	if err != nil {
		return nil, statusError(err, true)
	}
	answer, err := encodeJSON(r.URL.Path, resp)
	if err != nil {
		return nil, statusError(err, true)
	}
	return answer, nil
}

// incoming is the context of a call as gRPC would have made it: who is behind it, and
// what he shows.
func incoming(r *http.Request) context.Context {
	from := &peer.Peer{Addr: remote(r.RemoteAddr)}
	if r.TLS != nil {
		from.AuthInfo = credentials.TLSInfo{State: *r.TLS}
	}
	md := metadata.MD{}
	md.Append("authorization", r.Header.Values("Authorization")...)
	md.Append(traceHeader, r.Header.Values(traceHeader)...)
	return metadata.NewIncomingContext(peer.NewContext(r.Context(), from), md)
}

// remote is an address as net/http tells it.
type remote string

var _ net.Addr = remote("")

func (remote) Network() string  { return "tcp" }
func (a remote) String() string { return string(a) }

// decodeJSON reads a request. Nothing is one that says nothing.
func decodeJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	err := errors.New("it is too long")
	if len(body) <= maxHTTPRequest {
		err = protojson.Unmarshal(body, into.(proto.Message))
	}
	if err == nil {
		return nil
	}
	return &fieldError{reason: admission.InvalidField, violations: []admission.Violation{{
		Message: fmt.Sprintf("the request is no JSON of %s: %v", into.(proto.Message).ProtoReflect().Descriptor().FullName(), err),
	}}}
}

// errLongAnswer says that an answer is longer than a page should get.
var errLongAnswer = errors.New("the answer is too long for HTTP; ask for less, or over gRPC")

// encodeJSON writes an answer by its API names, also one that came encoded from the
// leader.
func encodeJSON(method string, resp any) ([]byte, error) {
	m, ok := resp.(proto.Message)
	if data, done := resp.(encoded); done {
		into, err := answerOf(method)
		if err == nil {
			err = proto.Unmarshal(data, into)
		}
		if err != nil {
			return nil, fmt.Errorf("decode the leader's answer: %w", err)
		}
		m, ok = into, true
	}
	if !ok {
		return nil, fmt.Errorf("the answer is a %T", resp)
	}
	answer, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	switch {
	case err != nil:
		return nil, fmt.Errorf("write JSON: %w", err)
	case len(answer) > maxHTTPAnswer:
		return nil, errLongAnswer
	}
	return answer, nil
}

// answerOf returns an empty answer of a method.
func answerOf(method string) (proto.Message, error) {
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(name)
	if err != nil {
		return nil, err
	}
	desc, ok := found.(protoreflect.MethodDescriptor)
	if !ok {
		return nil, fmt.Errorf("%s is no method", name)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(desc.Output().FullName())
	if err != nil {
		return nil, err
	}
	return kind.New().Interface(), nil
}
