package simulate

import (
	"fmt"

	"github.com/admitd/admit/admission"
)

// spans is the law of buckets, by what was spent: in any span no more of a POOL bucket
// than its capacity and what is refilled in it. It is kept as a tank that each token
// fills, and that empties at the rate of the refill: it must not run over.
type spans struct {
	tanks []tank
	// over is the first time it did, spent how often something was spent.
	over  string
	spent int64
	// fullest is the greatest part of a capacity that a tank was full.
	fullest float64
}

type tank struct {
	level float64
	at    admission.Instant
}

func newSpans(buckets int) spans { return spans{tanks: make([]tank, buckets)} }

// slack is for the rounding of the tanks' numbers.
const slack = 1e-6

// spend books tokens of the i-th bucket.
func (l *ledger) spend(i int, tokens int64) {
	l.taken[i] += tokens
	b, t, now := &l.policy.Buckets[i], &l.spans.tanks[i], l.run.now
	if b.Period == 0 {
		return
	}
	t.level = max(0, t.level-float64(b.Refill)*float64(now.Sub(t.at))/float64(b.Period)) + float64(tokens)
	t.at = now
	l.spans.spent++
	l.spans.fullest = max(l.spans.fullest, t.level/float64(b.Capacity))
	if t.level > float64(b.Capacity)+slack && l.spans.over == "" {
		l.spans.over = fmt.Sprintf("bucket %s had %.2f tokens spent beyond what it could give by %s", b.Name, t.level-float64(b.Capacity), short(now))
	}
}

// bucketBound tells how it went with all buckets.
func bucketBound(r *run) verdict {
	v, fullest := verdict{}, 0.0
	for _, l := range r.ledgers {
		v.cases += l.spans.spent
		fullest = max(fullest, l.spans.fullest)
		if v.breach == "" {
			v.breach = l.spans.over
		}
	}
	v.held = fmt.Sprintf("at most %.4f of the bound", fullest)
	return v
}
