package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore/peer"
)

// checkEvery is how often, in cluster time, the leader tells what its results come
// to, with whatever entry comes next.
const checkEvery = 10 * time.Second

var errDiverged = errors.New("this node has decided otherwise than most of the cluster: it must be removed and " +
	"join anew, with an empty data directory")

// nextCheck returns what an entry at a time is to tell, or zero.
func (t *term) nextCheck(at admission.Instant) (c check) {
	if t.s.cluster == nil || at.Sub(t.checked) < checkEvery {
		return check{}
	}
	t.checked = at
	t.s.fsm.read(func(*admission.State) { c = t.s.fsm.digests.last })
	return c
}

// compare is called by the fsm with a digest of the leader's and this node's own. A
// node that follows has nothing to do where they are equal. One that leads has the
// others' to look at: it may be the one that is wrong.
func (s *Store) compare(theirs check, own uint64) {
	if s.cluster == nil || own == theirs.digest && s.ending.Load() == nil {
		return
	}
	select {
	case s.cluster.comparing <- struct{}{}:
	default:
		return // the last time takes long; there will be another
	}
	s.waiters.Go(func() {
		defer func() { <-s.cluster.comparing }()
		if err := s.cluster.sideWithMost(check{theirs.index, own}, theirs.digest); err != nil {
			s.fail(err)
		}
	})
}

// sideWithMost asks the voters for their digests until most are known to agree, and
// returns an error if it is not with this node. Where all have told theirs and nobody
// has most behind him, the leader is right; where some have not in time, nobody is,
// and the next check tells.
func (m *membership) sideWithMost(own check, leaders uint64) error {
	ctx, cancel := context.WithTimeout(m.ctx, transportTimeouts*m.cfg.ElectionTimeout)
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		votes, all := m.digestsAt(ctx, own)
		told := 0
		for digest, n := range votes {
			if n > all/2 {
				return m.judge(own, digest, votes)
			}
			told += n
		}
		if told == all {
			return m.judge(own, leaders, votes)
		}
		timer.Reset(m.cfg.ElectionTimeout / 5)
	}
}

// judge returns an error if this node's digest is not the one that is right.
func (m *membership) judge(own check, right uint64, votes map[uint64]int) error {
	if own.digest == right || m.ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%w: after entry %d its results come to %016x, and others' to %016x (voters by digest: %v)",
		errDiverged, own.index, own.digest, right, votes)
}

// digestsAt asks the voters, all at once and for an election timeout at most, and
// returns how many have which digest, and how many voters there are.
func (m *membership) digestsAt(ctx context.Context, own check) (votes map[uint64]int, all int) {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.ElectionTimeout)
	defer cancel()
	voters := m.s.voters()
	told := make([]*uint64, len(voters))
	var asking sync.WaitGroup
	for i, v := range voters {
		if string(v.ID) == m.s.nodeID {
			told[i] = &own.digest
			continue
		}
		asking.Go(func() {
			r, err := m.port.CallMember(ctx, string(v.ID), peer.AddrOf(v.Address), peer.Request{DigestAt: own.index})
			if err == nil {
				told[i] = r.Digest
			}
		})
	}
	asking.Wait()
	votes = make(map[uint64]int)
	for _, digest := range told {
		if digest != nil {
			votes[*digest]++
		}
	}
	return votes, len(voters)
}
