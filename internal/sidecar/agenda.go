package sidecar

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"
)

// agenda has what is to be looked at in the order of a time of its own. The lock of who
// has it guards it.
type agenda[T comparable] struct {
	tree *btree.BTreeG[T]
	// at is the time of one, zero where it is not in the tree.
	at func(T) *time.Time
	// wake gets a token when there is something earlier than before.
	wake chan struct{}
}

// newAgenda returns an empty one. compare tells apart what has the same time.
func newAgenda[T comparable](at func(T) *time.Time, compare func(a, b T) int) agenda[T] {
	less := func(a, b T) bool { return cmp.Or(at(a).Compare(*at(b)), compare(a, b)) < 0 }
	return agenda[T]{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}), at: at, wake: make(chan struct{}, 1)}
}

// set puts one at a time; zero takes it out.
func (a *agenda[T]) set(one T, at time.Time) {
	if !a.at(one).IsZero() {
		a.tree.Delete(one)
	}
	*a.at(one) = at
	if at.IsZero() {
		return
	}
	a.tree.Set(one)
	if first, _ := a.tree.Min(); first == one {
		a.nudge()
	}
}

// nudge has whoever waits for it look again.
func (a *agenda[T]) nudge() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func compareHolds(a, b *hold) int { return cmp.Compare(a.id, b.id) }

// holdsDue takes out those holds whose time has come, most at a time, and those of them in the
// order after that would follow within a tenth of their time to live, where ahead says so.
// wait is the time until the next if there are none.
func holdsDue(a *agenda[*hold], now time.Time, most int, ahead bool) (batch []*hold, wait time.Duration) {
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
