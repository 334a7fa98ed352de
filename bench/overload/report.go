package overload

import (
	"fmt"

	"github.com/admitd/admit/bench/result"
)

func report(rounds []round) []result.Fact {
	figure := func(what, unit string, of func(round) float64) result.Fact {
		f := result.Fact{What: what, Unit: unit}
		for _, r := range rounds {
			f.Rounds = append(f.Rounds, of(r))
		}
		return f
	}
	least := func(v float64, f result.Fact) result.Fact { f.Least = &v; return f }
	most := func(v float64, f result.Fact) result.Fact { f.Most = &v; return f }
	return []result.Fact{
		figure("the most that is done, Acquire and Release as one", "a second", func(r round) float64 { return r.peak }),
		least(times*0.9, figure("offered, by that", "", func(r round) float64 { return r.offered / r.peak })),
		least(0.9, figure("done of it, by that", "", func(r round) float64 { return r.goodput / r.peak })),
		figure("Acquires refused for overload", "", func(r round) float64 { return float64(r.acquiresRefused) }),
		most(0, figure("Releases refused for overload", "", func(r round) float64 { return float64(r.releasesRefused) })),
		figure("p99 of a quiet tenant beside the most that is done", "ms", func(r round) float64 { return r.quietPeak.Seconds() * 1e3 }),
		most(2, figure("the same beside what is offered, by that", "", func(r round) float64 {
			return r.quietOver.Seconds() / r.quietPeak.Seconds()
		})),
		most(5, figure("until the quiet tenant's calls are as fast as before", "s", func(r round) float64 { return r.recovery.Seconds() })),
	}
}

// releases says whether a Release was ever refused.
func releases(rounds []round) result.Check {
	c := result.Check{What: "no Release was refused for overload"}
	for _, r := range rounds {
		if r.releasesRefused > 0 {
			c.Wrong = fmt.Sprintf("%d were, beside %d Acquires", r.releasesRefused, r.acquiresRefused)
		}
	}
	return c
}
