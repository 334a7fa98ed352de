package simulate

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	profiles = "../../docs/profiles"
	docsFile = "../../docs/simulate.md"
)

// profileNames returns the profiles that there are.
func profileNames(t *testing.T) []string {
	t.Helper()
	dirs, err := os.ReadDir(profiles)
	if err != nil || len(dirs) == 0 {
		t.Fatal("no profiles: ", err)
	}
	var names []string
	for _, d := range dirs {
		names = append(names, d.Name())
	}
	return names
}

// change is what a test changes in a profile, in its policy or its workload.
type change struct{ from, to string }

// profile reads a profile with a change made where its text occurs.
func profile(t *testing.T, name string, c change) *Workload {
	t.Helper()
	p := string(readFile(t, filepath.Join(profiles, name, "policy.yaml")))
	w := string(readFile(t, filepath.Join(profiles, name, "workload.yaml")))
	if c.from != "" && !strings.Contains(p+w, c.from) {
		t.Fatalf("%s has no %q to change", name, c.from)
	}
	core := loadPolicy(t, []byte(strings.ReplaceAll(p, c.from, c.to)))
	workload, err := Parse("workload.yaml", []byte(strings.ReplaceAll(w, c.from, c.to)), core)
	if err != nil {
		t.Fatal(err)
	}
	return workload
}

func play(t *testing.T, w *Workload) *run {
	t.Helper()
	r := newRun(w)
	if err := r.play(); err != nil {
		t.Fatal(err)
	}
	return r
}

// What each profile states holds, and what it printed stands in the docs.
func TestProfiles(t *testing.T) {
	for _, name := range profileNames(t) {
		t.Run(name, func(t *testing.T) {
			w := profile(t, name, change{})
			r := play(t, w)
			report := r.report(5)
			for _, c := range report.Breaches() {
				t.Errorf("workload.yaml:%d: %s", c.Line, c)
			}
			checkBooks(t, r)
			checkBounds(t, r)
			var text bytes.Buffer
			if err := report.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			checkDocs(t, name, text.String())
		})
	}
}

// checkDocs compares what a profile printed with the docs, or writes it there with
// -update.
func checkDocs(t *testing.T, name, text string) {
	t.Helper()
	docs := string(readFile(t, docsFile))
	before, rest, found := strings.Cut(docs, "\n### "+name+"\n")
	intro, rest, open := strings.Cut(rest, "```text\n")
	old, after, closed := strings.Cut(rest, "```\n")
	if !found || !open || !closed {
		t.Fatalf("%s has no section %s with a text", docsFile, name)
	}
	if *update {
		docs = before + "\n### " + name + "\n" + intro + "```text\n" + text + "```\n" + after
		if err := os.WriteFile(docsFile, []byte(docs), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if old != text {
		t.Errorf("printed\n%s\nin the docs stands\n%s", text, old)
	}
}

// checkBooks compares who holds what by the ledgers with what the core says.
func checkBooks(t *testing.T, r *run) {
	t.Helper()
	for _, l := range r.ledgers {
		active := int64(0)
		for _, tenant := range l.list {
			if got := r.state.Tenant(r.now, l.name, tenant.id).Active; got != tenant.active {
				t.Errorf("tenant %s holds %d permits, the ledger says %d", tenant.id, got, tenant.active)
			}
			active += tenant.active
		}
		if h := r.state.Health(r.now, r.wall(), l.name)[0]; h.Active != active {
			t.Errorf("pool %s has %d permits, the ledger %d", l.name, h.Active, active)
		}
	}
}

// checkBounds moves the bounds of each measure past what was measured: no check
// holds whatever comes.
func checkBounds(t *testing.T, r *run) {
	t.Helper()
	for _, e := range r.w.expect {
		if e.kind.measure == nil {
			continue
		}
		value := e.kind.measure(r, e.of)
		if math.IsInf(e.hi, 1) {
			e.lo = math.Nextafter(value, math.Inf(1))
		} else {
			e.lo, e.hi = math.Inf(-1), math.Nextafter(value, math.Inf(-1))
		}
		if c := e.check(r); c.Holds {
			t.Errorf("%s holds with a bound that was not kept", c)
		}
	}
}

// Each profile fails where what it is about is taken away, and says so in the
// check that is about it.
func TestPerturbedProfiles(t *testing.T) {
	tests := map[string]struct {
		change
		breach string
	}{
		"blast-vs-otp": {change{", leave_slots: 12, leave_tokens: {provider: 20}", ""}, "wait_p99"},
		"blocked-many": {change{"{max_active: 1}", "{max_active: 2}"}, "hindered_by"},
		"expire-herd":  {change{"base: 1s", "base: 5s"}, "recovery_max"},
		"fair-zipf":    {change{"rate: 1500,", "rate: 150,"}, "grants"},
		"polling-only": {change{"interval: 1s", "interval: 250ms"}, "unasked_slot_time"},
		"reclaim":      {change{", preferred_active: 10", ""}, "entitled_first"},
		"token-shares": {change{"rate: 200", "rate: 100"}, "bucket_use"},
		"sybil":        {change{"max_active: 20\n", "max_active: 20\n  tenants: {overrides: [{id: sybil, weight: 2}]}\n"}, "grants_apart"},
	}
	for _, name := range profileNames(t) {
		t.Run(name, func(t *testing.T) {
			test, ok := tests[name]
			if !ok {
				t.Fatal("say what breaks this profile")
			}
			r := play(t, profile(t, name, test.change))
			for _, c := range r.report(0).Breaches() {
				if c.Name == test.breach {
					return
				}
			}
			t.Errorf("nothing said %s", test.breach)
		})
	}
}
