package simulate

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// newRand returns the numbers of one part of a run.
func newRand(seed uint64, part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// draw returns how long it takes this time.
func (s spread) draw(r *rand.Rand) time.Duration {
	switch {
	case s.exponential:
		return exponential(r, float64(s.lo))
	case s.hi > s.lo:
		return s.lo + time.Duration(r.Int64N(int64(s.hi-s.lo)+1))
	}
	return s.lo
}

// exponential returns an exponential time of that mean, in nanoseconds.
func exponential(r *rand.Rand, mean float64) time.Duration {
	return time.Duration(-math.Log(1-r.Float64()) * mean)
}

// zipf gives ranks from 0 to n-1 the probabilities 1/(rank+1)^s.
type zipf struct{ upTo []float64 }

func newZipf(n int, s float64) zipf {
	z := zipf{make([]float64, n)}
	sum := 0.0
	for i := range z.upTo {
		sum += math.Pow(float64(i+1), -s)
		z.upTo[i] = sum
	}
	return z
}

func (z zipf) draw(r *rand.Rand) int {
	x := r.Float64() * z.upTo[len(z.upTo)-1]
	return min(sort.SearchFloat64s(z.upTo, x), len(z.upTo)-1)
}
