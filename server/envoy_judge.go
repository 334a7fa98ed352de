package server

import (
	"math"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/descriptor"
)

// judgedDescriptor is what became of one descriptor.
type judgedDescriptor struct {
	// rule is nil where none matches.
	rule *descriptor.Rule
	// shadow says that it only watches: held is then why it would be refused.
	shadow bool
	held   *admission.Shed
	// level is how the bucket stands that decides: the one that holds it, else the one
	// with the least left. It is nil where nothing limits.
	level *admission.TakeLevel
	// left are the hits that may follow.
	left int64
	// reset is when the limit is as if nothing had been taken or, where it is held, when
	// the same request may pass; in whole seconds, rounded up, 0 if not known.
	reset time.Duration
}

// over says whether the descriptor is refused.
func (d *judgedDescriptor) over() bool { return d.held != nil && !d.shadow }

// judged puts what was decided beside the descriptors.
func (q *rateLimitQuery) judged(res *admission.TakeResult, levels [][]admission.TakeLevel) []judgedDescriptor {
	rows := make([]judgedDescriptor, len(q.rules))
	for i, rule := range q.rules {
		d := &rows[i]
		if d.rule = rule; q.parts[i] < 0 {
			continue
		}
		part := q.parts[i]
		d.shadow = q.shadow || rule.Shadow
		d.held = res.Held[part]
		if part < len(levels) {
			d.level = decisive(levels[part], d.held)
		}
		d.measure(q.descriptors[i].hits)
	}
	return rows
}

// decisive returns the level that decides, or nil.
func decisive(levels []admission.TakeLevel, held *admission.Shed) (least *admission.TakeLevel) {
	for i := range levels {
		l := &levels[i]
		if held != nil && held.Blocking[0].Name == l.Bucket {
			return l
		}
		if least == nil || l.Left < least.Left {
			least = l
		}
	}
	return least
}

// measure says what is left and for how long.
func (d *judgedDescriptor) measure(hits int64) {
	if d.level != nil {
		d.left, d.reset = d.level.Left, wholeSeconds(d.level.FullIn)
	}
	if d.held == nil {
		return
	}
	// What holds it may be more than tokens: there is less than it asks for.
	d.left = max(min(d.left, max(hits, 1)-1), 0)
	switch full := d.reset; {
	case d.held.RetryAfter != admission.Absent:
		d.reset = wholeSeconds(d.held.RetryAfter)
	case d.held.PollAfter != admission.Absent:
		d.reset = max(wholeSeconds(d.held.PollAfter), time.Second)
	default:
		d.reset = max(full, time.Second)
	}
}

// wholeSeconds rounds up; what is absent is 0.
func wholeSeconds(d time.Duration) time.Duration {
	if d == admission.Absent {
		return 0
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

// clamp makes a number fit 32 bits.
func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }
