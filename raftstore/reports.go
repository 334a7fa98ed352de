package raftstore

import (
	"context"
	"sync"
	"time"

	"github.com/admitd/admit/admission"
)

// reportEvery is how often reported demand of one tenant and lane is logged.
const reportEvery = time.Second

// reports space out what is logged of reported demand, in the leader's memory
// alone. What is left out says nothing new, or is said by the next.
type reports struct {
	mu    sync.Mutex
	rows  map[reportKey]*report
	swept admission.Instant
}

type reportKey struct{ pool, tenant, lane string }

// report is what was last logged of one tenant and lane.
type report struct {
	at      admission.Instant
	backlog int64
	// next is closed when the report that waits for its turn is overtaken by a
	// newer one; nil if none waits.
	next chan struct{}
}

func newReports() *reports { return &reports{rows: make(map[reportKey]*report)} }

// turn says how long a report is to wait until it is logged. With 0 it counts as
// logged; with Absent it need not be, it says what was said. One that waits is
// overtaken when the channel is closed.
func (rs *reports) turn(key reportKey, op *admission.ReportDemand, at admission.Instant) (time.Duration, chan struct{}) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.row(key, op.Backlog, at)
	if r == nil {
		return 0, nil
	}
	// A report that ends sooner than the next but one is due is said again.
	lasting := op.TTL == 0 || op.TTL >= 2*reportEvery
	if r.next == nil && r.backlog == op.Backlog && lasting {
		return admission.Absent, nil
	}
	if r.next != nil {
		close(r.next)
	}
	r.next = make(chan struct{})
	return r.at.Add(reportEvery).Sub(at), r.next
}

// log counts the report that waited as logged, unless it was overtaken.
func (rs *reports) log(key reportKey, op *admission.ReportDemand, at admission.Instant, turn chan struct{}) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := rs.rows[key]
	if r == nil || r.next != turn {
		return false
	}
	*r = report{at: at, backlog: op.Backlog}
	return true
}

// drop says that the report that waits has gone.
func (rs *reports) drop(key reportKey, turn chan struct{}) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.rows[key]; r != nil && r.next == turn {
		r.next = nil
	}
}

// beside says whether a backlog told with an Acquire is to be logged.
func (rs *reports) beside(key reportKey, backlog int64, at admission.Instant) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.row(key, backlog, at) == nil
}

// row returns what was logged less than reportEvery ago or waits to be. If there
// is none it counts the backlog as logged and returns nil.
func (rs *reports) row(key reportKey, backlog int64, at admission.Instant) *report {
	if at.Sub(rs.swept) >= reportEvery {
		rs.swept = at
		for k, r := range rs.rows {
			if r.next == nil && at.Sub(r.at) >= reportEvery {
				delete(rs.rows, k)
			}
		}
	}
	r := rs.rows[key]
	if r != nil && (r.next != nil || at.Sub(r.at) < reportEvery) {
		return r
	}
	rs.rows[key] = &report{at: at, backlog: backlog}
	return nil
}

// report is Do for one ReportDemand. It is held back until it may be logged, or
// answered from the state if it says nothing new or is overtaken.
func (t *term) report(ctx context.Context, req Request) (Answer, error) {
	op := req.Op.(*admission.ReportDemand)
	at, _ := t.now()
	a, key := t.look(op)
	if a.Result.(*admission.ReportResult).Err != nil {
		return a, nil
	}
	wait, turn := t.reports.turn(key, op, at)
	if wait == admission.Absent {
		return a, nil
	}
	if wait > 0 {
		if err := t.s.pause(ctx, wait, turn); err != nil {
			t.reports.drop(key, turn)
			return Answer{}, err
		}
		if at, _ := t.now(); !t.reports.log(key, op, at, turn) {
			a, _ = t.look(op)
			return a, nil
		}
	}
	answers, err := t.decide(ctx, []Request{req}, make([]Answer, 1))
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// look answers a report from the state, and says whose it is.
func (t *term) look(op *admission.ReportDemand) (a Answer, key reportKey) {
	at, w := t.now()
	t.s.fsm.read(func(st *admission.State) {
		lane, failed := st.LaneOf(op.Pool, op.Tenant, op.Category)
		key = reportKey{op.Pool, op.Tenant, lane}
		a = Answer{Result: &admission.ReportResult{Err: failed}, NextDueIn: admission.Absent, Place: offLog(st)}
		if q := ifKnown(failed, admission.SheddingQuery{Pool: op.Pool, Tenant: op.Tenant}); q.Pool != "" {
			shedding := st.Shedding(at, w, q)
			a.Shedding = &shedding
		}
	})
	return a, key
}

// pause waits until the time is over or early is closed.
func (s *Store) pause(ctx context.Context, d time.Duration, early <-chan struct{}) error {
	timer := s.clk.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-early:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
