package client

import (
	"time"

	"google.golang.org/grpc"
)

// defaultRetryFor outlasts a restart or a change of leader with room to spare.
const defaultRetryFor = 15 * time.Second

type config struct {
	dial     []grpc.DialOption
	retryFor time.Duration
	session  bool
	traces   *traces
}

// Option changes how Dial sets a client up.
type Option func(*config)

// WithDialOptions passes options to gRPC: transport credentials, interceptors, a
// dialer. They win over the client's own. Without credentials among them the
// connection is in plain text.
func WithDialOptions(opts ...grpc.DialOption) Option {
	return func(c *config) { c.dial = append(c.dial, opts...) }
}

// WithRetryFor says for how long after its first try, the time in line aside, a
// call may be tried again. 0 means that a call that does not wait is sent once.
// The default is 15 s.
func WithRetryFor(d time.Duration) Option {
	return func(c *config) { c.retryFor = d }
}
