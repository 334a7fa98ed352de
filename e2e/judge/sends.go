package judge

import (
	"math"
	"slices"
	"time"
)

// Request is a request that a provider noted in its access log.
type Request struct {
	// At is the wall clock when the request was answered, to the millisecond.
	At time.Time
	// Status is 200 where the provider did it and 429 where it refused.
	Status int
	// Path names what was to be sent.
	Path string
}

// Sends is what became of the sends that were due, by the provider's own log.
type Sends struct {
	// Refused is how many requests the provider answered with 429.
	Refused int
	// Failed is how many it answered with neither 200 nor 429.
	Failed int
	// Lost were due and never sent, Doubled were sent more than once, Strange
	// were sent but never due.
	Lost, Doubled, Strange []string
	// Sent is when each path was first sent.
	Sent map[string]time.Time
}

// TallySends compares the provider's log with what was due.
func TallySends(log []Request, due map[string]time.Time) Sends {
	s := Sends{Sent: make(map[string]time.Time, len(due))}
	for _, r := range log {
		_, again := s.Sent[r.Path]
		_, wanted := due[r.Path]
		switch {
		case r.Status == 429:
			s.Refused++
		case r.Status != 200:
			s.Failed++
		case !wanted:
			s.Strange = append(s.Strange, r.Path)
		case again:
			s.Doubled = append(s.Doubled, r.Path)
		default:
			s.Sent[r.Path] = r.At
		}
	}
	for path := range due {
		if _, sent := s.Sent[path]; !sent {
			s.Lost = append(s.Lost, path)
		}
	}
	slices.Sort(s.Lost)
	return s
}

// Percentile returns the least of the durations that p of them, from 0 to 1, are
// not above. There must be at least one.
func Percentile(ds []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(ds))
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(rank-1, 0)]
}
