// Package admission decides who may work now. It is the whole of admit's rules
// and nothing else: a state machine without I/O, clock, goroutine, randomness or
// floats. Time and random bits come with each log entry, so the same entries give
// the same state, byte for byte, on every node and after every restore.
//
// # The main path
//
//	Entry ──Apply──▶ State ──▶ []Result
//
// An entry carries operations and the moment at which they are decided (apply.go).
// Time advances; holders renew and release (lease.go); permits expire; producers
// schedule (schedule.go); and then one dispatch (dispatch.go) answers what is
// asked for: Acquires (acquire.go) and the due entries that NextDue calls have
// room for (poll.go).
//
// # The model
//
// A pool is a capacity domain (pool.go). A grant needs, all together or not at
// all: a slot of the pool and of the tenant, what higher lanes are to be left,
// and tokens of every bucket (bucket.go). It makes a permit (permit.go), which
// lives on the lease clock: cluster time less the gaps in which nobody led.
//
// A tenant has a demand in each lane in which it wants something (demand.go). A
// demand with due entries has a seat (seat.go): in the order of its class, or held
// for a reason of its tenant's own, in no order and in nobody's way. The order is
// start-time fair queueing (order.go): each grant moves the tenant's tag on by one
// unit over its weight, and the lowest tag goes next. Within a demand the routes
// take turns (route.go, ready.go).
//
// # Memory
//
// What is replicated stands in rows, in copy-on-write trees; all else is index and
// follows from the rows (state.go, image.go, restore.go). Nothing is kept without
// a bound: entries, tenants, request ids and ended permits have limits of the
// policy; full buckets and idle tenants are forgotten without loss.
//
// # Looking
//
// State.Decide, PollDelay, Shedding and Health change nothing. They may run beside
// each other, but not beside Apply.
package admission
