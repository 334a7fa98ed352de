package admission

import (
	"math"
	"testing"
	"time"
)

const day = 24 * time.Hour

// Refill is exact over any time: whole tokens come back, and the fraction is kept.
func TestRefill(t *testing.T) {
	for _, c := range []struct {
		name           string
		capacity       int64
		refill         int64
		period         time.Duration
		used, rem      int64
		elapsed        time.Duration
		left, fraction int64
	}{
		{"nothing passed", 10, 1, time.Second, 5, 3, 0, 5, 3},
		{"not a token yet", 10, 1, time.Second, 5, 0, time.Second - 1, 5, int64(time.Second - 1)},
		{"one token", 10, 1, time.Second, 5, 0, time.Second, 4, 0},
		{"the fraction completes a token", 10, 1, time.Second, 5, int64(time.Second - 1), 1, 4, 0},
		{"thirds", 10, 1, 3, 5, 0, 10, 2, 1},
		{"full", 10, 1, time.Second, 5, 0, 5 * time.Second, 0, 0},
		{"full, nothing carried", 10, 3, 2 * time.Second, 1, 1, time.Second, 0, 0},
		{"long after", 10, 1, time.Second, 5, 0, 100 * 366 * day, 0, 0},
		{"most tokens, least period", MaxTokens, MaxTokens, time.Millisecond, MaxTokens, 0, 1, MaxTokens - MaxTokens/1_000_000, MaxTokens % 1_000_000},
		{"most tokens for a century", MaxTokens, MaxTokens, time.Millisecond, MaxTokens, 0, 100 * 366 * day, 0, 0},
		{"one token a year", MaxTokens, 1, MaxPeriod, MaxTokens, 0, MaxPeriod - 1, MaxTokens, int64(MaxPeriod - 1)},
		{"one token a year, a year on", MaxTokens, 1, MaxPeriod, MaxTokens, int64(MaxPeriod - 1), 1, MaxTokens - 1, 0},
		{"debt is paid first", 10, 1, time.Second, 20, 0, 3 * time.Second, 17, 0},
		{"time does not go back", 10, 1, time.Second, 5, 7, -time.Hour, 5, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &bucketSpec{capacity: c.capacity, refill: c.refill, period: c.period}
			b := bucketState{used: c.used, rem: c.rem, at: 1000}
			now := Instant(1000).Add(c.elapsed)
			b.settle(spec, now)
			want(t, "used", b.used, c.left)
			want(t, "carried", b.rem, c.fraction)
			settled := b
			b.settle(spec, now)
			want(t, "settled twice", b, settled)
		})
	}
}

// However a span is cut up, the same comes back.
func TestRefillInPiecesIsTheSame(t *testing.T) {
	spec := &bucketSpec{capacity: 1000, refill: 7, period: 333_333_333}
	whole := bucketState{used: 1000}
	parts := whole
	at := Instant(0)
	for i := range Instant(2000) {
		at += i*i%50_021 + 1
		parts.settle(spec, at)
	}
	whole.settle(spec, at)
	want(t, "in pieces", parts, whole)
}

// readyAt is the first instant at which the tokens are there.
func TestReadyAtIsTheFirstInstant(t *testing.T) {
	for _, c := range []struct {
		name     string
		spec     bucketSpec
		state    bucketState
		n, leave int64
		never    bool
	}{
		{"a token", bucketSpec{capacity: 5, refill: 1, period: time.Second}, bucketState{used: 5}, 1, 0, false},
		{"above a reserve", bucketSpec{capacity: 5, refill: 2, period: 3 * time.Second}, bucketState{used: 2, rem: 17}, 1, 4, false},
		{"an odd rate", bucketSpec{capacity: 99, refill: 7, period: 333_333_333}, bucketState{used: 98, rem: 333_333_332}, 98, 0, false},
		{"out of debt", bucketSpec{capacity: 5, refill: 3, period: time.Second}, bucketState{used: 10, rem: 1}, 5, 0, false},
		{"a fast refill", bucketSpec{capacity: MaxTokens, refill: MaxTokens, period: time.Millisecond}, bucketState{used: MaxTokens}, 1, 0, false},
		{"after a pause", bucketSpec{capacity: 5, refill: 1, period: time.Second}, bucketState{used: 5, at: 70e9, pausedUntil: 70e9}, 1, 0, false},
		{"in 292 years or more", bucketSpec{capacity: MaxTokens, refill: 1, period: MaxPeriod}, bucketState{used: MaxTokens}, 300, 0, true},
		{"past all arithmetic", bucketSpec{capacity: MaxTokens, refill: 1, period: MaxPeriod}, bucketState{used: 2 * MaxTokens}, MaxTokens, 0, true},
		{"no refill", bucketSpec{capacity: 5, oneShot: true}, bucketState{used: 5}, 1, 0, true},
		{"blocked", bucketSpec{blocked: true}, bucketState{}, 1, 0, true},
		{"held by hand", bucketSpec{capacity: 5, refill: 1, period: time.Second}, bucketState{pausedByHand: true}, 1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := c.state.readyAt(&c.spec, c.n, c.leave)
			if want(t, "never", at == never, c.never); c.never {
				return
			}
			has := func(now Instant) bool {
				b := c.state.settled(&c.spec, now)
				return b.refusal(&c.spec, c.n, c.leave, PoolRate, now) == ReasonNone
			}
			want(t, "ready then", has(at), true)
			want(t, "ready before", has(at-1), false)
		})
	}
}

// What is given back never makes more than a full bucket.
func TestGiveBack(t *testing.T) {
	b := bucketState{used: 3, rem: 5}
	b.giveBack(2)
	want(t, "less than is missing", b, bucketState{used: 1, rem: 5})
	b.giveBack(2)
	want(t, "more than is missing", b, bucketState{})
}

// Overspending makes debt, up to one capacity; what is owed already stays.
func TestOverspend(t *testing.T) {
	spec := &bucketSpec{capacity: 10}
	for _, c := range []struct{ used, n, want int64 }{
		{4, 3, 7}, {10, 5, 15}, {10, 10, 20}, {10, 11, 20}, {19, MaxTokens, 20}, {20, 1, 20},
		{4, math.MaxInt64, 4}, // out of range: no panic
		{25, 1, 25},           // owed from a greater capacity
	} {
		b := bucketState{used: c.used}
		b.overspend(spec, c.n)
		if c.n == math.MaxInt64 {
			want(t, "owes at most one capacity", b.used >= 0 && b.used <= 20, true)
			continue
		}
		want(t, "used", b.used, c.want)
	}
}

// A pause lasts as long as its longest report asked, and the bucket gets nothing
// back meanwhile.
func TestThrottle(t *testing.T) {
	spec := &bucketSpec{capacity: 10, refill: 1, period: time.Second}
	const longest = time.Minute
	b := bucketState{used: 10}
	b.throttle(spec, 0, 5*time.Second, longest)
	b.throttle(spec, 0, 2*time.Second, longest)
	want(t, "a shorter report changes nothing", b.pausedUntil, Instant(5*time.Second))
	b.throttle(spec, Instant(time.Second), time.Hour, longest)
	want(t, "at most max_pause from now", b.pausedUntil, Instant(61*time.Second))
	b.settle(spec, Instant(61*time.Second))
	want(t, "no refill while paused", b.used, 10)
	want(t, "paused till then", b.paused(Instant(61*time.Second)-1), true)
	want(t, "paused from then", b.paused(Instant(61*time.Second)), false)
	b.settle(spec, Instant(63*time.Second))
	want(t, "refill goes on after it", b.used, 8)
}

// Without a retry_after pauses double with every one that follows, reports within
// one do not add up, and one undisturbed period after a pause resets them.
func TestThrottleEscalates(t *testing.T) {
	spec := &bucketSpec{capacity: 10, refill: 1, period: 10 * time.Second}
	b := bucketState{}
	now := Instant(time.Hour)
	report := func(wanted time.Duration) {
		t.Helper()
		b.throttle(spec, now, Absent, 5*time.Second)
		want(t, "pause", b.pausedUntil.Sub(now), wanted)
		until := b.pausedUntil
		b.throttle(spec, now.Add(wanted/2), Absent, 5*time.Second)
		want(t, "pause after a second report", b.pausedUntil, until)
		now = b.pausedUntil
	}
	report(time.Second)
	report(2 * time.Second)
	now = now.Add(spec.period - 1)
	report(4 * time.Second)
	report(5 * time.Second) // max_pause
	now = now.Add(spec.period)
	report(time.Second)
	for range 100 {
		b.throttle(spec, b.pausedUntil, Absent, time.Hour)
	}
	want(t, "the longest pause", b.pausedUntil-b.at, 0)
	b.resume(b.pausedUntil)
	want(t, "resume forgets refusals", b.throttles, 0)
}

// A hand's pause lasts until its resume and gives nothing back for the time.
func TestPauseByHand(t *testing.T) {
	spec := &bucketSpec{capacity: 10, refill: 1, period: time.Second}
	b := bucketState{used: 10}
	b.settle(spec, Instant(2*time.Second))
	b.pauseByHand()
	want(t, "settled while paused", b.settled(spec, Instant(time.Hour)).used, 8)
	b.resume(Instant(time.Hour))
	want(t, "at resume", b.settled(spec, Instant(time.Hour)).used, 8)
	want(t, "after resume", b.settled(spec, Instant(time.Hour+3*time.Second)).used, 5)
}

// A change of numbers keeps what is used; less capacity forgives what is above it.
func TestReshape(t *testing.T) {
	old := &bucketSpec{capacity: 10, refill: 1, period: time.Second}
	now := Instant(1500 * time.Millisecond) // one token and a half have come back
	for _, c := range []struct {
		name      string
		next      bucketSpec
		used, rem int64
	}{
		{"more capacity", bucketSpec{capacity: 20, refill: 1, period: time.Second}, 7, int64(time.Second / 2)},
		{"less capacity, still above what is used", bucketSpec{capacity: 8, refill: 1, period: time.Second}, 7, int64(time.Second / 2)},
		{"less capacity than is used", bucketSpec{capacity: 5, refill: 1, period: time.Second}, 5, 0},
		{"another period keeps the fraction", bucketSpec{capacity: 10, refill: 9, period: time.Minute}, 7, int64(time.Minute / 2)},
		{"the longest period", bucketSpec{capacity: 10, refill: 1, period: MaxPeriod}, 7, int64(MaxPeriod / 2)},
		{"to one_shot", bucketSpec{capacity: 10, oneShot: true}, 7, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bucketState{used: 8}
			b.reshape(old, &c.next, now)
			want(t, "used", b.used, c.used)
			want(t, "carried", b.rem, c.rem)
			want(t, "as of", b.at, now)
		})
	}
	full := bucketState{}
	full.reshape(old, &bucketSpec{capacity: 3, refill: 1, period: time.Hour}, now)
	want(t, "a full bucket stays full", full.used, 0)
}

// Blocking a bucket for a while gives nothing back: what was used before is used
// after, less what is refilled from then on.
func TestBlockingDoesNotFillABucket(t *testing.T) {
	bucket := BucketPolicy{Name: "b", Scope: ScopePool, Capacity: 3, Refill: 1, Period: time.Hour}
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{bucket}})
	for range 3 {
		s.granted("a")
	}
	s.shed("a", PoolRate)
	s.put(PoolPolicy{Buckets: []BucketPolicy{{Name: "b", Scope: ScopePool, Blocked: true}}})
	s.shed("a", Blocked)
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket}})
	s.shed("a", PoolRate)
}
