// Package raftstore makes the decisions of the core durable: it feeds a
// replicated log to an [admission.State] and answers callers when their entries
// are durable and applied. A store is alone, or with [Config.Cluster] a member of a
// cluster of several, of which one leads and decides.
//
// # What it guarantees
//
// An [Answer] given is never lost and never given twice, whatever crashes. An
// error says what is known: all but [ErrOutcomeUnknown] mean that nothing was
// done. Cluster time never goes back and never outruns real time, but for one
// case: where no node was up, the time away is taken from the wall clocks.
//
// # The way of a call
//
// [Store.Do] encodes the operations in the caller's goroutine and queues them.
// One proposer goroutine stamps time on what is queued and hands it to raft as
// one entry; at most two are under way. Raft writes the entry, the fsm decodes
// it, applies it, and answers the callers at once. No operation has a goroutine
// or a timer of its own.
//
// Two kinds of calls end before the log: Acquires that the state refuses
// already, and polls that find nothing ([Store.NextDue]), which wait in memory.
//
// # Members
//
// Members talk on a port of their own (package peer). A node without data looks for
// a cluster and joins it, or founds one with others; see membership.seek. It is given
// a vote when it has caught up, and nobody but an operator removes it.
//
// # What the owner owes
//
// When [Store.Failed] is closed the store cannot go on: a write failed or hung,
// or the log holds what this version cannot read. The owner is to end the
// process, loudly; nothing here does. One process at a time uses a data
// directory; a second is refused with [ErrInUse].
//
// DESIGN.md, beside this file, gives reasons.
package raftstore
