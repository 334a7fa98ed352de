package server

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
)

// The transport answers bytes that are no message (cut short, text that is not
// UTF-8) with INTERNAL, before any interceptor runs. They are the caller's fault,
// so the codec lets them through as an empty message that is marked, and an
// interceptor refuses it as it does any other bad request.

// brokenField marks a message that could not be decoded; it holds why. A caller
// who sets it gets what it asks for.
const brokenField = protowire.MaxValidNumber

type markingCodec struct{ encoding.CodecV2 }

// encoded is an answer that is encoded already.
type encoded []byte

// Marshal encodes a message, unless that is done.
func (c markingCodec) Marshal(v any) (mem.BufferSlice, error) {
	if data, done := v.(encoded); done {
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func newMarkingCodec() encoding.CodecV2 {
	return markingCodec{encoding.GetCodecV2(protocodec.Name)}
}

// answered begins the names of the messages that are marked: our own, and those that
// Envoy asks with.
var answered = []string{"admit.", "envoy.service.ratelimit."}

// Unmarshal marks messages instead of failing.
func (c markingCodec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	m, ok := v.(proto.Message)
	if !ok {
		return err
	}
	name := string(m.ProtoReflect().Descriptor().FullName())
	if !slices.ContainsFunc(answered, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return err
	}
	proto.Reset(m)
	mark := protowire.AppendTag(nil, brokenField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(mark, err.Error()))
	return nil
}

// decodingStream is a stream that refuses what the codec marked.
type decodingStream struct{ grpc.ServerStream }

func (s *decodingStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return checkDecoded(m)
}

func checkDecoded(req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	unknown := m.ProtoReflect().GetUnknown()
	number, kind, n := protowire.ConsumeTag(unknown)
	if number != brokenField || kind != protowire.BytesType {
		return nil
	}
	why, _ := protowire.ConsumeString(unknown[n:])
	return fmt.Errorf("decode the request (%s): %w", why, &fieldError{
		reason: admission.InvalidField,
		violations: []admission.Violation{{
			Message: "the request is no " + string(m.ProtoReflect().Descriptor().FullName()) + ", or has text that is not UTF-8",
		}},
	})
}
