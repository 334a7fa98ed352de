package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// Callers who don't wait come back when they were told to.
func TestAcquirers(t *testing.T) {
	r := replay(t, `
pools:
- name: p
  buckets: [{name: b, scope: POOL, capacity: 1, refill: 1, period: 1s}]
`, `
duration: 10s
streams:
- {name: a, tenant: a, arrivals: {burst: {count: 1, at: 0s}}, work: 1s}
- {name: b, tenant: b, arrivals: {burst: {count: 1, at: 500ms}}, work: 1s}
workers:
- {name: callers, kind: acquire, streams: [a, b]}
expect:
- sheds: {stream: b, reason: POOL_RATE, between: [1, 1]}
- wait_max: {stream: b, between: [500ms, 500ms]} # the told time comes true
- left: {at_most: 0}
`)
	r.expectAll(t)
}

// What can never be granted is given up, and its worker takes the next job.
func TestNeverGrantable(t *testing.T) {
	r := replay(t, `
pools:
- name: p
  buckets: [{name: b, scope: POOL, capacity: 2, refill: 1, period: 1s}]
`, `
duration: 10s
streams:
- {name: big, tenant: a, cost: 3, arrivals: {burst: {count: 2, at: 0s}}}
- {name: small, tenant: a, arrivals: {burst: {count: 2, at: 0s}}}
workers:
- {name: callers, kind: acquire, count: 1, streams: [big, small]}
expect:
- sheds: {stream: big, reason: NEVER_GRANTABLE, between: [2, 2]}
- grants: {stream: small, between: [2, 2]}
- left: {at_most: 0}
`)
	r.expectAll(t)
	if report := r.report(0); report.Dead != 2 || report.Done != 2 {
		t.Errorf("%d given up and %d done", report.Dead, report.Done)
	}
}

// A long job keeps its permit, whose TTL is shorter, as long as its worker lives.
func TestLongJobsRenew(t *testing.T) {
	r := replay(t, `pools: [{name: p, permit_ttl: 2s}]`, `
duration: 1m
streams:
- {name: a, tenant: a, arrivals: {burst: {count: 10, at: 0s}}, work: 30s}
workers:
- {name: w, kind: long_poll, count: 2, max_items: 5}
expect:
- grants: {between: [10, 10]}
- lost: {at_most: 0}
- left: {at_most: 0}
`)
	r.expectAll(t)
}

// Work comes back after a failure, a throttle and the loss of its worker, however
// it was asked for.
func TestMishaps(t *testing.T) {
	r := replay(t, `
pools:
- name: p
  permit_ttl: 2s
  retry: {max_attempts: 50, base: 100ms, max: 1s}
  buckets: [{name: b, scope: POOL, capacity: 100, refill: 100, period: 1s}]
`, `
duration: 10s
drain: 10m
seed: 3
streams:
- name: due
  tenants: {prefix: t, count: 3}
  arrivals: {poisson: {rate: 10}}
  work: {exponential: 50ms}
  failure_rate: 0.1
  throttle: {rate: 0.02, retry_after: 200ms}
- name: direct
  tenants: {prefix: t, count: 3}
  arrivals: {poisson: {rate: 5}}
  work: {exponential: 50ms}
  throttle: {rate: 0.02, retry_after: 200ms, bucket: b}
workers:
- {name: pollers, kind: poll, interval: 100ms, count: 4, max_items: 4, crash: {rate: 0.05, restart: 100ms}}
- {name: callers, kind: acquire, count: 4, streams: [direct], crash: {rate: 0.05, restart: 100ms}}
expect:
- left: {at_most: 0}
- lost: {stream: due, at_least: 10}
- lost: {stream: direct, at_least: 3}
- recovery_max: {between: [2s, 4s]}
`)
	r.expectAll(t)
	if report := r.report(0); report.Dead != 0 {
		t.Errorf("%d were given up", report.Dead)
	}
}

// Due work that fails for good is given up.
func TestDeadLetters(t *testing.T) {
	r := replay(t, `pools: [{name: p, retry: {max_attempts: 2, base: 1s}}]`, `
duration: 10s
streams:
- {name: a, tenant: a, arrivals: {burst: {count: 5, at: 0s}}, work: 1s, failure_rate: 1}
workers:
- {name: w, kind: long_poll, count: 5}
`)
	if report := r.report(0); report.Dead != 5 || report.Done != 0 || report.Pools[0].Grants != 10 {
		t.Errorf("%d given up, %d done, %d grants", report.Dead, report.Done, report.Pools[0].Grants)
	}
}

const twoPools = `
pools:
- name: p
  max_active: 2
  lanes: [{name: high}, {name: low, leave_slots: 1}]
  categories: {otp: high, news: low}
  tenants: {defaults: {lane: high}}
- name: q
  buckets: [{name: own, scope: TENANT, capacity: 2, refill: 2, period: 1s}]
`

const twoPoolsWork = `
duration: 20s
seed: 9
streams:
- {name: otp, pool: p, tenant: a, category: otp, arrivals: {poisson: {rate: 2}}, work: {exponential: 300ms}}
- {name: news, pool: p, tenant: a, category: news, arrivals: {burst: {count: 100, at: 1s}}, work: {exponential: 300ms}}
- {name: plain, pool: p, tenant: b, arrivals: {constant: {rate: 1, from: 2s, until: 12s}}, work: 100ms}
- {name: rated, pool: q, tenants: [x, y], arrivals: {zipf: {rate: 20, exponent: 1}}, work: 10ms}
workers:
- {name: p, pool: p, kind: long_poll, count: 3}
- {name: q, pool: q, kind: long_poll, count: 3}
expect:
- idle_slot_time: {at_most: 0s}
- unasked_slot_time: {pool: p, at_most: 0s}
- grants: {stream: plain, between: [10, 10]}
- grants: {stream: rated, tenant: x, between: [40, 42]}
- fair_bound: true
`

// Pools, lanes, a tenant's own lane and own buckets are what the policy says.
func TestPoolsApart(t *testing.T) {
	replay(t, twoPools, twoPoolsWork).expectAll(t)
}

// The same files and seed give the same report; another seed another one.
func TestReplaysAreTheSame(t *testing.T) {
	reports := map[string]bool{}
	for _, seed := range []string{"seed: 9", "seed: 9", "seed: 10"} {
		work := bytes.Replace([]byte(twoPoolsWork), []byte("seed: 9"), []byte(seed), 1)
		text, err := json.Marshal(replay(t, twoPools, string(work)).report(10))
		if err != nil {
			t.Fatal(err)
		}
		reports[string(text)] = true
	}
	if len(reports) != 2 {
		t.Errorf("%d different reports of two seeds", len(reports))
	}
}

// A stream left out changes nothing about when the jobs of the others arrive and
// how long they take.
func TestStreamsHaveNumbersOfTheirOwn(t *testing.T) {
	w, err := Parse("w.yaml", []byte(twoPoolsWork), loadPolicy(t, []byte(twoPools)))
	if err != nil {
		t.Fatal(err)
	}
	all, some := play(t, w), play(t, w.without([]string{"otp", "news", "plain"}))
	rated := func(r *run) durations {
		return r.waits(selector{stream: "rated"})
	}
	if !reflect.DeepEqual(rated(all), rated(some)) || len(rated(all)) == 0 {
		t.Errorf("the waits of one pool depend on what another has to do")
	}
}

// What the core can't decide ends the run with its words.
func TestUndecidable(t *testing.T) {
	w, err := Parse("w.yaml", []byte(twoPoolsWork), loadPolicy(t, []byte(twoPools)))
	if err != nil {
		t.Fatal(err)
	}
	w.Streams[0].ThrottleRate, w.Streams[0].Bucket = 1, "gone"
	_, err = w.Run(0)
	var why *admission.Error
	if err == nil || !errors.As(err, &why) || why.Reason != admission.InvalidField {
		t.Errorf("ended with %v", err)
	}
}

func TestQuantile(t *testing.T) {
	d := durations{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0.5: 3, 0.99: 5, 1: 5, 0.2: 1, 0.21: 2} {
		if got := d.quantile(q); got != want {
			t.Errorf("%g: %d, want %d", q, got, want)
		}
	}
	if got := (durations{}).quantile(0.5); got != 0 {
		t.Error("of none: ", got)
	}
}
