package raftstore

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// NotLeaderError says that another node leads. Nothing was done.
type NotLeaderError struct {
	// LeaderAddr is the host:port of the leader's API, or "" where only its id is
	// known.
	LeaderAddr string
	// LeaderID is the leader's node id.
	LeaderID string
}

// Error names the leader.
func (e *NotLeaderError) Error() string {
	return "not the leader; the leader is " + cmp.Or(e.LeaderAddr, e.LeaderID)
}

// OverloadedError says that a queue is full. Nothing was done.
type OverloadedError struct {
	// Queue is the name of the queue.
	Queue string
	// RetryAfter is an estimate of how long the queue takes to empty.
	RetryAfter time.Duration
}

// Error names the queue.
func (e *OverloadedError) Error() string {
	return fmt.Sprintf("overloaded: the %s queue is full; retry in %v", e.Queue, e.RetryAfter)
}

var (
	// ErrNoQuorum says that no leader is ready, now. Nothing was done.
	ErrNoQuorum = errors.New("no leader is ready")
	// ErrOutcomeUnknown says that the operation is maybe done, or will be.
	ErrOutcomeUnknown = errors.New("it is not known whether the operation was done")
	// ErrShuttingDown says that the store is closing. Nothing was done.
	ErrShuttingDown = errors.New("the store is shutting down")
)

// proposalError turns what raft says of a proposal into what is known about it.
// Only three of raft's errors mean that the entry is not in the log.
func proposalError(err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader),
		errors.Is(err, raft.ErrLeadershipTransferInProgress),
		errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w: %w", ErrNoQuorum, err)
	}
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
}
