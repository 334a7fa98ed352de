package envoyimport_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/descriptor"
	"github.com/admitd/admit/internal/envoyimport"
	"github.com/admitd/admit/internal/policy"
)

// service decides requests by an imported file, in virtual time.
type service struct {
	*testing.T
	*envoyimport.Imported
	state *admission.State
	rules *descriptor.Rules
	pool  string
	at    admission.Instant
}

func serve(t *testing.T, file string) *service {
	t.Helper()
	got, err := envoyimport.Read("config.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	core, violations := policy.FromProto(got.Policy)
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	s := &service{T: t, Imported: got, state: admission.New(), rules: descriptor.Compile(&core.Pools[0]), pool: core.Pools[0].Name}
	s.apply(admission.ApplyPolicy{Policy: core, ExpectedRevision: admission.AnyRevision})
	return s
}

func (s *service) apply(op admission.Op) admission.Result {
	return s.state.Apply(admission.Entry{Index: s.state.Index() + 1, T: s.at, W: admission.Wall(s.at), Ops: []admission.Op{op}})[0]
}

// d makes a descriptor of `key=value`.
func d(pairs ...string) (entries []descriptor.Entry) {
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		entries = append(entries, descriptor.Entry{Key: key, Value: value})
	}
	return entries
}

// passes says whether a request with these descriptors does.
func (s *service) passes(descriptors ...[]descriptor.Entry) bool {
	s.Helper()
	op := &admission.Take{Pool: s.pool}
	for _, entries := range descriptors {
		if rule := s.rules.Match(entries); rule != nil && !rule.Unlimited {
			op.Parts = append(op.Parts, rule.Part(entries, 1))
		}
	}
	res := s.apply(op).(*admission.TakeResult)
	if res.Err != nil {
		s.Fatal(res.Err)
	}
	return !res.Refused
}

// most counts how many requests in a row pass, up to a thousand.
func (s *service) most(descriptors ...[]descriptor.Entry) (n int) {
	s.Helper()
	for n < 1000 && s.passes(descriptors...) {
		n++
	}
	return n
}

func (s *service) want(what string, got, want int) {
	s.Helper()
	if got != want {
		s.Errorf("%s: %d pass, want %d", what, got, want)
	}
}

const free = 1000

func TestTwoValues(t *testing.T) { // example 1
	s := serve(t, `
domain: mongo_cps
descriptors:
  - {key: database, value: users, rate_limit: {unit: second, requests_per_unit: 500}}
  - {key: database, value: default, rate_limit: {unit: second, requests_per_unit: 500}}
`)
	s.want("users", s.most(d("database=users")), 500)
	s.want("default, which has its own", s.most(d("database=default")), 500)
	s.want("others", s.most(d("database=other")), free)
}

func TestNestedDescriptors(t *testing.T) { // example 2
	s := serve(t, `
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {unit: day, requests_per_unit: 5}
  - key: to_number
    rate_limit: {unit: day, requests_per_unit: 100}
`)
	one, two := d("message_type=marketing", "to_number=2061111111"), d("message_type=marketing", "to_number=2062222222")
	s.want("a number", s.most(one, d("to_number=2061111111")), 5)
	s.want("another", s.most(two), 5)
	s.want("what is left of all for the first", s.most(d("to_number=2061111111")), 95)
	s.want("others' messages", s.most(d("message_type=otp", "to_number=2061111111")), free)
	// A refusal takes nothing of the other descriptor: there it would have.
	s.want("what is left of all for the first", s.most(one, d("to_number=2063333333")), 0)
	s.want("the number beside it", s.most(d("to_number=2063333333")), 100)
}

func TestTheMoreSpecificGoesFirst(t *testing.T) { // example 3
	s := serve(t, `
domain: edge_proxy_per_ip
descriptors:
  - key: remote_address
    rate_limit: {unit: second, requests_per_unit: 10}
  - key: remote_address
    value: 50.0.0.5
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: remote_address
    value: 50.0.0.6
`)
	s.want("an address", s.most(d("remote_address=50.0.0.1")), 10)
	s.want("another", s.most(d("remote_address=50.0.0.2")), 10)
	s.want("one on the black list", s.most(d("remote_address=50.0.0.5")), 0)
	s.want("one on the white list", s.most(d("remote_address=50.0.0.6")), free)
	s.at = s.at.Add(time.Hour)
	s.want("the black list, later", s.most(d("remote_address=50.0.0.5")), 0)
}

func TestDepth(t *testing.T) { // example 4
	s := serve(t, `
domain: example4
descriptors:
  - {key: key, value: value, rate_limit: {requests_per_unit: 3, unit: second}}
  - key: other
    value: value
    descriptors:
      - {key: subkey, rate_limit: {requests_per_unit: 4, unit: second}}
`)
	s.want("more entries than the rule", s.most(d("key=value", "subkey=x")), free)
	s.want("as many", s.most(d("other=value", "subkey=x")), 4)
	s.want("fewer", s.most(d("other=value")), free)
}

func TestUnlimited(t *testing.T) { // example 5
	s := serve(t, `
domain: internal
descriptors:
  - {key: ldap, rate_limit: {unlimited: true}}
  - {key: azure, rate_limit: {unit: minute, requests_per_unit: 100}}
`)
	s.want("unlimited", s.most(d("ldap=x")), free)
	s.want("limited", s.most(d("azure=x")), 100)
	if rule := s.rules.Match(d("ldap=x")); rule == nil || !rule.Unlimited {
		t.Error("the unlimited one is as if it were not there")
	}
}

func TestShadowMode(t *testing.T) { // example 6
	s := serve(t, `
domain: example6
descriptors:
  - key: service
    descriptors:
      - {key: user, value: user-a, rate_limit: {requests_per_unit: 10, unit: second}, shadow_mode: true}
      - {key: user, value: user-b, rate_limit: {requests_per_unit: 20, unit: second}}
`)
	s.want("a", s.most(d("service=auth-service", "user=user-a")), free)
	s.want("b", s.most(d("service=auth-service", "user=user-b")), 20)
	s.want("b of another service", s.most(d("service=other", "user=user-b")), 20)
}

func TestReplacesHasNoEqual(t *testing.T) { // example 7
	s := serve(t, `
domain: example7
descriptors:
  - key: key_1
    value: value_1
    descriptors:
      - {key: user, value: bkthomps, rate_limit: {name: specific_limit, requests_per_unit: 5, unit: second}}
  - key: key_2
    value: value_2
    descriptors:
      - key: user
        value: bkthomps
        rate_limit: {replaces: [{name: specific_limit}], requests_per_unit: 10, unit: second}
`)
	if len(s.Lost) != 1 || !strings.Contains(s.Lost[0].Message, "replaces") || s.Lost[0].Line != 13 {
		t.Errorf("told %+v", s.Lost)
	}
	// Both hold together: never more than there.
	s.want("both", s.most(d("key_1=value_1", "user=bkthomps"), d("key_2=value_2", "user=bkthomps")), 5)
	s.want("the second alone", s.most(d("key_2=value_2", "user=bkthomps")), 5)
}

func TestDetailedMetricIsNoted(t *testing.T) { // example 8
	s := serve(t, `
domain: example8
descriptors:
  - {key: key1, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 10}}
  - {key: key1, value: value1, rate_limit: {unit: minute, requests_per_unit: 20}}
`)
	if len(s.Lost) != 0 || len(s.Notes) != 1 {
		t.Errorf("told %+v %+v", s.Lost, s.Notes)
	}
	s.want("a value", s.most(d("key1=other")), 10)
	s.want("its own", s.most(d("key1=value1")), 20)
}

func TestWildcards(t *testing.T) { // example 9
	s := serve(t, `
domain: example9
descriptors:
  - {key: key1, value: value*, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: key2, value: value*, share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 20}}
`)
	s.want("one value", s.most(d("key1=value_1")), 20)
	s.want("another", s.most(d("key1=value_2")), 20)
	s.want("others", s.most(d("key1=other")), free)
	s.want("one that shares", s.most(d("key2=value_1")), 20)
	s.want("another that does", s.most(d("key2=value_2")), 0)
}

func TestUnits(t *testing.T) {
	for unit, period := range map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "HOUR": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour,
		"month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
	} {
		s := serve(t, "domain: u\ndescriptors: [{key: generic_key, value: v, rate_limit: {unit: "+unit+", requests_per_unit: 4}}]\n")
		s.want(unit, s.most(d("generic_key=v")), 4)
		s.at = s.at.Add(period - 1)
		s.want(unit+", most of it", s.most(d("generic_key=v")), 3)
		s.at = s.at.Add(1)
		s.want(unit+", the last", s.most(d("generic_key=v")), 1)
	}
}

// Where windows of a fixed grid let twice as many through around a boundary, a bucket
// does not.
func TestNoDoubleAtABoundary(t *testing.T) {
	s := serve(t, "domain: b\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 60}}]\n")
	s.at = s.at.Add(59 * time.Second)
	s.want("before the boundary", s.most(d("k=v")), 60)
	s.at = s.at.Add(2 * time.Second)
	s.want("after it", s.most(d("k=v")), 2)
}

// The reference service goes by the value where it has one, and never back to the key.
func TestNoWayBack(t *testing.T) {
	s := serve(t, `
domain: back
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 7}
    descriptors:
      - {key: c, rate_limit: {unit: minute, requests_per_unit: 3}}
      - {key: b, rate_limit: {unit: minute, requests_per_unit: 4}}
  - key: a
    value: x
    descriptors:
      - {key: b, rate_limit: {unit: minute, requests_per_unit: 5}}
`)
	s.want("another value", s.most(d("a=y", "c=1")), 3)
	s.want("the value, a key that only others limit", s.most(d("a=x", "c=1")), free)
	s.want("the value, a key that both limit", s.most(d("a=x", "b=1")), 5)
	s.want("the value alone", s.most(d("a=x")), free)
	s.want("another alone", s.most(d("a=y")), 7)
}

func TestWhatIsWrongIsTold(t *testing.T) {
	for file, want := range map[string]string{
		"descriptors: []":                                   "config.yaml:1:1: expected a domain",
		"domain: d\ndescriptors: [{value: v}]":              "config.yaml:2:15: expected a key",
		"domain: d\ndescriptors: [{key: k, rat_limit: {}}]": `config.yaml:2:24: unknown key "rat_limit", did you mean "rate_limit"?`,
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: fortnight, requests_per_unit: 1}}]":                       `config.yaml:2:43: unknown unit "fortnight"`,
		"domain: d\ndescriptors: [{key: k}, {key: k}]":                                                                  "config.yaml:2:25: key \"k\" with value \"\" is given twice",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, unlimited: true}}]":                                  "config.yaml:2:36: expected no unit beside unlimited",
		"domain: my domain\ndescriptors: []":                                                                            "config.yaml:1:9: has no equal in a policy: pools[0].name",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: -1}, descriptors: 1, value: {}}]": "config.yaml:2:67: expected a whole number",
	} {
		_, err := envoyimport.Read("config.yaml", []byte(file))
		var fe *policy.FileError
		if !errors.As(err, &fe) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\ntold %v\nwant %s", file, err, want)
		}
	}
	s := serve(t, "domain: d\ndescriptors: [{key: k, descriptors: [{key: k, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}]}]")
	if len(s.Lost) != 2 || !strings.Contains(s.Lost[0].Message, "a key twice") || !strings.Contains(s.Lost[1].Message, "quota_mode") {
		t.Errorf("told %+v", s.Lost)
	}
}

// There may be any number of rules with the same limit, and 32 different ones.
func TestManyLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("domain: many\ndescriptors:\n")
	for i := range 40 {
		b.WriteString("- {key: k" + strings.Repeat("x", i) + ", rate_limit: {unit: day, requests_per_unit: " + strings.Repeat("1", 1+i%3) + "}}\n")
	}
	s := serve(t, b.String())
	if n := len(s.Policy.GetPools()[0].GetBuckets()); n != 3 || len(s.Lost) > 0 {
		t.Errorf("%d buckets, lost %v", n, s.Lost)
	}
	s.want("each has its own", s.most(d("k=v")), 1)
	s.want("each has its own", s.most(d("kxxx=v")), 1)
}
