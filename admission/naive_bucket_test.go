package admission_test

import (
	"math/big"
	"time"

	"github.com/admitd/admit/admission"
)

// naiveBucket knows, as an exact fraction, what was missing from a bucket at an
// instant.
type naiveBucket struct {
	missing *big.Rat
	at      admission.Instant
	// lent is what sidecars hold beside that.
	lent int64

	pausedUntil admission.Instant
	byHand      bool
	throttles   uint
}

func newNaiveBucket() *naiveBucket { return &naiveBucket{missing: new(big.Rat)} }

// naiveTerms is a bucket's policy as it holds for one tenant.
type naiveTerms struct {
	capacity, refill int64
	period           time.Duration
	blocked, oneShot bool
}

// bucketTerms are the terms of the pool's i-th bucket for a tenant.
func (p *naivePool) bucketTerms(i int, tenant string) naiveTerms {
	b := p.policy.Buckets[i]
	terms := naiveTerms{b.Capacity, b.Refill, b.Period, b.Blocked, b.OneShot}
	if b.Scope != admission.ScopeTenant {
		return terms
	}
	o, ok := p.terms(tenant).Buckets[b.Name]
	if !ok || p.misfit(b.Name, o) != fits {
		return terms
	}
	terms.capacity = orElse(o.Capacity, terms.capacity)
	terms.refill = orElse(o.Refill, terms.refill)
	terms.period = orElse(o.Period, terms.period)
	terms.blocked = o.Blocked || b.Blocked && o.Capacity == 0
	return terms
}

func (terms naiveTerms) refills() bool { return terms.refill > 0 && !terms.oneShot }

func rat(v int64) *big.Rat { return new(big.Rat).SetInt64(v) }

// missingAt is what is missing at an instant: nothing comes back in a pause.
func (b *naiveBucket) missingAt(terms naiveTerms, at admission.Instant) *big.Rat {
	elapsed := at.Sub(max(b.at, b.pausedUntil))
	if b.byHand || elapsed <= 0 || !terms.refills() {
		return b.missing
	}
	back := rat(int64(elapsed))
	back.Mul(back, rat(terms.refill)).Quo(back, rat(int64(terms.period)))
	return positive(back.Sub(b.missing, back))
}

func positive(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		return new(big.Rat)
	}
	return r
}

// ceil is the least integer that is not below r.
func ceil(r *big.Rat) int64 {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// used are the whole tokens missing, or lent.
func (b *naiveBucket) used(terms naiveTerms, at admission.Instant) int64 {
	return ceil(b.missingAt(terms, at)) + b.lent
}

func (b *naiveBucket) settle(terms naiveTerms, at admission.Instant) {
	b.missing, b.at = b.missingAt(terms, at), at
}

// take takes tokens out, or with a negative amount puts them back.
func (b *naiveBucket) take(terms naiveTerms, at admission.Instant, amount int64) {
	b.settle(terms, at)
	b.missing = positive(new(big.Rat).Add(b.missing, rat(amount)))
}

// overspend takes out what was not asked for: no more whole tokens than make a
// debt of one capacity.
func (b *naiveBucket) overspend(terms naiveTerms, at admission.Instant, amount int64) {
	room := 2*terms.capacity - b.used(terms, at)
	b.take(terms, at, min(amount, max(room, 0)))
}

// endLoan has what a sidecar held missing, as far as the bucket may owe it.
func (b *naiveBucket) endLoan(terms naiveTerms, at admission.Instant, amount int64) {
	b.lent -= amount
	b.take(terms, at, amount)
	if most := rat(max(2*terms.capacity-b.lent, 0)); terms.capacity > 0 && b.missing.Cmp(most) > 0 {
		b.missing = most
	}
}

// change goes on under new terms: what was used stays used, but no more than
// fits where the capacity was lowered; a part of a token is rounded down to what
// the new period can express.
func (b *naiveBucket) change(old, now naiveTerms, at admission.Instant) {
	b.settle(old, at)
	if now.capacity == 0 { // blocked, without numbers
		b.missing = rat(ceil(b.missing))
		return
	}
	lowered := now.capacity < old.capacity || old.capacity == 0
	if limit := rat(max(now.capacity-b.lent, 0)); lowered && b.missing.Cmp(limit) > 0 {
		b.missing = limit
		return
	}
	whole := rat(ceil(b.missing))
	back := new(big.Rat).Sub(whole, b.missing)
	back.Mul(back, rat(int64(now.period)))
	floor := new(big.Int).Quo(back.Num(), back.Denom())
	if now.period > 0 {
		b.missing = whole.Sub(whole, new(big.Rat).SetFrac(floor, big.NewInt(int64(now.period))))
	} else {
		b.missing = whole
	}
}

func (b *naiveBucket) paused(at admission.Instant) bool { return b.byHand || b.pausedUntil > at }

// hold pauses a bucket by hand, or lifts every pause.
func (b *naiveBucket) hold(terms naiveTerms, at admission.Instant, resume bool) {
	b.settle(terms, at)
	b.byHand = !resume
	if resume {
		b.pausedUntil, b.throttles = min(b.pausedUntil, at), 0
	}
}

// throttle pauses a bucket because its provider said so. Where it does not say
// for how long, a report counts once for each pause.
func (b *naiveBucket) throttle(terms naiveTerms, at admission.Instant, retryAfter, maxPause time.Duration) {
	b.settle(terms, at)
	if at >= b.pausedUntil.Add(terms.period) {
		b.throttles = 0
	}
	if retryAfter == admission.Absent {
		if at < b.pausedUntil {
			return
		}
		if retryAfter = maxPause; b.throttles <= 20 {
			retryAfter = time.Second << b.throttles
		}
		b.throttles++
	}
	b.pausedUntil = max(b.pausedUntil, at.Add(min(retryAfter, maxPause)))
}

// forgottenAt is from when on a bucket is like one that nobody used.
func (b *naiveBucket) forgottenAt(terms naiveTerms, at admission.Instant) (when admission.Instant, ok bool) {
	if b.throttles > 0 {
		when = b.pausedUntil.Add(terms.period)
	}
	if b.lent > 0 {
		return 0, false
	}
	if when = max(when, b.pausedUntil); b.missingAt(terms, at).Sign() == 0 {
		return when, true
	}
	wait := b.wait(terms, at, terms.capacity, 0)
	return max(when, at.Add(wait)), wait != admission.Absent
}

// wait is the least time after which as many tokens as asked for can be taken
// and the reserve stays, or Absent if time alone does not do it.
func (b *naiveBucket) wait(terms naiveTerms, at admission.Instant, asked, reserve int64) time.Duration {
	if b.byHand || asked+reserve > terms.capacity {
		return admission.Absent
	}
	pause := max(0, b.pausedUntil.Sub(at))
	missing := b.missingAt(terms, at)
	lack := new(big.Rat).Sub(missing, rat(terms.capacity-reserve-asked-b.lent))
	if lack.Sign() <= 0 {
		return pause
	}
	if !terms.refills() || lack.Cmp(missing) > 0 {
		return admission.Absent
	}
	lack.Mul(lack, rat(int64(terms.period))).Quo(lack, rat(terms.refill))
	return pause + time.Duration(ceil(lack))
}
