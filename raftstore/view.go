package raftstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

// View runs fn on the applied state, which stays as it is meanwhile, with the
// leader's present time, or on a node that does not lead with that of the last
// entry. fn must neither block nor keep the state.
func (s *Store) View(fn func(st *admission.State, at admission.Instant, w admission.Wall)) {
	s.ViewAt(ReadPoint{}, fn)
}

// ViewAt is View at a point that this node has reached: where it does not lead, the
// time is that of the point.
func (s *Store) ViewAt(p ReadPoint, fn func(st *admission.State, at admission.Instant, w admission.Wall)) {
	t := s.term.Load()
	s.fsm.read(func(st *admission.State) {
		at, w := s.present(st, t, p)
		fn(st, at, w)
	})
}

// present returns the time at which to look at the state: the leader's own, or that
// of the point, or if that is older or none the last entry's.
func (s *Store) present(st *admission.State, t *term, p ReadPoint) (admission.Instant, admission.Wall) {
	if t != nil {
		return t.now()
	}
	if at, w := st.Now(); p.T < at {
		return at, w
	}
	return p.T, p.W
}

// Image returns a picture of the applied state that nothing changes any more,
// for reads that take long.
func (s *Store) Image() *admission.Image { return s.fsm.image() }

// Ready says whether this node can say something: it leads, has opened its term and
// applied all that was committed before; or it knows who leads, and has applied what
// that one had committed when they first met.
func (s *Store) Ready() bool {
	if s.term.Load() != nil {
		return true
	}
	return s.cluster != nil && s.cluster.met.Load() && s.Err() == nil && s.Leader().NodeID != ""
}

// ReadyChanged returns a channel that is closed when Ready or Leader next changes.
// Ask for it before them.
func (s *Store) ReadyChanged() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// leading returns the term, or why there is none here.
func (s *Store) leading() (*term, error) {
	t := s.term.Load()
	switch {
	case t == nil:
		return nil, s.unavailable()
	case s.cluster != nil && !s.cluster.leaseHolds(time.Now()):
		return nil, fmt.Errorf("%w: this node has not heard of most voters for a while", ErrNoQuorum)
	}
	return t, nil
}

// unavailable returns why this node decides nothing.
func (s *Store) unavailable() error {
	if s.isClosing() {
		return ErrShuttingDown
	}
	if err := s.Err(); err != nil {
		return errors.Join(ErrNoQuorum, err)
	}
	if l := s.Leader(); l.NodeID != "" && l.NodeID != s.nodeID {
		return &NotLeaderError{LeaderAddr: l.GRPCAddr, LeaderID: l.NodeID}
	}
	return ErrNoQuorum
}

// countRefusal counts err if it says that a queue is full, and returns it.
func (s *Store) countRefusal(err error) error {
	if full := (*OverloadedError)(nil); errors.As(err, &full) {
		s.metrics.refused.WithLabelValues(full.Queue).Inc()
	}
	return err
}

// Picture returns who is held back in a pool at this moment, or at a point that this
// node has reached, to be read for as long as it takes: nothing changes it. It is
// made in no time, however many are held.
func (s *Store) Picture(point ReadPoint, pool string) (*admission.Picture, error) {
	t := s.term.Load()
	s.fsm.mu.Lock() // as for a snapshot
	defer s.fsm.mu.Unlock()
	at, w := s.present(s.fsm.st, t, point)
	p, err := s.fsm.st.Picture(at, w, pool)
	if err != nil {
		return nil, err
	}
	return p, nil
}
