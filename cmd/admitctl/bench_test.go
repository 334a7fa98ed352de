package main

import (
	"math"
	"testing"
	"time"
)

// A quantile is never below what it stands for, and hardly above.
func TestLatencies(t *testing.T) {
	var l latencies
	for i := 1; i <= 1000; i++ {
		l.add(time.Duration(i) * time.Millisecond)
	}
	for perMille, want := range map[int64]time.Duration{500: 500 * time.Millisecond, 990: 990 * time.Millisecond, 999: 999 * time.Millisecond} {
		if got := l.quantile(perMille); got < want || got > want+want/32 {
			t.Errorf("of %d in a thousand: %s, want %s", perMille, got, want)
		}
	}
	if got := l.quantile(1000); got != time.Second {
		t.Errorf("the longest is %s", got)
	}
	if got := new(latencies).quantile(500); got != 0 {
		t.Errorf("of none: %s", got)
	}
}

// Every duration has a bucket, which ends where the next begins.
func TestLatencyBuckets(t *testing.T) {
	for i := range len(latencies{}.buckets) {
		end := bucketEnd(i)
		if got := latencyBucket(end); got != i {
			t.Fatalf("%d, the end of bucket %d, is in %d", end, i, got)
		}
		if end == math.MaxInt64 {
			if i != len(latencies{}.buckets)-1 {
				t.Fatalf("bucket %d is the last of %d", i, len(latencies{}.buckets))
			}
			return
		}
		if got := latencyBucket(end + 1); got != i+1 {
			t.Fatalf("%d, after bucket %d, is in %d", end+1, i, got)
		}
	}
	t.Error("no bucket has the longest duration")
}
