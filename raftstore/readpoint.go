package raftstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/admitd/admit/admission"
)

// ReadPoint is a moment of the cluster. A state that has reached it shows all that
// anybody was answered before the point was asked for.
type ReadPoint struct {
	// Index is that of the last operation which had been decided.
	Index uint64
	// T and W are the leader's times.
	T admission.Instant
	W admission.Wall
}

// ReadPoint returns the present, once a quorum has said that this node leads: only
// then can it know that nothing was decided elsewhere.
//
// Errors: those of Do, ErrOutcomeUnknown aside.
func (s *Store) ReadPoint(ctx context.Context) (ReadPoint, error) {
	t, err := s.leading()
	if err != nil {
		return ReadPoint{}, err
	}
	committed := s.raft.CommitIndex()
	if err := s.confirms.ask(ctx, s); err != nil {
		return ReadPoint{}, err
	}
	// A lead that was lost and won again meanwhile is another term, which may lack
	// a look at what came between.
	if s.term.Load() != t || s.raft.CurrentTerm() != t.number {
		return ReadPoint{}, s.unavailable()
	}
	// Others may have applied what this node knows to be committed and has not got
	// round to: who read it there is not to miss it here.
	if err := s.until(ctx, func() bool { return s.fsm.seen.Load() >= committed }); err != nil {
		return ReadPoint{}, err
	}
	p := ReadPoint{Index: s.fsm.index()}
	p.T, p.W = t.now()
	return p, nil
}

// Reach waits until this node has applied all up to a point. Errors: ctx's own, and
// those of a store that ends.
func (s *Store) Reach(ctx context.Context, p ReadPoint) error {
	return s.until(ctx, func() bool { return s.fsm.index() >= p.Index })
}

// until waits until ok, which is asked after each step of the fsm.
func (s *Store) until(ctx context.Context, ok func() bool) error {
	for {
		stepped := s.fsm.steps.next()
		if ok() {
			return nil
		}
		select {
		case <-stepped:
		case <-ctx.Done():
			return fmt.Errorf("wait for the log: %w", ctx.Err())
		case <-s.failed:
			return s.unavailable()
		case <-s.closing:
			return ErrShuttingDown
		}
	}
}

// steps tells those who wait that the fsm has come further.
type steps struct {
	mu sync.Mutex
	// waited is closed with the next step; nil if nobody waits for that.
	waited chan struct{}
}

func (st *steps) next() <-chan struct{} {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.waited == nil {
		st.waited = make(chan struct{})
	}
	return st.waited
}

func (st *steps) done() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.waited != nil {
		close(st.waited)
		st.waited = nil
	}
}

// confirms asks the other voters whether this node still leads. Who asks while the
// question is under way shares the next one, so there is one at a time however many
// read.
type confirms struct {
	mu     sync.Mutex
	closed bool
	// asking is closed when nothing is asked any more; nil if nothing is.
	asking chan struct{}
	next   *confirm
}

// confirm is one question, and its answer once done is closed.
type confirm struct {
	done chan struct{}
	err  error
}

// ask returns nil if this node led at a moment after the call began.
func (cs *confirms) ask(ctx context.Context, s *Store) error {
	c := cs.join(s)
	if c == nil {
		return ErrShuttingDown
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("confirm the lead: %w", ctx.Err())
	case <-s.failed:
		return s.unavailable()
	}
	if c.err != nil {
		return s.unavailable()
	}
	return nil
}

func (cs *confirms) join(s *Store) *confirm {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		return nil
	}
	if cs.next == nil {
		cs.next = &confirm{done: make(chan struct{})}
	}
	if cs.asking == nil {
		cs.asking = make(chan struct{})
		go cs.run(s)
	}
	return cs.next
}

// run asks until nobody wants to know any more.
func (cs *confirms) run(s *Store) {
	for {
		cs.mu.Lock()
		c := cs.next
		cs.next = nil
		if c == nil {
			close(cs.asking)
			cs.asking = nil
			cs.mu.Unlock()
			return
		}
		cs.mu.Unlock()
		c.err = s.confirmLead()
		close(c.done)
	}
}

// confirmLead returns nil if a quorum took this node for the leader after the call
// began. Raft counts the answers to heartbeats that were under way before, too.
func (s *Store) confirmLead() error {
	asked := time.Now()
	for {
		err := s.raft.VerifyLeader().Error()
		if err != nil || s.cluster == nil || !s.cluster.confirmed(time.Now()).Before(asked) {
			return err
		}
	}
}

// close ends the asking, while raft still answers: what it has not answered when it
// shuts down it never will.
func (cs *confirms) close(failed <-chan struct{}) {
	cs.mu.Lock()
	cs.closed = true
	asking := cs.asking
	cs.mu.Unlock()
	if asking == nil {
		return
	}
	select {
	case <-asking:
	case <-failed:
	}
}
