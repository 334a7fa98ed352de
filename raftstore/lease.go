package raftstore

import (
	"slices"
	"time"
)

// leaseHolds says whether most voters were heard of within an election timeout
// before now: until then nobody else can have been elected. Raft gives the lead up by
// itself when they were not; but a process that was stopped for a while, and goes
// on, may answer from what it knows before raft has noticed.
func (m *membership) leaseHolds(now time.Time) bool {
	if until := m.lease.Load(); until != nil && now.Before(*until) {
		return true
	}
	var heard []time.Time
	for _, v := range m.s.voters() {
		at, ago, known := time.Now(), time.Duration(0), true
		if string(v.ID) != m.s.nodeID {
			_, ago, known = m.port.Book().Find(string(v.ID))
		}
		if known {
			heard = append(heard, at.Add(-ago))
		} else {
			heard = append(heard, time.Time{})
		}
	}
	if len(heard) == 0 {
		return false
	}
	slices.SortFunc(heard, func(a, b time.Time) int { return b.Compare(a) })
	until := heard[len(heard)/2].Add(m.cfg.ElectionTimeout) // a quorum's most recent ones
	m.lease.Store(&until)
	return now.Before(until)
}
