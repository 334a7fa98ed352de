package judge

import (
	"sync"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Moment is the time since the history began, on one monotonic clock for all
// clients.
type Moment = time.Duration

// Grant is a permit that a client was told it holds.
type Grant struct {
	Token  string
	Fence  int64
	Tenant string
	// Key is the claimed entry's, empty for an Acquire.
	Key     string
	Attempt int32
	TTL     time.Duration
}

// Answer is the answer to one Acquire or NextDue that was tried until there was
// one. An asked-again request has several answers with one RequestID.
type Answer struct {
	RequestID string
	// Sent is before the first try, LastSent before the one that was answered.
	Sent, LastSent, Got Moment
	// Claims says that the request was a NextDue.
	Claims bool
	Grants []Grant
}

// Release is a release that was tried until there was an answer.
type Release struct {
	Token               string
	Outcome             admitv1.Outcome
	Sent, LastSent, Got Moment
	Result              admitv1.LeaseResult
	// Unknown is how many tries before had no answer.
	Unknown int
}

// Schedule is a schedule of one entry that was tried until there was an answer.
type Schedule struct {
	Tenant, Key string
	Sent, Got   Moment
	Status      admitv1.ScheduleResult_Status
	// Unknown is how many tries before had no answer.
	Unknown int
}

// History is what clients wrote down, in no particular order within a kind.
type History struct {
	Answers   []Answer
	Releases  []Release
	Schedules []Schedule
}

// Recorder collects a history from many clients.
type Recorder struct {
	began time.Time

	mu sync.Mutex
	h  History
}

// NewRecorder starts a history at began.
func NewRecorder(began time.Time) *Recorder { return &Recorder{began: began} }

// Now is the present moment of the history.
func (r *Recorder) Now() Moment { return time.Since(r.began) }

// Answer writes an answer down.
func (r *Recorder) Answer(a Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Answers = append(r.h.Answers, a)
}

// Release writes a release down.
func (r *Recorder) Release(e Release) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Releases = append(r.h.Releases, e)
}

// Schedule writes a schedule down.
func (r *Recorder) Schedule(e Schedule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Schedules = append(r.h.Schedules, e)
}

// Acknowledged is how many answers of all kinds there are so far.
func (r *Recorder) Acknowledged() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.h.Answers) + len(r.h.Releases) + len(r.h.Schedules)
}

// History returns what was written down. Call it when the clients have stopped.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.h
}
