package server

import (
	"context"
	"sync"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// fakeStore decides on a real state in memory, one log entry for each call. Its
// clock stands still unless a test moves it.
type fakeStore struct {
	fakeMembers

	mu      sync.Mutex
	state   *admission.State
	index   uint64
	at      admission.Instant
	wall    admission.Wall
	ready   bool
	changed chan struct{}
	// fail is what every call answers, if set.
	fail error
	// leader is who leads instead.
	leader raftstore.Leader
	// reached are the points that reads waited for.
	reached []raftstore.ReadPoint
	// age is that of stale reads.
	age time.Duration
	// answer replaces the state's answers, if set.
	answer func(raftstore.Request) raftstore.Answer
	// park makes calls wait for their context, as an idle poll does; it is closed
	// when one waits, and parted, if set, when it waits no more.
	park, parted chan struct{}
	// hold keeps the submissions it says in line, longest is how long that ever was.
	hold    func(admission.Op) bool
	line    []*raftstore.Submission
	longest int
	// seen are the requests that arrived.
	seen []raftstore.Request
	// waits are the max_wait of the polls that arrived.
	waits []time.Duration
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		state:   admission.New(),
		wall:    admission.Wall(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()),
		ready:   true,
		changed: make(chan struct{}),
	}
}

func (f *fakeStore) Do(ctx context.Context, reqs ...raftstore.Request) ([]raftstore.Answer, error) {
	if f.park != nil {
		return nil, f.wait(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, reqs...)
	if f.fail != nil {
		return nil, f.fail
	}
	answers := make([]raftstore.Answer, len(reqs))
	for i, r := range reqs {
		if f.answer != nil {
			answers[i] = f.answer(r)
			continue
		}
		answers[i] = f.apply(r)
	}
	return answers, nil
}

func (f *fakeStore) wait(ctx context.Context) error {
	close(f.park)
	<-ctx.Done()
	if f.parted != nil {
		close(f.parted)
	}
	return ctx.Err()
}

func (f *fakeStore) apply(r raftstore.Request) raftstore.Answer {
	f.index++
	results := f.state.Apply(admission.Entry{Index: f.index, T: f.at, W: f.wall, Ops: []admission.Op{r.Op}})
	a := raftstore.Answer{Result: results[0], Place: raftstore.Place{Index: f.index}, NextDueIn: admission.Absent}
	q := admission.SheddingQuery{HeldRows: r.HeldRows}
	switch op := r.Op.(type) {
	case *admission.Acquire:
		q.Pool, q.Tenant = op.Pool, op.Tenant
	case *admission.NextDue:
		q.Pool, q.Call = op.Pool, results[0].(*admission.NextDueResult)
		a.NextDueIn = f.state.NextDueIn(op.Pool, f.wall)
	case *admission.Take:
		a.Levels = f.state.TakeLevels(f.at, op)
		return a
	default:
		return a
	}
	if len(f.state.Health(f.at, f.wall, q.Pool)) > 0 {
		s := f.state.Shedding(f.at, f.wall, q)
		a.Shedding = &s
	}
	return a
}

func (f *fakeStore) NextDue(ctx context.Context, req raftstore.Request, maxWait time.Duration) (raftstore.Answer, error) {
	f.mu.Lock()
	f.waits = append(f.waits, maxWait)
	f.mu.Unlock()
	answers, err := f.Do(ctx, req)
	if err != nil {
		return raftstore.Answer{}, err
	}
	return answers[0], nil
}

func (f *fakeStore) ReadPoint(ctx context.Context) (raftstore.ReadPoint, error) {
	if f.park != nil {
		return raftstore.ReadPoint{}, f.wait(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ready {
		return raftstore.ReadPoint{}, raftstore.ErrNoQuorum
	}
	return raftstore.ReadPoint{Index: f.index, T: f.at, W: f.wall}, f.fail
}

func (f *fakeStore) Reach(ctx context.Context, p raftstore.ReadPoint) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reached = append(f.reached, p)
	return nil
}

func (f *fakeStore) Age() time.Duration { return f.age }

func (f *fakeStore) ViewAt(p raftstore.ReadPoint, fn func(*admission.State, admission.Instant, admission.Wall)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f.state, max(f.at, p.T), max(f.wall, p.W))
}

func (f *fakeStore) Image() *admission.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Snapshot()
}

func (f *fakeStore) Picture(p raftstore.ReadPoint, pool string) (*admission.Picture, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	picture, err := f.state.Picture(max(f.at, p.T), max(f.wall, p.W), pool)
	if err != nil {
		return nil, err
	}
	return picture, nil
}

func (f *fakeStore) Leader() raftstore.Leader {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leader
}

func (f *fakeStore) Ready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready
}

func (f *fakeStore) ReadyChanged() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeStore) setReady(ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ready = ready
	close(f.changed)
	f.changed = make(chan struct{})
}
