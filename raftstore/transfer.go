package raftstore

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// transfers watches for a transfer of the lead that never ends. Raft takes nothing
// into the log while one is under way, and one can hang and outlive its term
// (hashicorp/raft#696); the node then leads, once elected again, and does nothing.
type transfers struct {
	// since is when entries began to be refused for a transfer; zero if they are not.
	since time.Time
}

var errTransfer = errors.New("a transfer of the lead does not end")

// stuck is told how each proposal went, and says whether a transfer hangs: one may
// take an election timeout, and its last request as long as any.
func (t *transfers) stuck(err error, electionTimeout time.Duration) bool {
	switch {
	case !errors.Is(err, raft.ErrLeadershipTransferInProgress):
		t.since = time.Time{}
	case t.since.IsZero():
		t.since = time.Now()
	}
	return !t.since.IsZero() && time.Since(t.since) > (1+transportTimeouts)*electionTimeout
}

// openTermSoon opens a term, if need be after an earlier transfer has ended.
func (s *Store) openTermSoon() (*term, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.closing:
			return nil, ErrShuttingDown
		}
		t, err := openTerm(s)
		if s.transfers.stuck(err, s.cfg.electionTimeout()) {
			s.fail(errTransfer)
			return nil, errTransfer
		}
		if !errors.Is(err, raft.ErrLeadershipTransferInProgress) {
			return t, err
		}
		timer.Reset(s.cfg.electionTimeout() / 10)
	}
}

// HandOver hands the lead to another member, if this node has it and there is one, so
// that the others need not find out that it is gone. Close does so, too; whoever first
// has something else to end calls it before. Within two election timeouts the others
// have elected a leader by themselves.
func (s *Store) HandOver(ctx context.Context) {
	if s.cluster == nil || s.Err() != nil || s.term.Load() == nil || len(s.voters()) == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.electionTimeout())
	defer cancel()
	if err := s.Transfer(ctx, ""); err != nil {
		s.log.Warn("failed to hand over the lead", "error", err)
		return
	}
	s.log.Info("handed over the lead")
}
