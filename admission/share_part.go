package admission

import (
	"cmp"
	"math/bits"
	"slices"
	"time"
)

// nodeWant is what a sidecar holds of a bucket, and would use beside that by its latest
// share of it.
type nodeWant struct {
	node        string
	held, unmet int64
	latest      permitKey
}

func (w *nodeWant) wants() int64 { return w.held + w.unmet }

// partOf returns how many tokens of the bucket the node that asks for so many may hold
// more: of what is left of share.max, its max-min fair part of that, no more than its
// part of the fleet.
func (s *State) partOf(n Node, asked int64, b *sharedBucket) int64 {
	most := b.spec.shared.Max
	own, others := s.wantsOf(n.ID, b)
	own.unmet = asked
	level := min(fairLevel(append(others, own), most), n.ceiling(most))
	return min(most-b.state.lent, level-own.held)
}

// wantsOf returns what the node and what the others hold and want of the bucket.
func (s *State) wantsOf(node string, b *sharedBucket) (own nodeWant, others []nodeWant) {
	own.node = node
	if b.shares == nil {
		return own, nil
	}
	at := map[string]int{}
	b.shares.Scan(func(e expiry) bool {
		p := s.permit(e.permit)
		if !b.spec.lends(p) {
			return true
		}
		w := &own
		if p.worker != node {
			i, known := at[p.worker]
			if !known {
				i = len(others)
				at[p.worker], others = i, append(others, nodeWant{node: p.worker})
			}
			w = &others[i]
		}
		w.held += p.cost
		if w.latest.less(e.permit) {
			w.latest, w.unmet = e.permit, p.wanted-p.cost
		}
		return true
	})
	return own, others
}

// fairLevel returns the least level to which all can be served without more than most
// being asked for in vain: who wants less has what it wants, and the others have as much
// as each other, but for what does not divide.
func fairLevel(wants []nodeWant, most int64) int64 {
	slices.SortFunc(wants, func(a, b nodeWant) int { return cmp.Compare(a.wants(), b.wants()) })
	left := most
	for i := range wants {
		others := int64(len(wants) - i)
		if level := (left + others - 1) / others; wants[i].wants() >= level {
			return level
		}
		left -= wants[i].wants()
	}
	return most
}

// ceiling returns the node's part of so many, rounded up.
func (n Node) ceiling(most int64) int64 {
	if n.Total <= 0 {
		return most
	}
	owned := min(max(n.Owned, 0), n.Total)
	hi, lo := bits.Mul64(uint64(most), uint64(owned))
	part, rest := bits.Div64(hi, lo, uint64(n.Total)) // at most most, so it fits
	if rest > 0 {
		part++
	}
	return int64(part)
}

// slower says whether n tokens in each period are fewer than m in each of another.
func slower(n int64, period time.Duration, m int64, other time.Duration) bool {
	hi, lo := bits.Mul64(uint64(n), uint64(other))
	hi2, lo2 := bits.Mul64(uint64(m), uint64(period))
	return hi < hi2 || hi == hi2 && lo < lo2
}
