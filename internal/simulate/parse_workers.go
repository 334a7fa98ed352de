package simulate

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

var workerFields = map[workerKind][]string{
	workPoll:     {"name", "pool", "kind", "count", "start", "ttl", "crash", "max_items", "lanes", "interval"},
	workLongPoll: {"name", "pool", "kind", "count", "start", "ttl", "crash", "max_items", "lanes"},
	workWait:     {"name", "pool", "kind", "count", "start", "ttl", "crash", "streams", "max_wait"},
	workAcquire:  {"name", "pool", "kind", "count", "start", "ttl", "crash", "streams"},
	workSidecar:  {"name", "pool", "kind", "count", "crash", "streams", "tokens"},
}

func (r *parser) workers(node *yaml.Node) {
	g := &Workers{MaxItems: 1}
	pairs := r.Pairs(node, "workers")
	if node.Kind != yaml.MappingNode {
		return
	}
	for _, p := range pairs {
		if p.Key.Value == "kind" {
			g.kind = workerKinds[r.Text(p.Value)]
			if g.kind == 0 {
				r.Fail(p.Value, "%s", unknown("kind of workers", p.Value.Value, slices.Sorted(maps.Keys(workerKinds))))
				return
			}
		}
	}
	if g.kind == 0 {
		r.Fail(node, "expected kind: poll, long_poll, wait, acquire or sidecar")
		return
	}
	for _, p := range r.Known(node, "workers", "field of workers that "+verbs[g.kind], workerFields[g.kind]) {
		r.workerField(p.Key, p.Value, g)
	}
	r.checkWorkers(node, g)
	r.w.Workers = append(r.w.Workers, g)
}

var verbs = map[workerKind]string{workPoll: "poll", workLongPoll: "long-poll", workWait: "wait", workAcquire: "acquire", workSidecar: "are sidecars"}

func (r *parser) workerField(key, node *yaml.Node, g *Workers) {
	switch key.Value {
	case "name":
		g.Name = r.label(node)
	case "pool":
		g.Pool = r.pool(node)
	case "count":
		g.Count = r.Number(node, 1, maxWorkers)
	case "start":
		g.Start = r.Duration(node, 0, maxSpan)
	case "ttl":
		g.TTL = r.Duration(node, time.Second, maxSpan)
	case "crash":
		r.crash(node, g)
	case "max_items":
		g.MaxItems = r.Number(node, 1, 1000)
	case "lanes":
		g.Lanes = r.Texts(node)
	case "interval":
		g.Interval = r.Duration(node, time.Millisecond, maxSpan)
	case "tokens":
		g.Tokens = r.Number(node, 0, admission.MaxTokens)
	case "streams":
		g.Streams = r.streams(node)
	case "max_wait":
		g.MaxWait = r.Duration(node, time.Millisecond, time.Minute)
	}
}

func (r *parser) checkWorkers(node *yaml.Node, g *Workers) {
	if g.Name == "" {
		r.Fail(node, "expected a name")
	}
	if g.Pool == "" {
		g.Pool = r.onlyPool(node)
	}
	switch {
	case g.kind.due() && g.Count == 0:
		r.Fail(node, "expected count: how many workers poll")
	case g.kind == workSidecar && g.Count == 0:
		r.Fail(node, "expected count: how many sidecars there are")
	case g.kind == workSidecar && g.CrashRate != 0:
		r.Fail(node, "expected crash with at: sidecars have no jobs at whose end they vanish")
	case g.kind == workPoll && g.Interval == 0:
		r.Fail(node, "expected interval: how often they poll")
	case g.kind == workWait && g.MaxWait == 0:
		r.Fail(node, "expected max_wait: how long they wait")
	case !g.kind.due() && len(g.Streams) == 0:
		r.Fail(node, "expected streams: whose work they ask for")
	}
	if pool := r.poolNamed(g.Pool); pool != nil {
		for _, l := range g.Lanes {
			if known := lanesOf(pool); !slices.Contains(known, l) {
				r.Fail(node, "%s", unknown("lane", l, known))
			}
		}
	}
}

// streams reads names of streams.
func (r *parser) streams(node *yaml.Node) []string {
	names := r.Texts(node)
	for _, name := range names {
		if r.streamNamed(name) == nil {
			r.Fail(node, "%s", unknown("stream", name, r.streamNames()))
		}
	}
	return names
}

func (r *parser) streamNames() []string {
	var names []string
	for _, s := range r.w.Streams {
		names = append(names, s.Name)
	}
	return names
}

func (r *parser) crash(node *yaml.Node, g *Workers) {
	for _, p := range r.Known(node, "a mapping with rate or at", "crash field", []string{"rate", "at", "restart"}) {
		switch p.Key.Value {
		case "rate":
			g.CrashRate = r.Real(p.Value, 0, 1)
		case "at":
			g.CrashAt = r.Duration(p.Value, time.Millisecond, maxSpan)
		case "restart":
			g.Restart = r.Duration(p.Value, 0, maxSpan)
		}
	}
	if g.CrashRate == 0 && g.CrashAt == 0 {
		r.Fail(node, "expected rate or at")
	}
}
