package simulate

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

// Workload is a workload file that has been read.
type Workload struct {
	Name     string
	Duration time.Duration
	// Drain is how much longer it goes on, at most, until all work is done.
	Drain   time.Duration
	Seed    uint64
	Streams []*Stream
	Workers []*Workers
	// Watch is told now and then how far a run has got, of Duration. It may be nil.
	Watch func(at time.Duration)

	policy admission.Policy
	expect []expectation
}

// without returns the workload without some of its streams, and expecting nothing.
func (w *Workload) without(streams []string) *Workload {
	out := *w
	out.expect, out.Watch = nil, nil
	out.Streams = slices.DeleteFunc(slices.Clone(w.Streams), func(s *Stream) bool { return slices.Contains(streams, s.Name) })
	return &out
}

// Stream is work of one kind from one tenant or from several alike.
type Stream struct {
	Name     string
	Pool     string
	Tenants  []string
	Category string
	Cost     int64
	// Routes is among how many routes the due work of each tenant is spread.
	Routes   int64
	Arrivals arrivals
	Work     spread
	// FailureRate and ThrottleRate are parts of 1 of all attempts.
	FailureRate  float64
	ThrottleRate float64
	// RetryAfter is what the provider asks for when it throttles, or Absent.
	RetryAfter time.Duration
	Bucket     string

	node *yaml.Node
	// by are the workers who ask for its permits; nil for due work.
	by *Workers
}

// arrivalKind is how work arrives.
type arrivalKind uint8

const (
	arriveConstant arrivalKind = iota + 1
	arrivePoisson
	arriveBurst
	arriveZipf
)

var arrivalKinds = map[string]arrivalKind{
	"constant": arriveConstant, "poisson": arrivePoisson, "burst": arriveBurst, "zipf": arriveZipf,
}

// arrivals say when work arrives: for each tenant of the stream, or with zipf for
// all together.
type arrivals struct {
	kind arrivalKind
	// rate is in jobs per second.
	rate     float64
	exponent float64
	count    int64
	from     time.Duration // of a burst, the one moment
	until    time.Duration
}

// jobs is about how many arrive.
func (a arrivals) jobs(tenants int) float64 {
	switch a.kind {
	case arriveBurst:
		return float64(a.count) * float64(tenants)
	case arriveZipf:
		return a.rate * (a.until - a.from).Seconds()
	default:
		return a.rate * (a.until - a.from).Seconds() * float64(tenants)
	}
}

// spread is how long something takes: always lo, exponential with mean lo, or
// any time from lo to hi.
type spread struct {
	exponential bool
	lo, hi      time.Duration
}

// workerKind is how workers ask.
type workerKind uint8

const (
	workPoll workerKind = iota + 1
	workLongPoll
	workWait
	workAcquire
	workSidecar
)

var workerKinds = map[string]workerKind{
	"poll": workPoll, "long_poll": workLongPoll, "wait": workWait, "acquire": workAcquire,
	"sidecar": workSidecar,
}

// due says whether they claim due work, and don't ask for a permit for each job.
func (k workerKind) due() bool { return k == workPoll || k == workLongPoll }

// Workers are workers alike.
type Workers struct {
	Name string
	Pool string
	kind workerKind
	// Count 0 is a worker for each job, where they ask for permits.
	Count int64
	// MaxItems is how many jobs a polling worker has in hand at most.
	MaxItems int64
	Interval time.Duration
	Lanes    []string
	Streams  []string
	MaxWait  time.Duration
	TTL      time.Duration
	// Start is when they begin.
	Start time.Duration
	// CrashRate is the part of 1 of all jobs with which their worker vanishes,
	// CrashAt when all of them do (0: never).
	CrashRate float64
	CrashAt   time.Duration
	// Tokens is how many a sidecar asks for at a time beside what it holds, 0 never any.
	Tokens int64
	// Restart is how long until somebody takes the place of one who vanished.
	Restart time.Duration
}
