package admission

import (
	"math"
	"math/bits"
	"time"
)

// bucketSpec is a token bucket as the policy has it. A full bucket refills
// nothing, so refill and period are 0 where they do not matter.
type bucketSpec struct {
	name      string
	scope     Scope
	capacity  int64
	refill    int64
	period    time.Duration
	perPermit bool
	blocked   bool
	oneShot   bool
	// shared says how much of it sidecars may hold; nil: nothing.
	shared *TokenShare
	charging
}

// charge returns the tokens that a permit of the given cost takes.
func (b *bucketSpec) charge(cost int64) int64 {
	if b.perPermit {
		return 1
	}
	return cost
}

// bucketState is what is missing from a bucket: used tokens, of which rem/period
// of one have come back already, as of the instant at. The zero state is a full
// bucket, so full ones need not be kept.
type bucketState struct {
	used int64
	rem  int64
	at   Instant
	// lent are those of the used tokens that sidecars hold. They do not refill: nobody
	// knows when they are spent. It follows from the live permits.
	lent int64
	// The bucket gives nothing before pausedUntil, nor while pausedByHand.
	pausedUntil  Instant
	pausedByHand bool
	// throttles counts the provider's refusals without a quiet period between.
	throttles uint32
}

// settle brings back what has refilled since the last call. Settling twice is
// the same as settling once, to the last fraction of a token.
func (b *bucketState) settle(spec *bucketSpec, now Instant) {
	if b.pausedByHand || now <= b.at {
		return // a pause moves at to its end
	}
	elapsed := uint64(now - b.at)
	b.at = now
	if b.used == b.lent || spec.refill == 0 {
		return
	}
	hi, lo := bits.Mul64(elapsed, uint64(spec.refill))
	lo, carry := bits.Add64(lo, uint64(b.rem), 0)
	hi += carry
	period := uint64(spec.period)
	if hi >= period {
		b.used, b.rem = b.lent, 0
		return
	}
	back, rem := bits.Div64(hi, lo, period)
	if back >= uint64(b.used-b.lent) {
		b.used, b.rem = b.lent, 0
		return
	}
	b.used -= int64(back)
	b.rem = int64(rem)
}

// settled returns the state as settle would leave it.
func (b bucketState) settled(spec *bucketSpec, now Instant) bucketState {
	b.settle(spec, now)
	return b
}

// never is later than every instant.
const never = Instant(math.MaxInt64)

// readyAt returns when the bucket, settled, will hold n tokens above leave if
// nothing takes any, or never.
func (b *bucketState) readyAt(spec *bucketSpec, n, leave int64) Instant {
	if spec.blocked {
		return never
	}
	return b.refilledAt(spec, n, leave)
}

// refilledAt returns the same of a bucket that may be blocked: it refills.
func (b *bucketState) refilledAt(spec *bucketSpec, n, leave int64) Instant {
	if b.pausedByHand || n > spec.capacity-leave { // it never holds that
		return never
	}
	short := b.used + n + leave - spec.capacity
	if short <= 0 {
		return max(b.pausedUntil, 0)
	}
	if spec.refill == 0 || short > b.used-b.lent { // then it takes the end of a share
		return never
	}
	hi, lo := bits.Mul64(uint64(short), uint64(spec.period))
	lo, borrow := bits.Sub64(lo, uint64(b.rem), 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(spec.refill-1), 0) // round up
	hi += carry
	if hi >= uint64(spec.refill) {
		return never
	}
	wait, _ := bits.Div64(hi, lo, uint64(spec.refill))
	if wait > uint64(never-b.at) {
		return never
	}
	return max(b.at+Instant(wait), b.pausedUntil)
}

// paused says whether the bucket gives nothing for now.
func (b *bucketState) paused(now Instant) bool {
	return b.pausedByHand || now < b.pausedUntil
}

// take charges n tokens of a settled bucket.
func (b *bucketState) take(n int64) { b.used += n }

// giveBack returns n tokens that were charged and not spent.
func (b *bucketState) giveBack(n int64) {
	if b.used -= n; b.used <= b.lent {
		b.used, b.rem = b.lent, 0
	}
}

// lapse has n lent tokens count as spent: they refill from now on. The bucket is settled.
// No more is owed than one capacity, which may have been lowered meanwhile.
func (b *bucketState) lapse(spec *bucketSpec, n int64) {
	b.lent -= n
	if most := max(2*spec.capacity, b.lent); spec.capacity > 0 && b.used > most {
		b.used, b.rem = most, 0
	}
}

// overspend charges n tokens that were spent without asking, down to a debt of
// one capacity.
func (b *bucketState) overspend(spec *bucketSpec, n int64) {
	floor := 2 * spec.capacity
	b.used = max(b.used, min(b.used+n, floor))
}

const firstThrottle = time.Second

// throttle pauses a settled bucket because its provider refused: for the time
// that it asked, or else for a second that doubles with each refusal until one
// period goes by undisturbed after a pause. Reports of one pause do not add up.
func (b *bucketState) throttle(spec *bucketSpec, now Instant, asked, longest time.Duration) {
	if now >= b.pausedUntil.Add(spec.period) {
		b.throttles = 0
	}
	if asked == Absent {
		if now < b.pausedUntil {
			return
		}
		asked = longest
		if b.throttles < 32 {
			asked = min(firstThrottle<<b.throttles, longest)
		}
		b.throttles++
	}
	b.pausedUntil = max(b.pausedUntil, now.Add(min(asked, longest)))
	b.at = max(b.at, b.pausedUntil) // no refill while paused
}

// resume lifts every pause.
func (b *bucketState) resume(now Instant) {
	if b.pausedByHand || now < b.pausedUntil {
		b.at = now
	}
	b.pausedByHand, b.pausedUntil, b.throttles = false, 0, 0
}

// pauseByHand holds the settled bucket until resume.
func (b *bucketState) pauseByHand() { b.pausedByHand = true }

// reshape carries the state over to new numbers: what was used stays used, at
// most to the new capacity where that is lower, and what is lent stays lent. A
// blocked bucket without numbers has no capacity to cut to, and is not full when it
// is unblocked.
func (b *bucketState) reshape(old, next *bucketSpec, now Instant) {
	b.settle(old, now)
	lowered := next.capacity < old.capacity || old.capacity == 0
	if most := max(next.capacity, b.lent); lowered && next.capacity > 0 && b.used > most {
		b.used, b.rem = most, 0
	}
	if b.used == b.lent || next.period == 0 || old.period == 0 {
		b.rem = 0
	} else if next.period != old.period {
		hi, lo := bits.Mul64(uint64(b.rem), uint64(next.period))
		rem, _ := bits.Div64(hi, lo, uint64(old.period)) // rem < old.period, so it fits
		b.rem = int64(rem)
	}
}

// fullAt returns when the bucket, settled, will be worth nothing more than a new
// one if nothing happens, or never.
func (b *bucketState) fullAt(spec *bucketSpec) Instant {
	quiet := Instant(0)
	if b.throttles > 0 {
		quiet = b.pausedUntil.Add(spec.period)
	}
	if b.used == 0 {
		if b.pausedByHand {
			return never
		}
		return max(b.pausedUntil, quiet)
	}
	return max(b.refilledAt(spec, spec.capacity, 0), quiet)
}

// untilMillis returns the time from now to at, rounded up to a millisecond, at
// least one; Absent if that is never.
func untilMillis(now, at Instant) time.Duration {
	if at == never {
		return Absent
	}
	return ceilMillis(max(at.Sub(now), 1))
}

// ceilMillis rounds up to a millisecond.
func ceilMillis(d time.Duration) time.Duration {
	if r := d % time.Millisecond; r > 0 {
		return d - r + time.Millisecond
	}
	return d
}
