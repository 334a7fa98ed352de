package raftstore

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// leaseHolds says whether most voters took this node for the leader within an
// election timeout before now: until then nobody else can have been elected. Raft
// gives the lead up by itself when they did not; but a process that was stopped for
// a while, and goes on, may answer from what it knows before raft has noticed.
func (m *membership) leaseHolds(now time.Time) bool {
	if until := m.lease.Load(); until != nil && now.Before(*until) {
		return true
	}
	until := m.confirmed(now).Add(m.cfg.ElectionTimeout)
	m.lease.Store(&until)
	return now.Before(until)
}

// confirmed returns the last moment after which a quorum, as far as this node knows
// now, still took it for the leader; zero if none ever has.
func (m *membership) confirmed(now time.Time) time.Time {
	var by []time.Time
	for _, v := range m.s.voters() {
		if string(v.ID) == m.s.nodeID {
			by = append(by, now)
		} else {
			by = append(by, m.port.Book().Confirmed(string(v.ID)))
		}
	}
	if len(by) == 0 {
		return time.Time{}
	}
	slices.SortFunc(by, func(a, b time.Time) int { return b.Compare(a) })
	return by[len(by)/2] // the last of a quorum's
}

// lead is a lead that has ended.
type lead struct {
	// confirmed is when a quorum last took this node for the leader, ended when raft
	// had given the lead up.
	confirmed, ended time.Time
}

// noteLost notes that raft has given the lead up.
func (s *Store) noteLost() {
	if now := time.Now(); s.cluster != nil {
		s.cluster.led.Store(&lead{confirmed: s.cluster.confirmed(now), ended: now})
	}
}

// Age returns how long ago this node last knew how far the cluster is: 0 while it
// leads for certain, and admission.Absent where it never has.
func (s *Store) Age() time.Duration {
	r, leads := s.running(), s.term.Load() != nil
	if leads && s.cluster == nil {
		return 0
	}
	if r == nil {
		return admission.Absent
	}
	now := time.Now() // raft and the lease read the system's clock
	last := r.LastContact()
	switch {
	case s.cluster == nil:
	case leads && s.cluster.leaseHolds(now):
		return 0
	case leads:
		last = s.cluster.confirmed(now)
	default:
		// That it has lost the lead raft takes for a contact.
		if led := s.cluster.led.Load(); led != nil && !last.After(led.ended) {
			last = led.confirmed
		}
	}
	if last.IsZero() {
		return admission.Absent
	}
	return max(0, now.Sub(last))
}
