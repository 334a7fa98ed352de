package impure

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"time"
)

type bucket struct {
	level float64   // want "float: a float"
	rates []float32 // want "float: a float"
}

type share = float64 // want "float: a float"

type number interface{ ~int | ~float64 } // want "float: a float"

const (
	half    = 0.5
	billion = 1e9
	second  = time.Duration(1e9)
)

func floats(d time.Duration, n int64) {
	x := half                                  // want "float: a float"
	_ = d.Seconds()                            // want "float: a float"
	_ = float64(n)                             // want "float: a float"
	_ = d > 1e9*half*d                         // constants that end up whole
	_ = fmt.Sprint(0.5)                        // want "float: a float"
	_, e := math.Frexp(half)                   // want "float: a float"
	_, _ = x, e                                // want "float: a float"
	_ = complex(1, 1)                          // want "float: a float"
	for _, f := range sort.Float64Slice(nil) { // want "float: a float"
		_ = f > 1 // want "float: a float"
	}
}

func whole(n int64) int64 {
	return min(n*billion, math.MaxInt64, int64(second))
}

func larger[T cmp.Ordered](a, b T) T { return max(a, b) }

var _ = larger(1, 2)
