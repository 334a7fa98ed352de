package raftstore

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// term is a leader's time in office: it alone stamps time on entries and
// proposes them.
type term struct {
	s *Store
	// number is raft's number of the term.
	number uint64
	// t0 is what cluster time was when the clock showed start.
	t0    admission.Instant
	start clock.Reading

	// checked is when the log was last told what the results come to; of the
	// proposer's.
	checked admission.Instant

	queue   queue
	polls   *polls
	waits   *waits
	reports *reports
	// wake tells the proposer that the queue has something.
	wake chan struct{}
	// returned brings entries back that were applied or failed.
	returned chan *proposal

	mu sync.Mutex
	// flights are the entries proposed and not yet applied, in log order.
	flights []*proposal
	// lastID is that of the last proposal.
	lastID uint64
	// unsettled says that an entry may yet be applied that raft gave up, after the
	// term's end; of the proposer.
	unsettled bool

	// sheds are those built for the entry being answered.
	sheds map[admission.SheddingQuery]*admission.Shedding
}

// openTerm makes this node a leader that is ready: all that was committed is
// applied, and time runs on from where it stopped.
func openTerm(s *Store) (*term, error) {
	number := s.raft.CurrentTerm()
	if err := s.await(s.raft.Barrier(0).Error); err != nil {
		return nil, fmt.Errorf("apply what was committed: %w", err)
	}
	t := &term{
		s:        s,
		number:   number,
		wake:     make(chan struct{}, 1),
		returned: make(chan *proposal, maxInFlight),
		lastID:   randomID(),
		sheds:    make(map[admission.SheddingQuery]*admission.Shedding),
	}
	t.polls, t.waits, t.reports = newPolls(t), newWaits(t), newReports()
	gap := s.gap()
	t.start = s.clk.Now()
	if err := t.propose(gap); err != nil {
		return nil, fmt.Errorf("open a term: %w", err)
	}
	if s.raft.CurrentTerm() != number {
		return nil, fmt.Errorf("open a term: %w", raft.ErrLeadershipLost)
	}
	s.fsm.read(func(st *admission.State) { t.t0, _ = st.Now() })
	return t, nil
}

// propose proposes the entry that opens the term, and waits for it.
func (t *term) propose(gap time.Duration) error {
	op, err := appendOp(nil, admission.TermStart{Gap: gap})
	if err != nil {
		return err
	}
	t.lastID++
	at := stamp{proposal: t.lastID, w: wall(t.start)}
	t.s.fsm.read(func(st *admission.State) { at.t, _ = st.Now() })
	data, err := encodeCommand(at, [][]byte{op}, len(op))
	if err != nil {
		return err
	}
	future := t.s.raft.Apply(data, 0)
	return t.s.await(func() error { return outcome(future) })
}

// await waits for raft, but no longer than the store lives.
func (s *Store) await(wait func() error) error {
	done := make(chan error, 1)
	s.waiters.Go(func() { done <- wait() })
	select {
	case err := <-done:
		return err
	case <-s.failed:
		return s.Err()
	}
}

// outcome waits for an entry and returns raft's error or the fsm's.
func outcome(f raft.ApplyFuture) error {
	if err := f.Error(); err != nil {
		return err
	}
	if err, failed := f.Response().(error); failed {
		return err
	}
	return nil
}

func wall(r clock.Reading) admission.Wall { return admission.Wall(r.Wall.UnixNano()) }

// now returns the present: T runs on the monotonic clock, W is the wall's.
func (t *term) now() (admission.Instant, admission.Wall) {
	r := t.s.clk.Now()
	return t.t0.Add(r.Since(t.start)), wall(r)
}

// submit queues a call for the proposer.
func (t *term) submit(c *call) error {
	if err := t.queue.push(c); err != nil {
		return t.s.countRefusal(err)
	}
	notify(t.wake)
	return nil
}

// notify wakes whoever waits on a channel of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
