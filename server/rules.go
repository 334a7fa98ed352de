package server

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/admission"
)

// The limits that the protos state.
const (
	maxCost       = 1 << 53
	maxItems      = 1000
	maxLanes      = 16
	maxName       = 64
	maxIdentity   = 128
	maxLabelBytes = 128
	maxRequestID  = 256
	maxNodeParts  = 10_000
	maxPageToken  = 512
	minTTL        = time.Second
	maxTTL        = 24 * time.Hour
	maxWait       = time.Minute
	minReport     = time.Millisecond
	maxReport     = time.Minute
	maxDelay      = 366 * 24 * time.Hour
	maxAttempts   = 1000
	defaultHeld   = 16
	defaultPage   = 100
	maxPerSecond  = 1_000_000
)

// name is that of a pool, a lane or a bucket.
func (c checker) name(field, v string) string {
	return c.chars(field, v, maxName, "._-")
}

// identity is that of a tenant or a key.
func (c checker) identity(field, v string) string {
	return c.chars(field, v, maxIdentity, "._:/-")
}

// optional is a rule for fields that may be empty.
func (c checker) optional(rule func(field, v string) string, field, v string) string {
	if v == "" {
		return ""
	}
	return rule(field, v)
}

func (c checker) chars(field, v string, limit int, punctuation string) string {
	if v == "" {
		c.fail(field, "is required")
		return ""
	}
	if len(v) > limit {
		c.fail(field, "has %d bytes, at most %d are allowed", len(v), limit)
		return ""
	}
	for _, r := range v {
		if !isAlphanumeric(r) && !contains(punctuation, r) {
			c.fail(field, "has %s; allowed are letters, digits and %s", strconv.QuoteRune(r), punctuation)
			return ""
		}
	}
	return v
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func contains(set string, r rune) bool {
	for _, s := range set {
		if s == r {
			return true
		}
	}
	return false
}

// text is free text of so many bytes. The transport has seen to it that it is
// UTF-8.
func (c checker) text(field, v string, limit int) string {
	if len(v) > limit {
		c.fail(field, "has %d bytes, at most %d are allowed", len(v), limit)
	}
	return v
}

// between is a number in a range.
func (c checker) between(field string, v, low, high int64) int64 {
	if v < low || v > high {
		c.fail(field, "is %d, must be from %d to %d", v, low, high)
	}
	return v
}

// orDefault is a number in a range from 1 whose 0 means a default.
func (c checker) orDefault(field string, v int32, high, otherwise int) int {
	if v == 0 {
		return otherwise
	}
	return int(c.between(field, int64(v), 1, int64(high)))
}

// count is the length of a repeated field, from 1.
func (c checker) count(field string, n, high int) bool {
	if n < 1 || n > high {
		c.fail(field, "has %d items, must have 1 to %d", n, high)
		return false
	}
	return true
}

// cost is what an Acquire asks for: nothing only to see how things stand.
func (c checker) cost(field string, v *int64, dryRun bool) int64 {
	least := int64(1)
	if dryRun {
		least = 0
	}
	if v == nil {
		return 1
	}
	return c.between(field, *v, least, maxCost)
}

// duration is a time span in a range; absent yields otherwise.
func (c checker) duration(field string, d *durationpb.Duration, low, high, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	if err := d.CheckValid(); err != nil {
		c.fail(field, "is not a valid duration")
		return otherwise
	}
	v := d.AsDuration()
	if v < low || v > high {
		c.fail(field, "is %s, must be from %s to %s", v, low, high)
	}
	return v
}

// ttl is a permit's time to live; absent yields 0.
func (c checker) ttl(field string, d *durationpb.Duration) time.Duration {
	return c.duration(field, d, minTTL, maxTTL, 0)
}

// lastWall is the latest moment that the core tells apart: its nanoseconds, and
// any wait added to them, fit an int64. Later ones count as this one.
var lastWall = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)

// wall is a wall-clock time from 1970 to 9999.
func (c checker) wall(field string, ts *timestamppb.Timestamp) admission.Wall {
	if ts.CheckValid() != nil || ts.GetSeconds() < 0 {
		c.fail(field, "must be a time from 1970 to 9999")
		return 0
	}
	at := ts.AsTime()
	if at.After(lastWall) {
		at = lastWall
	}
	return admission.Wall(at.UnixNano())
}

// issued is when a call was first sent; absent yields 0.
func (c checker) issued(field string, ts *timestamppb.Timestamp) admission.Wall {
	if ts == nil {
		return 0
	}
	return max(c.wall(field, ts), 1)
}

// token is a permit's printable name.
func (c checker) token(field, v string) admission.Token {
	if v == "" {
		c.fail(field, "is required")
		return admission.Token{}
	}
	t, err := admission.ParseToken(v)
	if err != nil {
		c.fail(field, "is not a permit's token")
	}
	return t
}

// revision is a policy's, absent meaning any.
func (c checker) revision(field string, v *int64) int64 {
	if v == nil {
		return admission.AnyRevision
	}
	return c.between(field, *v, 0, math.MaxInt64)
}
