package server

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// The limits that the proto states.
const (
	maxDebugged      = 16
	maxDebugTime     = time.Hour
	defaultDebugTime = 5 * time.Minute
	// maxDebugLines is for one second, all pools together.
	maxDebugLines = 100
)

// debugger logs what is decided here about some pools, each for a while. What is not
// logged costs one look at a pointer.
type debugger struct {
	log    *slog.Logger
	nodeID string
	// pools are those that are logged, nil for none; a map is not changed once it is here.
	pools atomic.Pointer[map[string]*debugged]

	mu     sync.Mutex
	closed bool
	// second is when the last second of lines began, lines how many it has, and left how
	// many were left out since that was last told.
	second      time.Time
	lines, left int
}

// debugged is a pool that is logged until its timer ends that.
type debugged struct{ timer *time.Timer }

// watch has a pool logged for so long from now on; 0 ends it.
func (d *debugger) watch(ctx context.Context, pool string, span time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.copyLocked()
	switch old := now[pool]; {
	case d.closed:
		return raftstore.ErrShuttingDown
	case span == 0:
		d.endLocked("it was ended", pool)
		return nil
	case old != nil:
		old.timer.Stop()
	case len(now) >= maxDebugged:
		return tooManyDebugged(pool)
	}
	w := &debugged{}
	w.timer = time.AfterFunc(span, func() { d.expire(pool, w) })
	now[pool] = w
	d.pools.Store(&now)
	d.log.InfoContext(ctx, "logging what is decided about a pool", "pool", pool, "duration", span, "caller", identityOf(ctx).Name)
	return nil
}

func tooManyDebugged(pool string) error {
	n := strconv.Itoa(maxDebugged)
	return &admission.Error{
		Reason: admission.LimitReached, Message: "the decisions about " + n + " other pools are being logged",
		Meta: []string{"pool", pool, "limit", "debugged_pools", "capacity", n},
	}
}

// expire ends the logging of a pool whose time is up, unless it was begun anew.
func (d *debugger) expire(pool string, w *debugged) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.copyLocked()[pool] == w {
		d.endLocked("its time is up", pool)
	}
}

// endAll ends the logging of all pools.
func (d *debugger) endAll(why string) {
	if d.pools.Load() == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for pool := range d.copyLocked() {
		d.endLocked(why, pool)
	}
}

// close is endAll, for good.
func (d *debugger) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.endAll("the node stops")
}

func (d *debugger) endLocked(why, pool string) {
	now := d.copyLocked()
	w := now[pool]
	if w == nil {
		return
	}
	w.timer.Stop()
	if delete(now, pool); len(now) > 0 {
		d.pools.Store(&now)
	} else {
		d.pools.Store(nil)
	}
	d.tellLeftLocked()
	d.log.Info("no longer logging what is decided about a pool", "pool", pool, "reason", why)
}

// copyLocked returns the pools that are logged, to be changed.
func (d *debugger) copyLocked() map[string]*debugged {
	now := make(map[string]*debugged)
	if p := d.pools.Load(); p != nil {
		maps.Copy(now, *p)
	}
	return now
}

func (d *debugger) tellLeftLocked() {
	if d.left > 0 {
		d.log.Info("decisions were not logged: there were too many", "left_out", d.left)
	}
	d.left = 0
}

// room says whether one more line may be written now.
func (d *debugger) room() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.second) >= time.Second {
		d.tellLeftLocked()
		d.second, d.lines = now, 0
	}
	if d.lines >= maxDebugLines {
		d.left++
		return false
	}
	d.lines++
	return true
}

// decided logs what became of requests, where that is about a pool that is logged.
func (d *debugger) decided(ctx context.Context, reqs []raftstore.Request, answers []raftstore.Answer, err error) {
	pools := d.pools.Load()
	if pools == nil {
		return
	}
	for i, req := range reqs {
		var a raftstore.Answer
		if err == nil {
			a = answers[i]
		}
		op := describe(req.Op, a.Result)
		if (*pools)[op.pool] == nil || elsewhere(err) || !d.room() {
			continue
		}
		d.log.LogAttrs(ctx, slog.LevelInfo, "decided", op.line(req, a, err)...)
	}
}

// elsewhere says that it is another node's to decide.
func elsewhere(err error) bool {
	var leader *raftstore.NotLeaderError
	return errors.As(err, &leader)
}

// debuggedStore logs what a store decides where that is wanted.
type debuggedStore struct {
	Store
	debug *debugger
}

// Do implements Decider.
func (s debuggedStore) Do(ctx context.Context, reqs ...raftstore.Request) ([]raftstore.Answer, error) {
	answers, err := s.Store.Do(ctx, reqs...)
	s.debug.decided(ctx, reqs, answers, err)
	return answers, err
}

// NextDue implements Decider.
func (s debuggedStore) NextDue(ctx context.Context, req raftstore.Request, maxWait time.Duration) (raftstore.Answer, error) {
	a, err := s.Store.NextDue(ctx, req, maxWait)
	if s.debug.pools.Load() != nil {
		s.debug.decided(ctx, []raftstore.Request{req}, []raftstore.Answer{a}, err)
	}
	return a, err
}
