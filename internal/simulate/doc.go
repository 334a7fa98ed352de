// Package simulate replays a workload against a policy in virtual time, on the
// core that decides in production. A workload says who wants what and when, how
// long the work takes and how often it fails, and which workers ask how. What
// comes of it is a Report, and a line for each expectation of the workload that
// did not hold.
//
// # The main path
//
//	Parse ──▶ Workload ──Run──▶ Report, Breaches
//
// A run is a calendar of events (calendar.go). Each is somebody's doing: work
// arrives (arrive.go), a worker polls (poll.go) or asks for a permit (ask.go), a
// job ends (job.go), a worker vanishes. It becomes one log entry, with the parked
// polls that it may serve (apply.go), as a leader makes them.
//
// What is measured is counted here from the results alone: who has demand and
// could be served (ledger.go), who got what in fair order (contest.go), who was
// owed a slot (reclaim.go), which slots stood idle (idle.go). The core is asked
// for levels of buckets and for lanes that yield; it is not asked whether it was
// fair.
//
// # Randomness
//
// The same policy, workload and seed give the same report. Each stream has
// numbers of its own, drawn from the seed and its name, so that a stream added or
// left out changes nothing for the others.
package simulate
