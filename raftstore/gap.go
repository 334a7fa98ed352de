package raftstore

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
	"github.com/admitd/admit/raftstore/peer"
)

// heard is when a node last got an entry with a time in it, from another or from
// itself: that time was the present a moment before. The zero value is of one that
// has got none since it started.
type heard struct{ at atomic.Pointer[clock.Reading] }

func (h *heard) note(now clock.Reading) { h.at.Store(&now) }

// gap is how long nobody led, as far as this node can tell without ever being too
// long: its own time since it last got an entry. That may be one that never was
// committed, and then is later than the last one that was.
//
// A node that has got none since it started has only the wall clock to tell how
// long that was, and wall clocks may be wrong. So a quorum is asked, and the slowest
// of them believed; a lone voter is its own quorum. Where no quorum answers, no time
// has passed.
func (s *Store) gap() time.Duration {
	if at := s.heard.at.Load(); at != nil {
		return s.clk.Now().Since(*at)
	}
	var last admission.Wall
	s.fsm.read(func(st *admission.State) { _, last = st.Now() })
	if last == 0 {
		return 0 // a new cluster: time begins here
	}
	walls := s.walls()
	if len(walls) <= len(s.voters())/2 {
		s.log.Warn("too few members tell the time: none is taken to have passed", "asked", len(s.voters()), "told", len(walls))
		return 0
	}
	return max(0, slices.Min(walls).Sub(last))
}

// walls returns the wall clocks of the voters that answer.
func (s *Store) walls() []admission.Wall {
	walls := []admission.Wall{wall(s.clk.Now())}
	if s.cluster == nil {
		return walls
	}
	var others []place
	for _, v := range s.voters() {
		if string(v.ID) != s.nodeID {
			others = append(others, place{string(v.ID), peer.AddrOf(v.Address)})
		}
	}
	for _, in := range s.cluster.ask(s.cluster.ctx, others) {
		walls = append(walls, admission.Wall(in.Wall))
	}
	return walls
}
