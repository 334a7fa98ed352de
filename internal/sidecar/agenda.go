package sidecar

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"
)

// agenda has holds in the order of a time of theirs. The table's lock guards it.
type agenda struct {
	tree *btree.BTreeG[*hold]
	// at is the time of a hold, zero where it is not in the tree.
	at func(*hold) *time.Time
	// wake gets a token when there is something earlier than before.
	wake chan struct{}
}

func newAgenda(at func(*hold) *time.Time) agenda {
	less := func(a, b *hold) bool {
		return cmp.Or(at(a).Compare(*at(b)), cmp.Compare(a.id, b.id)) < 0
	}
	return agenda{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), at: at, wake: make(chan struct{}, 1)}
}

// set puts a hold at a time; zero takes it out.
func (a *agenda) set(h *hold, at time.Time) {
	if !a.at(h).IsZero() {
		a.tree.Delete(h)
	}
	*a.at(h) = at
	if at.IsZero() {
		return
	}
	a.tree.Set(h)
	if first, _ := a.tree.Min(); first == h {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// due takes out those whose time has come, most at a time, and those of them in the
// order after that would follow within a tenth of their time to live, where ahead says so.
// wait is the time until the next if there are none.
func (a *agenda) due(now time.Time, most int, ahead bool) (batch []*hold, wait time.Duration) {
	wait = time.Hour
	a.tree.Scan(func(h *hold) bool {
		left := a.at(h).Sub(now)
		if left > 0 && (!ahead || len(batch) == 0 || left > h.ttl/10) {
			wait = min(wait, left)
			return false
		}
		batch = append(batch, h)
		return len(batch) < most
	})
	for _, h := range batch {
		a.set(h, time.Time{})
	}
	return batch, wait
}
