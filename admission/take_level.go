package admission

import "time"

// TakeLevel is how a bucket stands for who takes of it.
type TakeLevel struct {
	Bucket   string
	Scope    Scope
	Capacity int64
	// Refill tokens come back in each Period; both are 0 where it never refills.
	Refill int64
	Period time.Duration
	// Left are the tokens that may be taken now, what the lane leaves aside.
	Left int64
	// FullIn is the time until it is full again, in whole milliseconds, rounded up; 0 if
	// it is, and Absent if time alone does not fill it.
	FullIn time.Duration
}

// TakeLevels shows how the buckets of each part of a Take stand at an instant, in the
// order in which the part names them. Those that the pool does not have are left out.
func (s *State) TakeLevels(at Instant, op *Take) [][]TakeLevel {
	p := s.pools.byName(op.Pool)
	if p == nil || p.draining {
		return nil
	}
	at = max(at, s.t)
	rows := make([][]TakeLevel, len(op.Parts))
	for i := range op.Parts {
		part := &op.Parts[i]
		t := p.tenant(part.Tenant)
		l, _ := t.laneOf(part)
		for _, name := range part.Buckets {
			if level, ok := t.levelOf(part, name, l, at); ok {
				rows[i] = append(rows[i], level)
			}
		}
	}
	return rows
}

// levelOf returns how the bucket of that name stands for the part's tenant in a lane.
func (t *tenant) levelOf(part *TakePart, name string, l *lane, at Instant) (TakeLevel, bool) {
	for i := range t.pool.buckets {
		if b := &t.pool.buckets[i]; b.name == name {
			return b.settled(b.bucketSpec, at).level(b.bucketSpec, l.leaveTokens[i], at), true
		}
	}
	for i, spec := range t.share.buckets {
		if spec.name == name && part.takes(spec) {
			return t.bucket(i, at).level(spec, 0, at), true
		}
	}
	return TakeLevel{}, false
}

// level describes the settled bucket, of which leave is for others.
func (b bucketState) level(spec *bucketSpec, leave int64, at Instant) TakeLevel {
	v := TakeLevel{Bucket: spec.name, Scope: spec.scope, Capacity: spec.capacity, Refill: spec.refill, Period: spec.period}
	if !spec.blocked && !b.paused(at) {
		v.Left = max(spec.capacity-b.used-leave, 0)
	}
	if full := b.readyAt(spec, spec.capacity, 0); full > at {
		v.FullIn = untilMillis(at, full)
	}
	return v
}
