// Package forward carries calls from the node that took them to the leader, one
// hop, and the answers back. It knows nothing of what the calls mean.
//
// All calls of a node travel on one stream: the leader pays one HTTP/2 stream for
// each node, not one for each caller, and frames that are ready at the same time
// share a message. Each call keeps its deadline, and ends at the leader when its
// caller has gone; a stream that breaks ends all of its calls.
//
// What a call's error means is exact. After ErrNotSent nothing was done: the call
// never left, or the leader ended the stream in good order without having begun it.
// After ErrLost nobody here knows. Nothing is ever sent twice.
//
// The files: forwarder.go and link.go are the sending side, receiver.go the
// leader's. Every goroutine belongs to a Forwarder, whose Close waits for it, or to
// the handler of a stream.
package forward
