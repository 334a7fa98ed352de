package envoy

import (
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/admitd/admit/bench/admitd"
)

func TestAnswersAreRead(t *testing.T) {
	found := &ratelimit.RateLimitResponse_DescriptorStatus{CurrentLimit: &ratelimit.RateLimitResponse_RateLimit{}}
	answer := func(code ratelimit.RateLimitResponse_Code, s *ratelimit.RateLimitResponse_DescriptorStatus) *ratelimit.RateLimitResponse {
		return &ratelimit.RateLimitResponse{OverallCode: code, Statuses: []*ratelimit.RateLimitResponse_DescriptorStatus{s}}
	}
	for _, test := range []struct {
		name       string
		answer     *ratelimit.RateLimitResponse
		passes, ok bool
	}{
		{"under the limit", answer(ratelimit.RateLimitResponse_OK, found), true, true},
		{"over it", answer(ratelimit.RateLimitResponse_OVER_LIMIT, found), false, true},
		{"no limit", answer(ratelimit.RateLimitResponse_OK, &ratelimit.RateLimitResponse_DescriptorStatus{}), false, false},
		{"unknown", answer(ratelimit.RateLimitResponse_UNKNOWN, found), false, false},
	} {
		if passes, err := passed(test.answer); passes != test.passes || (err == nil) != test.ok {
			t.Errorf("%s: %v, %v", test.name, passes, err)
		}
	}
}

func TestAllowedIsWhatComesBackAndOneBurst(t *testing.T) {
	for i, want := range []float64{900, 501} {
		l := limits[i]
		in := 8 * time.Second
		if l.period == time.Hour {
			in = 7200 * time.Millisecond
		}
		if got := l.allows(in); got != want {
			t.Errorf("%.0f %s allow %v in %v, want %v", l.tokens, l.per, got, in, want)
		}
	}
}

func TestOnlyAnswersAreAdmitted(t *testing.T) {
	rounds := []killed{
		{{Requests: 450, Calls: 900, Failed: 100, Elapsed: 8 * time.Second}, {Requests: 1002, Calls: 1000, Elapsed: 7200 * time.Millisecond}},
	}
	side := Side{System: admitd.New(admitd.Programs{}, 3, ""), Store: Store{Killed: "the leader"}, Barred: true}
	facts := side.report(rounds)
	for i, want := range []float64{0.5, 2, 5} {
		if got := facts[i].Rounds[0]; got != want {
			t.Errorf("%s: %v, want %v", facts[i].What, got, want)
		}
	}
	if facts[0].Most == nil || facts[2].Most != nil {
		t.Error("what is admitted has no bar, or what failed has one")
	}
}
