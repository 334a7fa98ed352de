package envoyimport

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/internal/policy"
)

// configured is one descriptor of such a file, with those that are nested in it.
type configured struct {
	node *yaml.Node
	key  string
	// value is empty for any.
	value  string
	limit  *limit
	shadow bool
	// shared says that all values for a `*` have one counter.
	shared bool
	// What has no equal, by the key that says it.
	replaces, metric *yaml.Node
	strange          []*yaml.Node
	nested           []*configured
}

// limit is what a descriptor is limited to.
type limit struct {
	unit      string
	requests  int64
	unlimited bool
	name      string
}

// units are those of the reference service, with their lengths in seconds.
var units = map[string]int64{
	"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400, "month": 30 * 86400, "year": 365 * 86400,
}

func unitNames() []string {
	return []string{"second", "minute", "hour", "day", "week", "month", "year"}
}

var (
	rootKeys       = []string{"domain", "descriptors"}
	descriptorKeys = []string{
		"key", "value", "rate_limit", "descriptors", "shadow_mode", "detailed_metric", "value_to_metric", "share_threshold", "quota_mode",
	}
	limitKeys = []string{"unit", "requests_per_unit", "unlimited", "name", "replaces"}
)

// reader turns nodes into a config.
type reader struct{ policy.Reader }

func (r *reader) root(node *yaml.Node) (domain *yaml.Node, list []*configured) {
	for _, p := range r.Known(node, "a mapping with domain and descriptors", "key", rootKeys) {
		switch p.Key.Value {
		case "domain":
			r.Text(p.Value)
			domain = p.Value
		case "descriptors":
			list = r.descriptors(p.Value)
		}
	}
	if domain == nil {
		r.Fail(node, "expected a domain")
	}
	return domain, list
}

func (r *reader) descriptors(node *yaml.Node) (list []*configured) {
	for _, item := range r.Items(node, "a list of descriptors") {
		d := r.descriptor(item)
		twin := func(o *configured) bool { return o.key == d.key && o.value == d.value }
		if slices.ContainsFunc(list, twin) && d.key != "" {
			r.Fail(item, "key %q with value %q is given twice", d.key, d.value)
		}
		list = append(list, d)
	}
	return list
}

func (r *reader) descriptor(node *yaml.Node) *configured {
	d := &configured{node: node}
	for _, p := range r.Known(node, "a descriptor", "key", descriptorKeys) {
		switch p.Key.Value {
		case "key":
			d.key = r.Text(p.Value)
		case "value":
			d.value = r.Text(p.Value)
		case "rate_limit":
			d.limit = r.limit(p.Value, d)
		case "descriptors":
			d.nested = r.descriptors(p.Value)
		case "shadow_mode":
			d.shadow = r.Flag(p.Value)
		case "share_threshold":
			d.shared = r.Flag(p.Value)
		case "detailed_metric", "value_to_metric":
			if r.Flag(p.Value) {
				d.metric = p.Key
			}
		default:
			d.strange = append(d.strange, p.Key)
		}
	}
	if d.key == "" {
		r.Fail(node, "expected a key")
	}
	return d
}

func (r *reader) limit(node *yaml.Node, d *configured) *limit {
	l := &limit{requests: -1}
	for _, p := range r.Known(node, "a rate limit", "key", limitKeys) {
		switch p.Key.Value {
		case "unit":
			l.unit = strings.ToLower(r.Text(p.Value))
			if units[l.unit] == 0 {
				message, _ := policy.Unknown("unit", p.Value.Value, unitNames())
				r.Fail(p.Value, "%s", message)
			}
		case "requests_per_unit":
			l.requests = r.Number(p.Value, 0, math.MaxUint32)
		case "unlimited":
			l.unlimited = r.Flag(p.Value)
		case "name":
			l.name = r.Text(p.Value)
		case "replaces":
			d.replaces = p.Key
		}
	}
	switch {
	case l.unlimited && l.unit != "":
		r.Fail(node, "expected no unit beside unlimited")
	case !l.unlimited && l.unit == "":
		r.Fail(node, "expected a unit")
	}
	l.requests = max(l.requests, 0) // as the reference service has it where none are given
	return l
}
