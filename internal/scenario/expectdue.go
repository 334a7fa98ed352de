package scenario

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

// readClaims reads what each tenant is to get; one that is not named gets
// nothing.
func readClaims(r *reader, _ *step, node *yaml.Node) check {
	wanted := r.bounds(node)
	return func(o *outcome) (string, string, bool) {
		have := maps.Clone(o.claims)
		if have == nil {
			have = map[string]int64{}
		}
		want := maps.Clone(wanted)
		for tenant := range have {
			if _, named := want[tenant]; !named {
				want[tenant] = bound{}
			}
		}
		for tenant := range want {
			have[tenant] += 0
		}
		return want.check(have)
	}
}

func readKeys(r *reader, _ *step, node *yaml.Node) check {
	want := r.Texts(node)
	return func(o *outcome) (string, string, bool) {
		return brackets(want), brackets(o.keys), slices.Equal(want, o.keys)
	}
}

func readAttempts(r *reader, _ *step, node *yaml.Node) check {
	want := r.bounds(node)
	return func(o *outcome) (string, string, bool) { return want.check(o.attempts) }
}

// heldWant is what is wanted of one held tenant.
type heldWant struct {
	reason     string
	due        *bound
	retryAfter *time.Duration
}

func readHeld(r *reader, _ *step, node *yaml.Node) check {
	wanted := map[string]heldWant{}
	for _, tenant := range r.Pairs(node, "held tenants by name") {
		var w heldWant
		for _, p := range r.Known(tenant.Value, "reason, due, retry_after", "key", []string{"reason", "due", "retry_after"}) {
			switch p.Key.Value {
			case "reason":
				w.reason = r.Text(p.Value)
			case "due":
				w.due = new(r.bound(p.Value))
			case "retry_after":
				w.retryAfter = new(r.wait(p.Value))
			}
		}
		wanted[tenant.Key.Value] = w
	}
	return func(o *outcome) (string, string, bool) { return checkHeld(wanted, o) }
}

func checkHeld(wanted map[string]heldWant, o *outcome) (want, got string, ok bool) {
	var wants, gots []string
	ok = true
	for _, tenant := range slices.Sorted(maps.Keys(wanted)) {
		w, row := wanted[tenant], o.heldRow(tenant)
		wantParts, gotParts := []string{}, []string{}
		compare := func(name, want, got string, holds bool) {
			wantParts = append(wantParts, name+": "+want)
			gotParts = append(gotParts, name+": "+got)
			ok = ok && holds
		}
		if row == nil {
			wants, gots, ok = append(wants, tenant+": held"), append(gots, tenant+": not held"), false
			continue
		}
		if w.reason != "" {
			compare("reason", w.reason, row.Reason.String(), w.reason == row.Reason.String())
		}
		if w.due != nil {
			compare("due", w.due.String(), fmt.Sprint(row.Due), w.due.holds(row.Due))
		}
		if w.retryAfter != nil {
			compare("retry_after", waitText(*w.retryAfter), waitText(row.RetryAfter), *w.retryAfter == row.RetryAfter)
		}
		wants, gots = append(wants, tenant+": "+braces(wantParts)), append(gots, tenant+": "+braces(gotParts))
	}
	return braces(wants), braces(gots), ok
}

// heldRow returns what the tenant has held in its highest lane after the last
// call, or nil.
func (o *outcome) heldRow(tenant string) *admission.HeldTenant {
	if o.lastCall == nil {
		return nil
	}
	q := admission.SheddingQuery{Pool: o.pool, Tenant: tenant, HeldRows: 1, Call: o.lastCall}
	shedding := o.run.state.Shedding(o.run.now, o.run.wall(), q)
	for _, lane := range shedding.Lanes {
		for i := range shedding.Held {
			if row := &shedding.Held[i]; row.Tenant == tenant && row.Lane == lane.Lane {
				return row
			}
		}
	}
	return nil
}
