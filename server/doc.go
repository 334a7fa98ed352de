// Package server answers the gRPC API of proto/admit/v1 from a Store.
//
// A handler reads the request (rules and conversion in one pass, so that only
// what was checked goes on), makes one call to the Store and converts the
// answer. It decides nothing: what may run is the business of package
// admission, and what is durable that of the Store.
//
// The files:
//
//   - *_service.go hold the handlers, one file for each service.
//   - session_*.go carry many calls on one stream: session_service.go reads and
//     begins them, session_answers.go answers, session_call.go is one of them.
//   - check.go and rules.go are the limits that the protos state, each named
//     once; read_*.go apply them to the requests and convert; write_*.go
//     convert the answers.
//   - status.go alone turns errors into statuses. A refusal is not an error: it
//     is a decision in an answer. What an error's cause looked like inside is
//     logged and never sent.
//   - server.go puts it together: limits of the transport, interceptors, health,
//     reflection. It starts no goroutine but those that follow the store, which
//     Stop waits for, and one that reads for each session, which ends with it.
//   - router.go and forward_service.go have the leader decide what this node can't,
//     by way of package forward; reads.go lets reads wait until this node knows all
//     that the leader knew when they began.
//   - metrics.go counts decisions; collector.go shows the state at each scrape.
//     No label ever holds a tenant or a key.
//   - traces.go makes the spans of calls, and debug.go logs what is decided about a
//     pool, each where that is wanted and else for nothing.
package server
