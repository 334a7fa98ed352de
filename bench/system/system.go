// Package system is what is measured, seen from outside: servers that are started
// and stopped, and the operations that callers ask of them.
package system

import (
	"context"
	"errors"
)

// System is servers under test. Start is called once and returns when they serve;
// what Start made, Stop ends, also when Start failed.
type System interface {
	// Name is what the page calls it, with its number of nodes.
	Name() string
	// Version is what the servers say they are. It is known once they run.
	Version() string
	// Start runs the servers with their data below dir.
	Start(ctx context.Context, dir string) error
	// Stop ends the servers.
	Stop() error
	// Processes are the ids of the servers, whose children count as theirs.
	Processes() []int
}

// Operation is one kind of call to a running system.
type Operation interface {
	// Do makes one call for the caller of that number, 0 to one less than the
	// callers that the operation was opened for, and returns how many requests it
	// carried. A caller's calls never overlap.
	Do(ctx context.Context, caller int) (requests int, err error)
	// Close ends the operation's connections. No call is under way then.
	Close() error
}

// ErrDrained is returned by Do where nothing is left to be asked for: the caller is
// done, and nothing went wrong.
var ErrDrained = errors.New("nothing is left")

// Open makes an operation for so many callers.
type Open func(ctx context.Context, callers int) (Operation, error)
