package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// rowPart is one number of a tenant's row, in the words of "tenant set".
type rowPart struct {
	// flag is as it is typed, up to the part: "--weight ", "--bucket fair-use:".
	flag string
	// name is the part of a flag that has several, "capacity=".
	name, value string
}

// rowParts are what a row says; what it leaves open is not among them.
func rowParts(t *admitv1.Tenant) (parts []rowPart) {
	number := func(flag string, n *int64) {
		if n != nil {
			parts = append(parts, rowPart{flag: flag, value: fmt.Sprint(*n)})
		}
	}
	number("--weight ", t.Weight)
	number("--preferred-active ", t.PreferredActive)
	number("--max-active ", t.MaxActive)
	if t.GetLane() != "" {
		parts = append(parts, rowPart{flag: "--lane ", value: t.GetLane()})
	}
	for _, lane := range slices.Sorted(maps.Keys(t.GetLaneMaxActive())) {
		limit := t.GetLaneMaxActive()[lane]
		number("--lane-max-active "+lane+"=", &limit)
	}
	for _, name := range slices.Sorted(maps.Keys(t.GetBuckets())) {
		b, flag := t.GetBuckets()[name], "--bucket "+name+":"
		if b.GetBlocked() {
			parts = append(parts, rowPart{flag, "blocked", ""})
			continue
		}
		if b.Capacity != nil {
			parts = append(parts, rowPart{flag, "capacity=", fmt.Sprint(b.GetCapacity())})
		}
		if b.Refill != nil {
			parts = append(parts, rowPart{flag, "refill=", fmt.Sprint(b.GetRefill())})
		}
		if b.Period != nil {
			parts = append(parts, rowPart{flag, "period=", short(b.GetPeriod())})
		}
	}
	return parts
}

// rowText writes a row as the flags that make it.
func rowText(t *admitv1.Tenant) string {
	var b strings.Builder
	last := ""
	for _, p := range rowParts(t) {
		switch {
		case p.name != "" && p.flag == last:
			b.WriteString(",")
		case b.Len() > 0:
			b.WriteString(" " + p.flag)
		default:
			b.WriteString(p.flag)
		}
		b.WriteString(p.name + p.value)
		last = p.flag
	}
	return b.String()
}

// resetText says what is not as it was though the row that was asked for does not name
// it.
func resetText(before, now, asked *admitv1.Tenant) string {
	index := func(t *admitv1.Tenant) map[string]string {
		values := map[string]string{}
		for _, p := range rowParts(t) {
			values[p.flag+p.name] = p.value
		}
		return values
	}
	was, is, named := index(before), index(now), index(asked)
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(was)) {
		value, still := is[key]
		_, meant := named[key]
		switch {
		case meant || still && value == was[key]:
		case still:
			lost = append(lost, fmt.Sprintf("%s%s (was %s)", key, value, was[key]))
		default:
			lost = append(lost, fmt.Sprintf("no %s (was %s)", strings.TrimRight(key, " =:"), was[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		_, had := was[key]
		if _, meant := named[key]; !had && !meant {
			lost = append(lost, fmt.Sprintf("%s%s (was none)", key, is[key]))
		}
	}
	return strings.Join(lost, ", ")
}

// bucketOverride reads what follows the name in --bucket.
func bucketOverride(numbers string) (*admitv1.BucketOverride, error) {
	own := &admitv1.BucketOverride{}
	for part := range strings.SplitSeq(numbers, ",") {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "blocked":
			own.Blocked = true
		case "capacity", "refill":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("expected a number as %s, got %q", key, value)
			}
			if key == "capacity" {
				own.Capacity = &n
			} else {
				own.Refill = &n
			}
		case "period":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, fmt.Errorf("expected a duration such as 1m as period, got %q", value)
			}
			own.Period = durationpb.New(d)
		default:
			return nil, fmt.Errorf("expected capacity=N, refill=N, period=D or blocked, got %q", part)
		}
	}
	return own, nil
}
