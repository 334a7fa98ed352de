package simulate

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// The limits of a workload.
const (
	maxSpan    = 24 * time.Hour
	maxJobs    = 2_000_000
	maxTenants = 100_000
	maxWorkers = 100_000
)

// parser reads a workload for a policy.
type parser struct {
	policy.Reader
	w *Workload
}

// Parse reads a workload file; name is what errors call it, and p the policy that
// it is for. The error is a *policy.FileError with all that is wrong.
func Parse(name string, data []byte, p admission.Policy) (*Workload, error) {
	root, err := policy.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := &parser{w: &Workload{Name: name, policy: p}}
	r.workload(root)
	if err := policy.NewFileError(name, r.Problems); err != nil {
		return nil, err
	}
	return r.w, nil
}

func (r *parser) workload(root *yaml.Node) {
	parts := map[string]*yaml.Node{}
	names := []string{"duration", "drain", "seed", "streams", "workers", "expect"}
	for _, p := range r.Known(root, "a mapping with duration, streams and workers", "key", names) {
		parts[p.Key.Value] = p.Value
	}
	for _, needed := range []string{"duration", "streams", "workers"} {
		if parts[needed] == nil && root.Kind == yaml.MappingNode {
			r.Fail(root, "expected %s", needed)
		}
	}
	if node := parts["duration"]; node != nil {
		r.w.Duration = r.Duration(node, time.Millisecond, maxSpan)
	}
	if node := parts["drain"]; node != nil {
		r.w.Drain = r.Duration(node, 0, maxSpan)
	}
	if node := parts["seed"]; node != nil {
		r.w.Seed = uint64(r.Number(node, 0, 1<<53))
	}
	r.list(parts["streams"], "a list of streams", r.stream)
	r.list(parts["workers"], "a list of workers", r.workers)
	if len(r.Problems) == 0 {
		r.match()
	}
	r.list(parts["expect"], "a list of expectations", r.expectation)
}

// list reads each item of a list that may be absent.
func (r *parser) list(node *yaml.Node, what string, one func(*yaml.Node)) {
	if node == nil {
		return
	}
	items := r.Items(node, what)
	if node.Kind == yaml.SequenceNode && len(items) == 0 {
		r.Fail(node, "expected at least one")
	}
	for _, item := range items {
		one(item)
	}
}

// match gives each stream its workers, and bounds the whole.
func (r *parser) match() {
	jobs := 0.0
	for _, s := range r.w.Streams {
		jobs += s.Arrivals.jobs(len(s.Tenants))
		for _, g := range r.w.Workers {
			if !slices.Contains(g.Streams, s.Name) {
				continue
			}
			if s.by != nil || g.Pool != s.Pool {
				r.Fail(s.node, "expected one group of workers to name stream %s, of its own pool", s.Name)
			}
			s.by = g
		}
		polled := slices.ContainsFunc(r.w.Workers, func(g *Workers) bool { return g.kind.due() && g.Pool == s.Pool })
		if s.by == nil && !polled {
			r.Fail(s.node, "expected workers for stream %s: some that poll pool %s, or that name it", s.Name, s.Pool)
		}
		if s.by == nil && s.Cost != 1 {
			r.Fail(s.node, "expected cost 1 in stream %s: due work costs 1", s.Name)
		}
	}
	if jobs > maxJobs {
		r.Fail(r.w.Streams[0].node, "expected at most %d jobs in all, got about %.0f", int64(maxJobs), jobs)
	}
}

// pool reads the name of a pool.
func (r *parser) pool(node *yaml.Node) string {
	name := r.Text(node)
	if r.poolNamed(name) == nil {
		r.Fail(node, "%s", unknown("pool", name, r.poolNames()))
	}
	return name
}

// onlyPool is the pool where none is named, or empty.
func (r *parser) onlyPool(node *yaml.Node) string {
	if names := r.poolNames(); len(names) == 1 {
		return names[0]
	}
	r.Fail(node, "expected pool: the policy has %d", len(r.w.policy.Pools))
	return ""
}

func (r *parser) poolNames() []string {
	var names []string
	for _, p := range r.w.policy.Pools {
		names = append(names, p.Name)
	}
	return names
}

func (r *parser) poolNamed(name string) *admission.PoolPolicy {
	i := slices.IndexFunc(r.w.policy.Pools, func(p admission.PoolPolicy) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &r.w.policy.Pools[i]
}

var labels = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)

// label reads a name as the API takes it.
func (r *parser) label(node *yaml.Node) string {
	name := r.Text(node)
	if !labels.MatchString(name) && node.Kind == yaml.ScalarNode {
		r.Fail(node, "expected 1 to 128 of A-Z a-z 0-9 . _ : / -, got %s", policy.Found(node))
	}
	return name
}

// lanesOf returns the names of a pool's lanes, highest first.
func lanesOf(p *admission.PoolPolicy) []string {
	if len(p.Lanes) == 0 {
		return []string{"default"}
	}
	names := make([]string, len(p.Lanes))
	for i, l := range p.Lanes {
		names[i] = l.Name
	}
	return names
}

func unknown(kind, name string, known []string) string {
	if len(known) == 0 {
		return fmt.Sprintf("unknown %s %q, there is none", kind, name)
	}
	message, _ := policy.Unknown(kind, name, known)
	return message
}
