// Package client makes admit comfortable from Go. Plain gRPC works as well: the
// generated stubs stay reachable on a Client, and nothing here does what they
// can't.
//
// What the package adds:
//
//   - Acquire, Renew and Release retry what may be retried. Each request that is more
//     than tokens carries a request_id, so a retry has the effect of one call.
//   - Do runs a function under a permit: it waits in line or comes back until it
//     is admitted, renews while the function runs, and releases with the outcome
//     that the function's error means.
//   - WithTLS and WithToken reach a cluster that wants to know who calls.
//   - A Worker claims due entries and runs a handler for each.
//   - WithSession carries the calls of many goroutines on one stream.
//
// # Holding a permit
//
// A permit is a lease. Its holder must have stopped before somebody else may
// start, whatever the network does in between. So a holder counts the permit's
// time from before the request that gave or renewed it was sent, and stops at
// 85 % of it: the context of the function is cancelled with ErrPermitLost as its
// cause. A function that can't stop at once passes Permit.Fence to the resource
// that it works on.
//
// # What an error means
//
// The error of a function or handler is the outcome of its work: nil is DONE, a
// Throttled is THROTTLED, a NotStarted is NOT_STARTED, a Dead is DEAD, anything
// else is FAILED. They may be wrapped.
package client
