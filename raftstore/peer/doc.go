// Package peer is how the members of a cluster talk to each other: on a port of
// its own, over mutual TLS 1.3, and not a byte without it.
//
// # A connection
//
// Who dials says first who it is, to which cluster it belongs, whom it means and
// what it wants ([Hello]); who listens says the same of itself, or why not
// ([Welcome]). Both check that the other's id is its certificate's, so that no
// node takes the place of another, least of all one that came back with an empty
// disk at an old address. Then the connection is raft's, or carries one [Request]
// and its [Reply].
//
// # What it guards against
//
// Raft's decoder knows no limits, so only members get as far as that. What comes
// before is bounded in size and time. A member that stops in the middle of a
// request is cut off: raft itself would wait for ever for the rest of a snapshot.
// [Transport] keeps raft's own transport from two more of its faults.
package peer
