package simulate

import (
	"testing"
	"time"
)

// replay runs a workload against a policy, both as texts.
func replay(t *testing.T, policy, workload string) *run {
	t.Helper()
	w, err := Parse("workload.yaml", []byte(workload), loadPolicy(t, []byte(policy)))
	if err != nil {
		t.Fatal(err)
	}
	r := play(t, w)
	checkBooks(t, r)
	return r
}

// expectAll fails the test where an expectation of the workload does not hold.
func (r *run) expectAll(t *testing.T) {
	t.Helper()
	for _, c := range r.report(0).Breaches() {
		t.Errorf("line %d: %s", c.Line, c)
	}
}

// Those who wait are served by weight, one at a time, and leave no slot idle.
func TestWaiters(t *testing.T) {
	r := replay(t, `
pools:
- {name: p, max_active: 10, tenants: {overrides: [{id: t1, weight: 3}]}}
`, `
duration: 60s
streams:
- {name: work, tenants: {prefix: t, count: 4}, arrivals: {burst: {count: 1000, at: 0s}}, work: {range: [500ms, 1500ms]}}
workers:
- {name: callers, kind: wait, max_wait: 60s, streams: [work]}
expect:
- fair_bound: true
- jain: {at_least: 0.999}
- share: {tenant: t1, between: [0.49, 0.51]}
- idle_slot_time: {at_most: 0s}
- grants: {at_least: 550}
`)
	r.expectAll(t)
}

// A wait that is over is a refusal, and the caller asks again.
func TestWaitsEnd(t *testing.T) {
	r := replay(t, `pools: [{name: p, max_active: 1}]`, `
duration: 20s
drain: 1m
streams:
- {name: long, tenant: a, arrivals: {burst: {count: 1, at: 0s}}, work: 15s}
- {name: short, tenant: b, arrivals: {burst: {count: 1, at: 1s}}, work: 1s}
workers:
- {name: callers, kind: wait, max_wait: 2s, streams: [long, short]}
expect:
- sheds: {stream: short, reason: POOL_CAP, between: [3, 8]}
- wait_max: {stream: short, between: [13s, 15s]}
- left: {at_most: 0}
`)
	r.expectAll(t)
	if r.now > 30*1e9 {
		t.Error("went on until ", time.Duration(r.now))
	}
}

// What is promised to those who return holds for callers in line as for polls.
func TestReclaimByWaiters(t *testing.T) {
	w := profile(t, "reclaim", change{
		"{name: workers, kind: long_poll, count: 20, max_items: 10}",
		"{name: callers, kind: wait, max_wait: 60s, streams: [lent, own1, own2, own3, own4, own5, own6, own7, own8]}",
	})
	for _, s := range w.Streams { // no need of so many in line
		s.Arrivals.count = min(s.Arrivals.count, 900)
	}
	play(t, w).expectAll(t)
}

// A lane that yields takes nothing while logins wait, and is counted each time.
func TestYields(t *testing.T) {
	r := replay(t, `
pools:
- name: p
  max_active: 10
  lanes: [{name: high}, {name: low, yield: {above: 2, resume: 0}}]
  categories: {otp: high, news: low}
`, `
duration: 10s
streams:
- {name: news, tenant: shop, category: news, arrivals: {burst: {count: 200, at: 0s}}, work: 200ms}
- {name: otp, tenant: bank, category: otp, arrivals: {burst: {count: 20, at: 1050ms}}, work: 200ms}
workers:
- {name: callers, kind: wait, max_wait: 60s, streams: [news, otp]}
expect:
- yield_switches: {lane: low, between: [2, 2]}
- yield_switches: {lane: high, at_most: 0}
- idle_slot_time: {at_most: 0s}
- wait_max: {lane: high, between: [100ms, 400ms]}
`)
	r.expectAll(t)
}
