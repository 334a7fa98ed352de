package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/admitd/admit/admission"
)

func writeRateLimit(rows []judgedDescriptor) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	for i := range rows {
		out.Statuses = append(out.Statuses, writeDescriptorStatus(&rows[i]))
		if rows[i].over() {
			out.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
		}
	}
	out.ResponseHeadersToAdd = rateLimitHeaders(rows)
	out.DynamicMetadata = rateLimitMetadata(rows)
	return out
}

// writeDescriptorStatus tells of no limit where a rule only watches: the headers that
// Envoy makes of the statuses would show it in place of one that holds.
func writeDescriptorStatus(d *judgedDescriptor) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	out := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	switch {
	case d.rule == nil || d.shadow:
		return out
	case d.rule.Unlimited:
		out.LimitRemaining = math.MaxUint32
		return out
	case d.over():
		out.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	if d.level != nil {
		out.CurrentLimit = writeCurrentLimit(d.rule.Name, d.level)
	}
	out.LimitRemaining = clamp(d.left)
	if d.reset > 0 {
		out.DurationUntilReset = durationpb.New(d.reset)
	}
	return out
}

// units are those of the protocol; a month has 30 days there, a year 365.
var units = []struct {
	unit   ratelimitv3.RateLimitResponse_RateLimit_Unit
	period time.Duration
}{
	{ratelimitv3.RateLimitResponse_RateLimit_SECOND, time.Second},
	{ratelimitv3.RateLimitResponse_RateLimit_MINUTE, time.Minute},
	{ratelimitv3.RateLimitResponse_RateLimit_HOUR, time.Hour},
	{ratelimitv3.RateLimitResponse_RateLimit_DAY, 24 * time.Hour},
	{ratelimitv3.RateLimitResponse_RateLimit_WEEK, 7 * 24 * time.Hour},
	{ratelimitv3.RateLimitResponse_RateLimit_MONTH, 30 * 24 * time.Hour},
	{ratelimitv3.RateLimitResponse_RateLimit_YEAR, 365 * 24 * time.Hour},
}

// writeCurrentLimit tells the rate at which the bucket refills: in the unit that is its
// period, else in the shortest in which it is a whole number.
func writeCurrentLimit(name string, l *admission.TakeLevel) *ratelimitv3.RateLimitResponse_RateLimit {
	out := &ratelimitv3.RateLimitResponse_RateLimit{Name: name, RequestsPerUnit: clamp(l.Refill)}
	for _, u := range units {
		if l.Period == u.period {
			out.Unit = u.unit
			return out
		}
	}
	for _, u := range units {
		if l.Period > 0 && u.period%l.Period == 0 {
			times := int64(u.period / l.Period)
			out.Unit, out.RequestsPerUnit = u.unit, clamp(l.Refill*min(times, math.MaxUint32/max(l.Refill, 1)+1))
			return out
		}
	}
	return out
}

// rateLimitHeaders are those that the client of Envoy's is shown: what limits there are
// and how they stand, as the IETF's draft-ietf-httpapi-ratelimit-headers-10 has them,
// and when to come back.
func rateLimitHeaders(rows []judgedDescriptor) []*corev3.HeaderValue {
	var policies, limits []string
	tightest := map[string]int{}
	var order []string
	for i := range rows {
		d := &rows[i]
		if d.rule == nil || d.shadow || d.level == nil {
			continue
		}
		j, seen := tightest[d.rule.Name]
		if !seen {
			order = append(order, d.rule.Name)
		}
		if !seen || d.over() && !rows[j].over() || d.over() == rows[j].over() && d.left < rows[j].left {
			tightest[d.rule.Name] = i
		}
	}
	for _, name := range order {
		policy, limit := limitHeaders(&rows[tightest[name]])
		policies, limits = append(policies, policy), append(limits, limit)
	}
	var out []*corev3.HeaderValue
	add := func(key, value string) { out = append(out, &corev3.HeaderValue{Key: key, Value: value}) }
	if len(limits) > 0 {
		add("ratelimit-policy", strings.Join(policies, ", "))
		add("ratelimit", strings.Join(limits, ", "))
	}
	if after, ok := retryAfterAll(rows); ok {
		add("retry-after", strconv.FormatInt(int64(after/time.Second), 10))
	}
	return out
}

// maxHeaderInteger is the greatest that a structured field may have.
const maxHeaderInteger = 999_999_999_999_999

// limitHeaders returns the items of a limit in both headers. The window is the time in
// which an empty bucket fills.
func limitHeaders(d *judgedDescriptor) (policy, limit string) {
	l := d.level
	policy = fmt.Sprintf("%q;q=%d", d.rule.Name, min(l.Capacity, maxHeaderInteger))
	if w := fillTime(l); w > 0 {
		policy += ";w=" + strconv.FormatInt(w, 10)
	}
	limit = fmt.Sprintf("%q;r=%d", d.rule.Name, min(d.left, maxHeaderInteger))
	if d.reset > 0 {
		limit += ";t=" + strconv.FormatInt(int64(d.reset/time.Second), 10)
	}
	return policy, limit
}

// fillTime is in how many seconds an empty bucket fills, rounded up; 0 for never.
func fillTime(l *admission.TakeLevel) int64 {
	if l.Refill == 0 {
		return 0
	}
	// Capacities beyond what a float counts exactly fill in times that nobody waits for.
	seconds := math.Ceil(float64(l.Capacity) / float64(l.Refill) * l.Period.Seconds())
	return int64(min(seconds, maxHeaderInteger))
}

// retryAfterAll is when the whole request may pass, if time alone brings that.
func retryAfterAll(rows []judgedDescriptor) (after time.Duration, ok bool) {
	for i := range rows {
		d := &rows[i]
		if !d.over() {
			continue
		}
		if d.held.RetryAfter == admission.Absent {
			return 0, false
		}
		after, ok = max(after, d.reset), true
	}
	return after, ok
}

// rateLimitMetadata tells Envoy's logs why descriptors are refused, and which would be
// if their rules did more than watch.
func rateLimitMetadata(rows []judgedDescriptor) *structpb.Struct {
	fields := map[string]*structpb.Value{}
	for _, watched := range []bool{false, true} {
		var list []*structpb.Value
		for i := range rows {
			if d := &rows[i]; d.held != nil && d.shadow == watched {
				list = append(list, structpb.NewStructValue(heldMetadata(i, d)))
			}
		}
		if len(list) > 0 {
			name := map[bool]string{false: "over_limit", true: "shadow_over_limit"}[watched]
			fields[name] = structpb.NewListValue(&structpb.ListValue{Values: list})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return &structpb.Struct{Fields: fields}
}

func heldMetadata(place int, d *judgedDescriptor) *structpb.Struct {
	fields := map[string]*structpb.Value{
		"descriptor": structpb.NewNumberValue(float64(place)),
		"rule":       structpb.NewStringValue(d.rule.Name),
		"reason":     structpb.NewStringValue(d.held.Reason.String()),
	}
	if d.held.RetryAfter != admission.Absent {
		fields["retry_after_ms"] = structpb.NewNumberValue(float64(d.held.RetryAfter.Milliseconds()))
	}
	return &structpb.Struct{Fields: fields}
}
