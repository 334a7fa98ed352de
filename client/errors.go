package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var (
	// ErrPermitLost is the cause of a context that was cancelled because its
	// permit expired, or may have by now.
	ErrPermitLost = errors.New("permit lost")
	// ErrCancelled is the cause of a context that was cancelled because the
	// claimed entry had been unscheduled or replaced.
	ErrCancelled = errors.New("entry unscheduled or replaced")
	// ErrDrained is the cause of a context that was cancelled because the
	// worker's DrainTimeout was over.
	ErrDrained = errors.New("worker drained")
)

// ShedError says that work was not admitted. Do returns it when waiting can't
// help, or beside the context's error when the context ended first.
type ShedError struct {
	// Shed is the last answer: why, and every limit that blocks.
	Shed *admitv1.Shed
}

// Error names the reason and the limits that block.
func (e *ShedError) Error() string {
	reason := strings.TrimPrefix(e.Shed.GetReason().String(), "REASON_")
	names := make([]string, 0, len(e.Shed.GetBlocking()))
	for _, l := range e.Shed.GetBlocking() {
		names = append(names, l.GetName())
	}
	if len(names) == 0 {
		return "not admitted: " + reason
	}
	return fmt.Sprintf("not admitted: %s (%s)", reason, strings.Join(names, ", "))
}

// Throttled as a function's error means THROTTLED: the provider refused for its
// rate limit. The bucket pauses for everybody; a claimed entry stays due and no
// attempt is spent.
type Throttled struct {
	// RetryAfter is how long the provider asked to wait. 0 means that it didn't
	// say: 1 s, doubling while throttles go on.
	RetryAfter time.Duration
	// Bucket is the bucket to pause. Empty means the pool's only POOL bucket.
	Bucket string
	// Err is what the provider said; optional.
	Err error
}

// Error says that the provider refused.
func (e Throttled) Error() string { return describe("throttled", e.Err) }

// Unwrap returns what the provider said.
func (e Throttled) Unwrap() error { return e.Err }

// NotStarted as a function's error means NOT_STARTED: the work was not begun. A
// claimed entry stays due and its attempt is given back, three times at most.
type NotStarted struct {
	// Err is why; optional.
	Err error
}

// Error says that the work was not begun.
func (e NotStarted) Error() string { return describe("not started", e.Err) }

// Unwrap returns why.
func (e NotStarted) Unwrap() error { return e.Err }

// Dead as a function's error means DEAD: the work can never succeed. A claimed
// entry is dead at once.
type Dead struct {
	// Err is why; optional.
	Err error
}

// Error says that the work can't succeed.
func (e Dead) Error() string { return describe("dead", e.Err) }

// Unwrap returns why.
func (e Dead) Unwrap() error { return e.Err }

// ErrNothingFound as a function's error means DONE with a miss: an entry with a
// cadence backs off. For other work it is a plain DONE.
var ErrNothingFound = errors.New("nothing was found")

func describe(what string, err error) string {
	if err == nil {
		return what
	}
	return what + ": " + err.Error()
}

// releaseOf turns the error of a function into the outcome that it means.
func releaseOf(err error) Release {
	var (
		throttled  Throttled
		notStarted NotStarted
		dead       Dead
	)
	switch {
	case err == nil:
		return Release{Outcome: admitv1.Outcome_OUTCOME_DONE}
	case errors.Is(err, ErrNothingFound):
		return Release{Outcome: admitv1.Outcome_OUTCOME_DONE, Result: admitv1.Finding_FINDING_MISS}
	case errors.As(err, &throttled):
		return Release{
			Outcome:    admitv1.Outcome_OUTCOME_THROTTLED,
			RetryAfter: throttled.RetryAfter,
			Bucket:     throttled.Bucket,
		}
	case errors.As(err, &notStarted):
		return Release{Outcome: admitv1.Outcome_OUTCOME_NOT_STARTED}
	case errors.As(err, &dead):
		return Release{Outcome: admitv1.Outcome_OUTCOME_DEAD}
	default:
		return Release{Outcome: admitv1.Outcome_OUTCOME_FAILED}
	}
}
