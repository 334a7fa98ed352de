package raftstore

import (
	"context"
	"sync"

	"github.com/admitd/admit/admission"
)

// lead follows raft's word on who leads: it opens a term when this node is
// elected and ends it when it no longer leads, until the store closes.
func (s *Store) lead(leading <-chan bool) {
	end := func() {}
	defer func() { end() }()
	failed := s.failed
	for {
		select {
		case <-s.closing:
			return
		case <-failed:
			failed = nil
			end()
			end = func() {}
		case leads := <-leading:
			if !leads {
				s.noteLost()
			}
			// Two times true in a row are a loss that went by unseen, and a gain.
			end()
			end = func() {}
			if leads {
				end = s.begin()
			}
		}
	}
}

// begin opens a term, if it can, and returns how to end it.
func (s *Store) begin() (end func()) {
	t, err := s.openTermSoon()
	if err != nil {
		// Raft has lost the lead again, and says so next.
		s.log.Info("failed to open a term", "error", err)
		return func() {}
	}
	quit := make(chan struct{})
	var running sync.WaitGroup
	s.ending.Store(t)
	running.Go(func() { t.run(quit) })
	running.Go(func() { t.polls.watch(quit) })
	tending, leaveMembers := context.WithCancel(context.Background())
	if s.cluster != nil {
		running.Go(func() { s.cluster.promote(tending) })
	}
	s.setTerm(t)
	s.log.Info("became the leader", "node_id", s.nodeID, "term", s.raft.CurrentTerm())
	return func() {
		s.setTerm(nil)
		close(quit)
		leaveMembers()
		running.Wait()
		s.ending.Store(nil)
		s.log.Info("no longer leads", "node_id", s.nodeID)
	}
}

// setTerm makes the node ready, or with nil not ready.
func (s *Store) setTerm(t *term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.setTermLocked(t)
	}
}

func (s *Store) setTermLocked(t *term) {
	s.term.Store(t)
	s.metrics.leader.Set(0)
	if t != nil {
		s.metrics.leader.Set(1)
	}
	s.noteChangeLocked()
}

// noteChange tells who waits that this node, or another, leads now or no longer.
func (s *Store) noteChange() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteChangeLocked()
}

func (s *Store) noteChangeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// applied is called by the fsm after each entry.
func (s *Store) applied(e admission.Entry, id uint64, results []admission.Result) {
	if t := s.ending.Load(); t != nil {
		t.applied(e, id, results)
	}
}

// applied answers the callers of an entry of this term, and those whose waits it
// ended, and lets parked polls know.
func (t *term) applied(e admission.Entry, id uint64, results []admission.Result) {
	p := t.take(id)
	if p != nil {
		took := t.s.clk.Now().Since(p.sealed)
		t.s.metrics.commitSeconds.Observe(took.Seconds())
		t.queue.took(took)
		p.endSpans(e.Index, nil)
	}
	t.s.fsm.read(func(st *admission.State) {
		clear(t.sheds)
		if p != nil {
			t.answer(st, p, e, results)
		}
		t.endWaits(st, e)
	})
	notify(t.polls.look)
}
