package raftstore

import (
	"container/list"
	"fmt"
	"iter"

	"github.com/admitd/admit/admission"
)

// pollGroup are the polls that want the same.
type pollGroup struct {
	key, pool string
	waiting   []*parkedPoll
	// hasty are those waiting that do not park.
	hasty int
	// out are the polls that were let go and have not come back.
	out    int
	window int
	// inAll and inPool are its places in polls.all and in that of its pool.
	inAll, inPool *list.Element
}

// turns are groups that are looked at in turn, so that a look at a few comes to all.
type turns struct{ list.List }

// next yields up to n groups, each once. The caller may drop the one that it is shown.
func (t *turns) next(n int) iter.Seq[*pollGroup] {
	return func(yield func(*pollGroup) bool) {
		for range min(n, t.Len()) {
			e := t.Front()
			t.MoveToBack(e)
			if !yield(e.Value.(*pollGroup)) {
				return
			}
		}
	}
}

// groupKey is the same for polls that want the same.
func groupKey(op *admission.NextDue) string {
	return fmt.Sprintf("%q %q %q %v %q %t", op.Pool, op.Lanes, op.Tenant, op.LaneLimits, op.Node.ID, op.Batch)
}

// group returns the group with a key, of a pool.
func (ps *polls) group(key, pool string) *pollGroup {
	g := ps.groups[key]
	if g != nil {
		return g
	}
	if ps.pools[pool] == nil {
		ps.pools[pool] = &turns{}
	}
	g = &pollGroup{key: key, pool: pool, window: 1}
	ps.groups[key] = g
	g.inAll, g.inPool = ps.all.PushBack(g), ps.pools[pool].PushBack(g)
	return g
}

func (ps *polls) dropIfEmpty(g *pollGroup) {
	if len(g.waiting) > 0 || g.out > 0 || ps.groups[g.key] != g {
		return
	}
	delete(ps.groups, g.key)
	ps.all.Remove(g.inAll)
	of := ps.pools[g.pool]
	if of.Remove(g.inPool); of.Len() == 0 {
		delete(ps.pools, g.pool)
	}
}
