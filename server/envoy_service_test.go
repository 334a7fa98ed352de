package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimitcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	"github.com/admitd/admit/raftstore"
)

const edgePolicy = `
pools:
- name: edge
  buckets:
  - {name: site, scope: POOL, capacity: 10, refill: 10, period: 1s}
  - {name: login, scope: TENANT, capacity: 3, refill: 3, period: 1m}
  - {name: odd, scope: TENANT, capacity: 5, refill: 2, period: 90s}
  - {name: often, scope: POOL, capacity: 5, refill: 5, period: 100ms}
  - {name: shut, scope: TENANT, blocked: true}
  envoy:
    rules:
    - {name: health, match: {path: /healthz}, unlimited: true}
    - {name: site, match: {generic_key: site}, buckets: [site]}
    - {name: login, match: {path: /login, remote_address: "*"}, buckets: [login]}
    - {name: watch, match: {watch: "*"}, buckets: [login], shadow: true}
    - {name: odd, match: {odd: "*"}, buckets: [odd]}
    - {name: often, match: {often: "*"}, buckets: [often]}
    - {name: shut, match: {shut: "*"}, buckets: [shut]}
- name: watched
  enforcement: SHADOW
  buckets: [{name: one, scope: POOL, capacity: 1, refill: 1, period: 1h}]
  envoy: {rules: [{name: all, match: {k: "*"}, buckets: [one]}]}
`

// edge is a server over a store with that policy, and a client as Envoy is.
type edge struct {
	*testing.T
	store *fakeStore
	ratelimitv3.RateLimitServiceClient
	h *harness
}

func startEdge(t *testing.T) *edge {
	t.Helper()
	store := newFakeStore()
	_, core, err := policy.Load("edge", []byte(edgePolicy))
	if err != nil {
		t.Fatal(err)
	}
	store.apply(raftstore.Request{Op: admission.ApplyPolicy{Policy: core, ExpectedRevision: admission.AnyRevision}})
	h := start(t, store)
	return &edge{t, store, ratelimitv3.NewRateLimitServiceClient(h.conn), h}
}

type rlDescriptor = ratelimitcommonv3.RateLimitDescriptor

// entries makes a descriptor of keys and values in turn.
func entries(pairs ...string) *rlDescriptor {
	d := &rlDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &ratelimitcommonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

func login(address string) *rlDescriptor { return entries("path", "/login", "remote_address", address) }

func hits(d *rlDescriptor, n uint64) *rlDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func back(d *rlDescriptor) *rlDescriptor {
	d.IsNegativeHits = true
	return d
}

func (e *edge) ask(domain string, addend uint32, ds ...*rlDescriptor) *ratelimitv3.RateLimitResponse {
	e.Helper()
	resp, err := e.ShouldRateLimit(soon(e.T), &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: ds, HitsAddend: addend})
	if err != nil {
		e.Fatal(err)
	}
	if len(resp.GetStatuses()) != len(ds) {
		e.Fatalf("%d statuses for %d descriptors", len(resp.GetStatuses()), len(ds))
	}
	if resp.GetOverallCode() == ratelimitv3.RateLimitResponse_UNKNOWN {
		e.Fatal("the answer is UNKNOWN, which lets all pass")
	}
	return resp
}

// printed is an answer: its code and of each status code, limit, what is left and the
// seconds until it is reset.
func printed(resp *ratelimitv3.RateLimitResponse) string {
	var b strings.Builder
	b.WriteString(resp.GetOverallCode().String())
	for _, s := range resp.GetStatuses() {
		fmt.Fprintf(&b, " | %s", s.GetCode())
		if l := s.GetCurrentLimit(); l != nil {
			fmt.Fprintf(&b, " %s %d/%s", l.GetName(), l.GetRequestsPerUnit(), l.GetUnit())
		}
		fmt.Fprintf(&b, " %d", s.GetLimitRemaining())
		if d := s.GetDurationUntilReset(); d != nil {
			fmt.Fprintf(&b, " %v", d.AsDuration())
		}
	}
	return b.String()
}

func (e *edge) want(resp *ratelimitv3.RateLimitResponse, want string) {
	e.Helper()
	if got := printed(resp); got != want {
		e.Errorf("got  %s\nwant %s", got, want)
	}
}

func headers(resp *ratelimitv3.RateLimitResponse) string {
	var all []string
	for _, h := range resp.GetResponseHeadersToAdd() {
		all = append(all, h.GetKey()+": "+h.GetValue())
	}
	return strings.Join(all, "\n")
}

func TestEnvoysRequests(t *testing.T) {
	e := startEdge(t)
	e.want(e.ask("edge", 0, login("10.0.0.1")), "OK | OK login 3/MINUTE 2 20s")
	e.want(e.ask("edge", 1, login("10.0.0.1")), "OK | OK login 3/MINUTE 1 40s")
	e.want(e.ask("edge", 0, login("10.0.0.2")), "OK | OK login 3/MINUTE 2 20s") // each address has its own
	e.want(e.ask("edge", 2, login("10.0.0.1")), "OVER_LIMIT | OVER_LIMIT login 3/MINUTE 1 20s")
	e.want(e.ask("edge", 1, login("10.0.0.1")), "OK | OK login 3/MINUTE 0 1m0s")
	e.want(e.ask("edge", 0, hits(login("10.0.0.1"), 0)), "OVER_LIMIT | OVER_LIMIT login 3/MINUTE 0 20s")
	e.want(e.ask("edge", 0, hits(login("10.0.0.2"), 0)), "OK | OK login 3/MINUTE 2 20s") // which takes nothing
	e.want(e.ask("edge", 7, hits(login("10.0.0.2"), 1)), "OK | OK login 3/MINUTE 1 40s") // its own addend
	e.want(e.ask("edge", 0, back(hits(login("10.0.0.1"), 2))), "OK | OK login 3/MINUTE 2 20s")
	e.want(e.ask("edge", 0, back(hits(login("10.0.0.1"), 1<<60))), "OK | OK login 3/MINUTE 3")
	e.want(e.ask("edge", 0, back(hits(login("10.0.0.1"), 0))), "OK | OK 0")
	e.want(e.ask("edge", 0, hits(login("10.0.0.1"), math.MaxUint64)), "OVER_LIMIT | OVER_LIMIT login 3/MINUTE 3 1s")
	e.want(e.ask("edge", 0, entries("odd", "x")), "OK | OK odd 80/HOUR 4 45s")
	e.want(e.ask("edge", 0, entries("often", "x")), "OK | OK often 50/SECOND 4 1s")
	e.want(e.ask("edge", 0, entries("shut", "x")), "OVER_LIMIT | OVER_LIMIT shut 0/UNKNOWN 0 1s")
	e.want(e.ask("edge", 0, entries("path", "/healthz"), entries("nobody", "knows")), "OK | OK 4294967295 | OK 0")
	e.want(e.ask("elsewhere", 0, login("10.0.0.1"), login("10.0.0.2")), "OK | OK 0 | OK 0")
}

// All descriptors are decided together: where one is over, the others take nothing.
func TestEnvoysDescriptorsAreDecidedTogether(t *testing.T) {
	e := startEdge(t)
	site := entries("generic_key", "site")
	e.want(e.ask("edge", 3, site, login("a")), "OK | OK site 10/SECOND 7 1s | OK login 3/MINUTE 0 1m0s")
	e.want(e.ask("edge", 0, site, login("a")), "OVER_LIMIT | OK site 10/SECOND 7 1s | OVER_LIMIT login 3/MINUTE 0 20s")
	e.want(e.ask("edge", 2, login("b"), login("b")), "OVER_LIMIT | OK login 3/MINUTE 3 | OVER_LIMIT login 3/MINUTE 1 1s")
	e.want(e.ask("edge", 0, login("b"), hits(login("b"), 2)), "OK | OK login 3/MINUTE 0 1m0s | OK login 3/MINUTE 0 1m0s")
}

func TestEnvoysHeaders(t *testing.T) {
	e := startEdge(t)
	resp := e.ask("edge", 3, entries("generic_key", "site"), login("a"), entries("path", "/healthz"))
	want := "ratelimit-policy: \"site\";q=10;w=1, \"login\";q=3;w=60\nratelimit: \"site\";r=7;t=1, \"login\";r=0;t=60"
	if got := headers(resp); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	e.store.at = e.store.at.Add(500 * time.Millisecond)
	resp = e.ask("edge", 0, login("a"))
	want = "ratelimit-policy: \"login\";q=3;w=60\nratelimit: \"login\";r=0;t=20\nretry-after: 20" // 19.5 s, rounded up
	if got := headers(resp); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	over := resp.GetDynamicMetadata().GetFields()["over_limit"].GetListValue().GetValues()[0].GetStructValue().AsMap()
	if over["rule"] != "login" || over["reason"] != "TENANT_RATE" || over["retry_after_ms"] != 19500.0 || over["descriptor"] != 0.0 {
		t.Errorf("metadata is %v", over)
	}
	e.store.at = e.store.at.Add(19499 * time.Millisecond)
	e.want(e.ask("edge", 0, login("a")), "OVER_LIMIT | OVER_LIMIT login 3/MINUTE 0 1s")
	e.store.at = e.store.at.Add(time.Millisecond)
	e.want(e.ask("edge", 0, login("a")), "OK | OK login 3/MINUTE 0 1m0s")
	// Where time alone brings nothing, no time is told.
	if got := headers(e.ask("edge", 0, entries("shut", "x"))); strings.Contains(got, "retry-after") {
		t.Errorf("got\n%s", got)
	}
}

// What only watches is told in metadata alone, and hides nothing that holds.
func TestEnvoysShadow(t *testing.T) {
	e := startEdge(t)
	for range 3 {
		e.want(e.ask("edge", 0, entries("watch", "x")), "OK | OK 0")
	}
	resp := e.ask("edge", 3, entries("watch", "x"), login("a"))
	e.want(resp, "OK | OK 0 | OK login 3/MINUTE 0 1m0s")
	if got := headers(resp); strings.Contains(got, "watch") {
		t.Errorf("got\n%s", got)
	}
	shadow := resp.GetDynamicMetadata().GetFields()["shadow_over_limit"].GetListValue().GetValues()
	if len(shadow) != 1 || shadow[0].GetStructValue().AsMap()["rule"] != "watch" {
		t.Errorf("metadata is %v", resp.GetDynamicMetadata())
	}
	for range 3 {
		e.want(e.ask("watched", 0, entries("k", "v")), "OK | OK 0")
	}
	for _, want := range []string{
		`admit_envoy_descriptors_total{decision="shadow_over_limit",pool="edge",rule="watch"} 1`,
		`admit_envoy_descriptors_total{decision="shadow_over_limit",pool="watched",rule="all"} 2`,
		`admit_envoy_descriptors_total{decision="ok",pool="edge",rule="login"} 1`,
	} {
		if !strings.Contains(scrape(t, e.h.reg), want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestEnvoysRequestsThatAreNone(t *testing.T) {
	e := startEdge(t)
	for name, in := range map[string]*ratelimitv3.RateLimitRequest{
		"no domain":      {Descriptors: []*rlDescriptor{login("a")}},
		"no descriptors": {Domain: "edge"},
		"no entries":     {Domain: "edge", Descriptors: []*rlDescriptor{{}}},
		"no key":         {Domain: "edge", Descriptors: []*rlDescriptor{entries("", "x")}},
		"too many":       {Domain: "edge", Descriptors: make([]*rlDescriptor, maxDescriptors+1)},
	} {
		if _, err := e.ShouldRateLimit(soon(t), in); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for err, want := range map[error]codes.Code{
		raftstore.ErrNoQuorum: codes.Unavailable, raftstore.ErrOutcomeUnknown: codes.Aborted,
		raftstore.ErrShuttingDown: codes.Unavailable,
	} {
		e.store.fail = err
		for _, domain := range []string{"edge", "elsewhere"} { // who knows nothing knows no domain
			if _, got := e.ShouldRateLimit(soon(t), &ratelimitv3.RateLimitRequest{Domain: domain, Descriptors: []*rlDescriptor{login("a")}}); status.Code(got) != want {
				t.Errorf("%v is told as %v", err, got)
			}
		}
	}
}

// A new policy holds from the next request on, and a limit that a descriptor brings
// changes nothing.
func TestEnvoysRulesFollowThePolicy(t *testing.T) {
	e := startEdge(t)
	own := login("a")
	own.Limit = &ratelimitcommonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1000, Unit: typev3.RateLimitUnit_SECOND}
	e.want(e.ask("edge", 0, own), "OK | OK login 3/MINUTE 2 20s")
	if !strings.Contains(scrape(t, e.h.reg), "admit_envoy_overrides_ignored_total 1") {
		t.Error("it is not counted")
	}
	_, core, err := policy.Load("edge", []byte(strings.ReplaceAll(edgePolicy, "capacity: 3, refill: 3", "capacity: 9, refill: 3")))
	if err != nil {
		t.Fatal(err)
	}
	e.store.apply(raftstore.Request{Op: admission.ApplyPolicy{Policy: core, ExpectedRevision: admission.AnyRevision}})
	e.want(e.ask("edge", 0, login("a")), "OK | OK login 3/MINUTE 7 40s")
	core.Pools = slices.Clone(core.Pools)
	core.Pools[0].Envoy = nil
	e.store.apply(raftstore.Request{Op: admission.ApplyPolicy{Policy: core, ExpectedRevision: admission.AnyRevision}})
	e.want(e.ask("edge", 0, login("a")), "OK | OK 0")
	if !strings.Contains(scrape(t, e.h.reg), `admit_envoy_unmatched_total{unknown="descriptor"} 1`) {
		t.Error("it is not counted")
	}
}
