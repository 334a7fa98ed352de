package raftstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/admitd/admit/admission"
)

// pollsQueue names the parked polls in errors and metrics.
const pollsQueue = "polls"

// polls are the NextDue calls that wait for work, in the leader's memory alone.
//
// Calls that want the same, the same lanes of the same pool within the same
// limits, form a group and are served first come first served. Only those at the head are let go, and
// only if the core says that they would be served: as many as the group's
// window. It grows by one with each call that comes back full and leaves more to
// be had, and is one again when there is no more. So a release wakes one call,
// and a burst of due work twice as many with each entry.
type polls struct {
	t     *term
	limit int
	// look tells the watcher that something may have come.
	look chan struct{}

	mu     sync.Mutex
	closed error
	groups map[string]*pollGroup
	// all has all groups, pools those of each pool.
	all    turns
	pools  map[string]*turns
	parked int
}

// parkedPoll is one NextDue.
type parkedPoll struct {
	ctx   context.Context
	req   Request
	op    *admission.NextDue // that of req
	group *pollGroup
	// park says whether it waits for work, and not only for its turn.
	park bool
	// turn is closed when the poll no longer waits: it is let go, and call is on
	// its way through the log; or it is sent home, with err if not for lack of
	// work.
	turn chan struct{}
	call *call
	err  error
	// gone is set, under polls.mu, when turn was closed.
	gone bool
	// attached says that it was let go on a chance, empty how often it came back
	// with nothing otherwise.
	attached bool
	empty    int
}

const (
	// maxWindow bounds how many polls of a group are in the log at once.
	maxWindow = 64
	// lookAtOnce bounds the groups that are looked at while no entry is applied.
	lookAtOnce = 256
	// wallLook is how often to look at due times, which a step of the wall clock
	// may have brought nearer.
	wallLook = time.Second
)

func newPolls(t *term) *polls {
	return &polls{
		t: t, limit: t.s.cfg.ParkedPolls, look: make(chan struct{}, 1),
		groups: make(map[string]*pollGroup), pools: make(map[string]*turns),
	}
}

// enter takes a poll in. It is let go at once if it would be served and nobody
// waits before it. If it would not be served and may not park, it is nil.
func (ps *polls) enter(ctx context.Context, req Request, park bool) (*parkedPoll, error) {
	op := req.Op.(*admission.NextDue)
	key := groupKey(op)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed != nil {
		return nil, ps.closed
	}
	g := ps.group(key, op.Pool)
	p := &parkedPoll{ctx: ctx, req: req, op: op, group: g, park: park, turn: make(chan struct{})}
	delay, ok := ps.delay(op)
	now := ok && delay == 0
	switch {
	case ps.remembered(op), now && len(g.waiting) == 0 && g.out < g.window:
		ps.letGo(p)
		ps.dropIfEmpty(g)
		return p, nil
	case !now && !park:
		ps.dropIfEmpty(g)
		return nil, nil
	case ps.parked >= ps.limit:
		ps.dropIfEmpty(g)
		return nil, &OverloadedError{Queue: pollsQueue, RetryAfter: time.Second}
	}
	g.waiting = append(g.waiting, p)
	ps.count(g, p, 1)
	notify(ps.look)
	return p, nil
}

// remembered says whether a poll is a retry: it gets the claims that it had and
// takes nobody's turn.
func (ps *polls) remembered(op *admission.NextDue) (yes bool) {
	ps.t.s.fsm.read(func(st *admission.State) { yes = st.Remembers(op) })
	return yes
}

// leave is for a poll that stops waiting. It returns false if the poll waits no
// longer anyhow.
func (ps *polls) leave(p *parkedPoll) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.gone {
		return false
	}
	g := p.group
	if i := slices.Index(g.waiting, p); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		ps.count(g, p, -1)
	}
	ps.dropIfEmpty(g)
	return true
}

// back is for a poll that was let go and has its answer, or never will. With
// again it takes its place at the head once more.
func (ps *polls) back(p *parkedPoll, full, again bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	g := p.group
	g.out--
	if delay, ok := ps.delay(p.op); full && ok && delay == 0 {
		g.window = min(maxWindow, g.window+1)
	} else {
		g.window = 1
	}
	if again && ps.closed == nil {
		p.gone, p.attached, p.call, p.turn = false, false, nil, make(chan struct{})
		g.waiting = slices.Insert(g.waiting, 0, p)
		ps.count(g, p, 1)
	}
	ps.dropIfEmpty(g)
	notify(ps.look)
}

// watch lets polls go when there is work for them, until quit is closed.
func (ps *polls) watch(quit <-chan struct{}) {
	timer := ps.t.s.clk.NewTimer(never)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			return
		case <-ps.look:
		case <-timer.C():
		}
		timer.Reset(ps.letAllGo())
	}
}

// letAllGo lets go whoever would be served, and returns when to look again.
func (ps *polls) letAllGo() time.Duration {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	next := never
	at, w := ps.t.now()
	var served []*pollGroup
	for left := ps.all.Len(); left > 0; left -= lookAtOnce {
		ps.t.s.fsm.read(func(st *admission.State) { // which holds up the entry that comes next
			for g := range ps.all.next(min(left, lookAtOnce)) {
				if len(g.waiting) == 0 || g.out >= g.window {
					continue // one that is out looks again when it is back
				}
				delay, ok := st.PollDelay(at, w, g.waiting[0].op)
				if ok && delay == 0 {
					served = append(served, g)
					continue
				}
				if ok {
					next = min(next, delay, wallLook)
				}
				ps.sendHome(g, func(p *parkedPoll) bool { return !p.park }, nil)
			}
		})
	}
	for _, g := range served {
		ps.letGoFirst(g, g.window-g.out)
	}
	return next
}

// letGoFirst lets the first n go.
func (ps *polls) letGoFirst(g *pollGroup, n int) {
	n = min(len(g.waiting), n)
	for _, p := range g.waiting[:n] {
		ps.count(g, p, -1)
		ps.letGo(p)
	}
	g.waiting = slices.Delete(g.waiting, 0, n)
	ps.dropIfEmpty(g)
}

// letGo proposes a poll. It does so itself, not the caller that waits, to keep
// their order.
func (ps *polls) letGo(p *parkedPoll) {
	c, err := newCall(p.ctx, []Request{p.req}, make([]Answer, 1))
	if err == nil {
		err = ps.t.submit(c)
	}
	if err != nil {
		p.sendHome(err)
		return
	}
	p.group.out++
	p.gone, p.call = true, c
	close(p.turn)
}

func (p *parkedPoll) sendHome(why error) {
	p.gone, p.err = true, why
	close(p.turn)
}

// sendHome ends the wait of those polls of a group.
func (ps *polls) sendHome(g *pollGroup, which func(*parkedPoll) bool, why error) {
	if why == nil && g.hasty == 0 {
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(p *parkedPoll) bool {
		if !which(p) {
			return false
		}
		ps.count(g, p, -1)
		p.sendHome(why)
		return true
	})
	ps.dropIfEmpty(g)
}

// close sends everybody home.
func (ps *polls) close(why error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = why
	for _, g := range ps.groups {
		ps.sendHome(g, func(*parkedPoll) bool { return true }, why)
	}
}

func (ps *polls) delay(op *admission.NextDue) (wait time.Duration, ok bool) {
	at, w := ps.t.now()
	ps.t.s.fsm.read(func(st *admission.State) { wait, ok = st.PollDelay(at, w, op) })
	return wait, ok
}

// count notes that p joins or leaves those waiting.
func (ps *polls) count(g *pollGroup, p *parkedPoll, n int) {
	ps.parked += n
	if !p.park {
		g.hasty += n
	}
	ps.t.s.metrics.parked.Set(float64(ps.parked))
}
