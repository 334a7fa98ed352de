package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// expectation is one key of a step's expect.
type expectation struct {
	name  string
	line  int
	check check
}

// check compares what was wanted with what came, in words.
type check func(o *outcome) (want, got string, ok bool)

// anywhere are the keys that any verb's expect may have.
var anywhere = []string{"grants", "expired"}

// expectReaders read what each key of expect wants.
var expectReaders = map[string]func(r *reader, s *step, node *yaml.Node) check{
	"granted":    count(func(o *outcome) int64 { return o.granted }),
	"shed":       count(func(o *outcome) int64 { return o.shed }),
	"replayed":   count(func(o *outcome) int64 { return o.replayed }),
	"borrowed":   count(func(o *outcome) int64 { return o.borrowed }),
	"would_shed": count(func(o *outcome) int64 { return o.wouldShed }),
	"waiting":    readWaiting,
	"grants":     names(func(o *outcome) []string { return o.grants }),
	"expired":    names(func(o *outcome) []string { return o.expired }),

	"reason":        word(lastReason),
	"error":         word(func(o *outcome) string { return orNone(o.refusal) }),
	"retry_after":   wait(lastRetryAfter),
	"next_due_in":   wait(func(o *outcome) time.Duration { return o.nextDueIn }),
	"max_grantable": count(lastMaxGrantable),
	"blocking":      readBlocking,

	"claims":   readClaims,
	"keys":     readKeys,
	"attempts": readAttempts,
	"held":     readHeld,

	"ok":     readOK,
	"result": word(lastLease),

	"active":         count(func(o *outcome) int64 { return o.run.health(o.pool).Active }),
	"dead":           count(func(o *outcome) int64 { return o.run.health(o.pool).Dead }),
	"skipped":        count(func(o *outcome) int64 { return o.run.health(o.pool).Skipped }),
	"due":            count(func(o *outcome) int64 { return o.run.due(o.pool) }),
	"tenants":        readTenants,
	"lanes":          readLanes,
	"buckets":        readBuckets,
	"tenant_buckets": readTenantBuckets,
}

func (r *reader) expects(s *step, node *yaml.Node) {
	names := slices.Concat(s.verb.expects, anywhere)
	for _, p := range r.Known(node, "what "+s.verb.name+" may come to", s.verb.name+" expectation", names) {
		read := expectReaders[p.Key.Value]
		s.expects = append(s.expects, expectation{p.Key.Value, p.Key.Line, read(r, s, p.Value)})
	}
}

func count(get func(o *outcome) int64) func(*reader, *step, *yaml.Node) check {
	return func(r *reader, _ *step, node *yaml.Node) check {
		b := r.bound(node)
		return func(o *outcome) (string, string, bool) { return b.check(get(o)) }
	}
}

// readWaiting reads how many began to wait, of a state how many do.
func readWaiting(r *reader, s *step, node *yaml.Node) check {
	if s.verb.name == "state" {
		return count(func(o *outcome) int64 { return o.run.health(o.pool).Waiting })(r, s, node)
	}
	return count(func(o *outcome) int64 { return o.waiting })(r, s, node)
}

// names is a list of names, in order.
func names(get func(o *outcome) []string) func(*reader, *step, *yaml.Node) check {
	return func(r *reader, _ *step, node *yaml.Node) check {
		want := r.Texts(node)
		return func(o *outcome) (string, string, bool) {
			got := get(o)
			return brackets(want), brackets(got), slices.Equal(want, got)
		}
	}
}

func word(get func(o *outcome) string) func(*reader, *step, *yaml.Node) check {
	return func(r *reader, _ *step, node *yaml.Node) check {
		want := r.Text(node)
		return func(o *outcome) (string, string, bool) {
			got := get(o)
			return want, got, got == want
		}
	}
}

// wait is a duration, or none.
func wait(get func(o *outcome) time.Duration) func(*reader, *step, *yaml.Node) check {
	return func(r *reader, _ *step, node *yaml.Node) check {
		want := r.wait(node)
		return func(o *outcome) (string, string, bool) {
			got := roundUp(get(o))
			return waitText(want), waitText(got), got == want
		}
	}
}

func (r *reader) wait(node *yaml.Node) time.Duration {
	if node.Kind == yaml.ScalarNode && node.Value == "none" {
		return admission.Absent
	}
	if _, err := time.ParseDuration(node.Value); err != nil || node.Kind != yaml.ScalarNode {
		r.Fail(node, "expected a duration such as 1500ms, or none, got %s", policy.Found(node))
		return 0
	}
	return r.Duration(node, 0, maxSpan)
}

func waitText(d time.Duration) string {
	if d == admission.Absent {
		return "none"
	}
	return policy.Short(d)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func lastReason(o *outcome) string {
	if o.lastShed == nil {
		return "none"
	}
	return o.lastShed.Reason.String()
}

func lastRetryAfter(o *outcome) time.Duration {
	if o.lastShed == nil {
		return admission.Absent
	}
	return o.lastShed.RetryAfter
}

func lastMaxGrantable(o *outcome) int64 {
	if o.lastShed == nil {
		return admission.Absent
	}
	return o.lastShed.MaxGrantable
}

func readBlocking(r *reader, _ *step, node *yaml.Node) check {
	want := r.Texts(node)
	slices.Sort(want)
	return func(o *outcome) (string, string, bool) {
		var got []string
		if o.lastShed != nil {
			for _, l := range o.lastShed.Blocking {
				got = append(got, l.Name)
			}
		}
		slices.Sort(got)
		return brackets(want), brackets(got), slices.Equal(want, got)
	}
}

func lastLease(o *outcome) string {
	if len(o.leases) == 0 {
		return "none"
	}
	return leaseNames[o.leases[len(o.leases)-1]]
}

// readOK reads whether every renewal or release did what it was asked.
func readOK(r *reader, _ *step, node *yaml.Node) check {
	want := r.Flag(node)
	return func(o *outcome) (string, string, bool) {
		got := []string{}
		all := len(o.leases) > 0
		for _, l := range o.leases {
			if l != admission.LeaseRenewed && l != admission.LeaseReleased {
				all = false
				got = append(got, leaseNames[l])
			}
		}
		return fmt.Sprint(want), strings.Join(append([]string{fmt.Sprint(all)}, got...), " "), all == want
	}
}
