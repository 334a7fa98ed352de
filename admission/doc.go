// Package admission decides who may work now. It is the whole of admit's rules
// and nothing else: a state machine without I/O, clock, goroutine, randomness or
// floats. Time and random bits come with each log entry, so the same entries give
// the same state, byte for byte, on every node and after every restore.
//
// DESIGN.md derives what is promised of the order and of buckets, says what costs
// what, and names the tests.
//
// # The main path
//
//	Entry ──Apply──▶ State ──▶ []Result, Ended
//
// An entry carries operations and the moment at which they are decided (apply.go).
// Time advances; holders renew and release (lease.go); permits and reports end;
// producers schedule (schedule.go) and report what waits elsewhere (report.go);
// then one dispatch for each pool (dispatch.go) answers what is asked for, in one
// order: Acquires (acquire.go), those that wait in line (waiter.go), and the due
// entries that NextDue calls have room for (poll.go). Then the waits end whose
// time is up, and at last tokens are taken by what takes no turn: Takes (take.go), and
// the shares of sidecars (token_share.go, share_part.go, lent.go). An Acquire that may
// wait is answered by the entry that ends its wait: see State.Ended.
//
// # The model
//
// A pool is a capacity domain (pool.go). A grant needs, all together or not at
// all: a slot of the pool and of the tenant, unless it takes tokens only; what
// higher lanes are to be left; tokens of every bucket (bucket.go); room at its
// lock (lock.go), and that its job neither runs nor is done (job.go). It makes a
// permit (permit.go), which lives on the lease clock: cluster time less the gaps
// in which nobody led. A batch is one permit for several entries, each with a part
// of its own (batch.go). A pool that only watches lets through what it would have
// shed, and charges nothing for that.
//
// A tenant has a demand in each lane in which it wants something (demand.go), from
// four sources: due entries, waiters, waiters that take tokens only, and reports.
// Each has a seat (seat.go): in the order of the demand's class, or held for a
// reason of its tenant's own, in no order and in nobody's way. Reports are never
// served; they count for yields (yield.go), and keep slots free for tenants that
// are entitled to them (standing.go).
//
// The order is start-time fair queueing (order.go): each grant moves the tenant's
// tag on by one unit over its weight, and the lowest tag goes next. The first
// waiter that lacks nothing but tokens of the pool reserves them (reservation.go).
// Within a demand waiters go in line, and the routes of entries take turns
// (route.go); each has a queue for each group of its entries (queue.go, ready.go),
// so that a group can be paused by itself (group.go). A call may narrow what it
// takes: to lanes, to a tenant, to its node's part of what each tenant may hold
// (node.go).
//
// # Memory
//
// What is replicated stands in rows, in copy-on-write trees; all else is index and
// follows from the rows (state.go, image.go, restore.go). Nothing is kept without
// a bound: entries, tenants, waiters, request ids, dedupe keys and ended permits
// have limits of the policy; full buckets and idle tenants are forgotten without
// loss, the latter after a while (idle.go). What time alone does is bounded for each entry and goes on in the next.
//
// # Looking
//
// State.Decide, PollDelay, Shedding and Health change nothing. They may run beside
// each other, but not beside Apply. A Snapshot may be read beside everything.
package admission
