package server

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
)

// Advice on when to retry. A leader is found within a second or two; a node
// that shuts down is replaced by another address, or by itself in a while.
const (
	retryElsewhere = 200 * time.Millisecond
	retryLater     = time.Second
)

// The details of a status travel in a header, and clients refuse headers
// beyond 8 KiB: what is told is cut to fit, with room for the encoding.
const (
	maxDetailBytes  = 4 << 10
	maxMessageBytes = 512
)

// badRequest names the fields at fault, as many as fit.
func badRequest(violations []admission.Violation) *errdetails.BadRequest {
	out := &errdetails.BadRequest{}
	size := 0
	for _, v := range violations {
		field, message := clip(v.Field), clip(v.Message)
		size += len(field) + len(message)
		if size > maxDetailBytes {
			break
		}
		out.FieldViolations = append(out.FieldViolations,
			&errdetails.BadRequest_FieldViolation{Field: field, Description: message})
	}
	return out
}

func retryIn(d time.Duration) *errdetails.RetryInfo {
	return &errdetails.RetryInfo{RetryDelay: durationpb.New(d)}
}

// meta makes metadata of names and values in turn, empty values left out.
func meta(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out[pairs[i]] = clip(pairs[i+1])
		}
	}
	return out
}

// clip cuts a text to what a header may hold, at the end of a character.
func clip(s string) string {
	if len(s) <= maxMessageBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessageBytes], "") + "…"
}
