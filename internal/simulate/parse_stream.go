package simulate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

var streamKeys = []string{
	"name", "pool", "tenant", "tenants", "category", "cost", "routes", "arrivals", "work", "failure_rate", "throttle",
}

func (r *parser) stream(node *yaml.Node) {
	s := &Stream{node: node, Cost: 1, Routes: 1, RetryAfter: admission.Absent}
	var category *yaml.Node
	for _, p := range r.Known(node, "a stream", "key", streamKeys) {
		switch p.Key.Value {
		case "name":
			s.Name = r.label(p.Value)
		case "pool":
			s.Pool = r.pool(p.Value)
		case "tenant":
			s.Tenants = append(s.Tenants, r.label(p.Value))
		case "tenants":
			s.Tenants = append(s.Tenants, r.tenants(p.Value)...)
		case "category":
			category, s.Category = p.Value, r.Text(p.Value)
		case "cost":
			s.Cost = r.Number(p.Value, 1, 1<<53)
		case "routes":
			s.Routes = r.Number(p.Value, 1, 10_000)
		case "arrivals":
			s.Arrivals = r.arrivals(p.Value)
		case "work":
			s.Work = r.spread(p.Value)
		case "failure_rate":
			s.FailureRate = r.Real(p.Value, 0, 1)
		case "throttle":
			r.throttle(p.Value, s)
		}
	}
	if node.Kind != yaml.MappingNode {
		return
	}
	if s.Pool == "" {
		s.Pool = r.onlyPool(node)
	}
	r.checkStream(node, category, s)
	r.w.Streams = append(r.w.Streams, s)
}

func (r *parser) checkStream(node, category *yaml.Node, s *Stream) {
	switch {
	case s.Name == "":
		r.Fail(node, "expected a name")
	case r.streamNamed(s.Name) != nil:
		r.Fail(node, "two streams are named %q", s.Name)
	}
	if len(s.Tenants) == 0 {
		r.Fail(node, "expected tenant or tenants")
	}
	if s.Arrivals.kind == 0 {
		r.Fail(node, "expected arrivals")
	}
	if s.Arrivals.kind != arriveBurst && s.Arrivals.until == 0 {
		s.Arrivals.until = r.w.Duration
	}
	pool := r.poolNamed(s.Pool)
	if pool == nil {
		return
	}
	if category != nil && pool.Categories[s.Category] == "" {
		r.Fail(category, "%s", unknown("category", s.Category, slices.Sorted(maps.Keys(pool.Categories))))
	}
	if s.ThrottleRate > 0 && !throttles(pool, s.Bucket) {
		r.Fail(node, "expected throttle to name a bucket of the pool, or the pool to have one of scope POOL alone")
	}
}

// throttles says whether the pool has the bucket; without a name it is the only
// POOL bucket.
func throttles(p *admission.PoolPolicy, bucket string) bool {
	n := 0
	for _, b := range p.Buckets {
		if b.Name == bucket || bucket == "" && b.Scope == admission.ScopePool {
			n++
		}
	}
	return n == 1
}

func (r *parser) streamNamed(name string) *Stream {
	for _, s := range r.w.Streams {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// tenants reads a list of names, or {prefix, count}.
func (r *parser) tenants(node *yaml.Node) []string {
	if node.Kind == yaml.SequenceNode {
		var names []string
		for _, item := range r.Items(node, "names") {
			names = append(names, r.label(item))
		}
		return names
	}
	prefix, count := "", int64(0)
	for _, p := range r.Known(node, "a list of names or {prefix, count}", "key", []string{"prefix", "count"}) {
		switch p.Key.Value {
		case "prefix":
			prefix = r.label(p.Value)
		case "count":
			count = r.Number(p.Value, 1, maxTenants)
		}
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprint(prefix, i+1)
	}
	return names
}

func (r *parser) arrivals(node *yaml.Node) arrivals {
	var a arrivals
	kinds := []string{"constant", "poisson", "burst", "zipf"}
	for _, p := range r.Known(node, "one of constant, poisson, burst, zipf", "arrivals", kinds) {
		if a.kind != 0 {
			r.Fail(p.Key, "expected one kind of arrivals")
			break
		}
		a.kind = arrivalKinds[p.Key.Value]
		r.arrivalFields(p.Key, p.Value, &a)
	}
	return a
}

func (r *parser) arrivalFields(key, node *yaml.Node, a *arrivals) {
	fields := map[arrivalKind][]string{
		arriveConstant: {"rate", "from", "until"},
		arrivePoisson:  {"rate", "from", "until"},
		arriveBurst:    {"count", "at"},
		arriveZipf:     {"rate", "exponent", "from", "until"},
	}[a.kind]
	for _, p := range r.Known(node, "a mapping", key.Value+" field", fields) {
		switch p.Key.Value {
		case "rate":
			a.rate = r.Real(p.Value, 0.000_01, 1_000_000)
		case "exponent":
			a.exponent = r.Real(p.Value, 0, 10)
		case "count":
			a.count = r.Number(p.Value, 1, maxJobs)
		case "at", "from":
			a.from = r.Duration(p.Value, 0, maxSpan)
		case "until":
			a.until = r.Duration(p.Value, time.Nanosecond, maxSpan)
		}
	}
	switch {
	case a.kind == arriveBurst && a.count == 0:
		r.Fail(key, "expected count")
	case a.kind != arriveBurst && a.rate == 0:
		r.Fail(key, "expected rate, in jobs per second")
	case a.until != 0 && a.until <= a.from:
		r.Fail(key, "expected until to be after from")
	}
}

// spread reads 100ms, {exponential: 100ms} or {range: [50ms, 150ms]}.
func (r *parser) spread(node *yaml.Node) spread {
	if node.Kind != yaml.MappingNode {
		return spread{lo: r.Duration(node, 0, maxSpan)}
	}
	var s spread
	for _, p := range r.Known(node, "a duration", "distribution", []string{"exponential", "range"}) {
		if p.Key.Value == "exponential" {
			s = spread{exponential: true, lo: r.Duration(p.Value, 0, maxSpan)}
			continue
		}
		ends := r.Items(p.Value, "two durations")
		if len(ends) != 2 {
			r.Fail(p.Value, "expected two durations, the least and the most")
			continue
		}
		s.lo = r.Duration(ends[0], 0, maxSpan)
		s.hi = r.Duration(ends[1], s.lo, maxSpan)
	}
	return s
}

func (r *parser) throttle(node *yaml.Node, s *Stream) {
	for _, p := range r.Known(node, "a mapping with rate", "throttle field", []string{"rate", "retry_after", "bucket"}) {
		switch p.Key.Value {
		case "rate":
			s.ThrottleRate = r.Real(p.Value, 0, 1)
		case "retry_after":
			s.RetryAfter = r.Duration(p.Value, 0, maxSpan)
		case "bucket":
			s.Bucket = r.Text(p.Value)
		}
	}
}
