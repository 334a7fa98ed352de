package server

import (
	"strconv"

	ratelimitcommonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/descriptor"
)

// The limits of a request of Envoy's.
const (
	maxDescriptors = 100
	maxEntries     = 32
)

// rateLimitRequest is what a request asks for.
type rateLimitRequest struct {
	domain      string
	descriptors []askedDescriptor
}

// askedDescriptor is one descriptor. Hits 0 only asks, negative ones give back.
type askedDescriptor struct {
	entries []descriptor.Entry
	hits    int64
	// idle says that nothing is given back: there is nothing to decide.
	idle bool
	// overridden says that it brings a limit of its own.
	overridden bool
}

func readRateLimit(in *ratelimitv3.RateLimitRequest) (*rateLimitRequest, error) {
	c := newChecker()
	if in.GetDomain() == "" {
		c.fail("domain", "is required")
	}
	if c.count("descriptors", len(in.GetDescriptors()), maxDescriptors); c.err() != nil {
		return nil, c.err()
	}
	r := &rateLimitRequest{domain: in.GetDomain(), descriptors: make([]askedDescriptor, len(in.GetDescriptors()))}
	for i, d := range in.GetDescriptors() {
		r.descriptors[i] = c.in("descriptors", i).descriptor(d, in.GetHitsAddend())
	}
	return r, c.err()
}

// descriptor reads one; addend is what the request says for those that say nothing.
func (c checker) descriptor(d *ratelimitcommonv3.RateLimitDescriptor, addend uint32) askedDescriptor {
	a := askedDescriptor{hits: max(int64(addend), 1), overridden: d.GetLimit() != nil}
	if own := d.GetHitsAddend(); own != nil {
		a.hits = int64(min(own.GetValue(), maxCost))
	}
	if d.GetIsNegativeHits() {
		a.hits, a.idle = -a.hits, a.hits == 0
	}
	if !c.count("entries", len(d.GetEntries()), maxEntries) {
		return a
	}
	for i, e := range d.GetEntries() {
		if e.GetKey() == "" {
			c.fail("entries["+strconv.Itoa(i)+"].key", "is required")
		}
		a.entries = append(a.entries, descriptor.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	return a
}

// rateLimitQuery is a request with the rules that its descriptors match.
type rateLimitQuery struct {
	*rateLimitRequest
	// known says that the domain is a pool, shadow that it only watches.
	known, shadow bool
	// rules are by descriptor; nil is none.
	rules []*descriptor.Rule
	// op is what they take together. A request that takes nothing has an empty one: a
	// node that does not lead does not know that.
	op *admission.Take
	// parts are the places in op by descriptor, -1 for none.
	parts []int
}

// by returns the request as the rules of its domain have it.
func (r *rateLimitRequest) by(domain *envoyDomain) *rateLimitQuery {
	n := len(r.descriptors)
	q := &rateLimitQuery{rateLimitRequest: r, rules: make([]*descriptor.Rule, n), parts: make([]int, n), op: &admission.Take{Pool: r.domain}}
	if domain != nil {
		q.known, q.shadow = true, domain.shadow
	}
	for i, d := range r.descriptors {
		if q.parts[i] = -1; domain == nil {
			continue
		}
		rule := domain.Match(d.entries)
		if q.rules[i] = rule; rule == nil || rule.Unlimited || d.idle {
			continue
		}
		q.parts[i] = len(q.op.Parts)
		q.op.Parts = append(q.op.Parts, rule.Part(d.entries, d.hits))
	}
	return q
}
