package raftstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

func digestOf(index uint64, results ...admission.Result) uint64 {
	var d digests
	return d.after(index, results, nil).digest
}

func TestDigestsTellResultsApart(t *testing.T) {
	grant := func() *admission.AcquireResult {
		return &admission.AcquireResult{Decision: admission.Decision{Permit: admission.Permit{Fence: 7, Lane: "high"}}}
	}
	other := grant()
	other.Decision.Permit.Fence++
	seen := map[uint64]string{digestOf(1, grant()): "a grant"}
	for name, d := range map[string]uint64{
		"another fence": digestOf(1, other),
		"another index": digestOf(2, grant()),
		"two":           digestOf(1, grant(), grant()),
		"none":          digestOf(1),
		"a refusal":     digestOf(1, &admission.AcquireResult{Decision: admission.Decision{Shed: &admission.Shed{Reason: admission.PoolCap}}}),
		"no claims":     digestOf(1, &admission.NextDueResult{}),
	} {
		if same, ok := seen[d]; ok {
			t.Errorf("%s is as %s", name, same)
		}
		seen[d] = name
	}
	if _, same := seen[digestOf(1, grant())]; !same {
		t.Error("equal results have two digests")
	}
}

// A rolling upgrade may add fields, or put them elsewhere; as long as they say nothing
// the results are the same.
func TestDigestsDoNotDependOnTheLayout(t *testing.T) {
	type inner struct{ A, B int }
	type innerNow struct {
		B    int
		A    int
		note int
	}
	digest := func(v any) uint64 {
		var h hash
		h.value(reflect.ValueOf(v))
		return uint64(h)
	}
	before := digest(struct {
		Lane  string
		Items []inner
	}{"high", []inner{{A: 1}, {B: 2}}})
	type now struct {
		New     string
		NewList []int
		NewPart struct{ X int }
		Items   []innerNow
		Lane    string
		Newer   *int
	}
	items := []innerNow{{A: 1, note: 5}, {B: 2}}
	if after := digest(now{Items: items, Lane: "high", NewList: []int{}}); after != before {
		t.Errorf("the digest is %x, and was %x", after, before)
	}
	for name, other := range map[string]now{
		"a new field that says something": {Items: items, Lane: "high", New: "x"},
		"another lane":                    {Items: items, Lane: "hig\x00"},
		"another field":                   {Items: items, New: "high"},
		"in another item":                 {Items: []innerNow{{A: 1, B: 2}, {}}, Lane: "high"},
		"a long lane":                     {Items: items, Lane: "high and higher"},
		"a longer one":                    {Items: items, Lane: "high and highes"},
	} {
		if digest(other) == before {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// Whatever the core may answer has a digest: what has none would end each node.
func TestEveryResultHasADigest(t *testing.T) {
	for _, r := range []admission.Result{
		&admission.PolicyResult{}, &admission.PutTenantsResult{}, &admission.PauseResult{}, &admission.ReportResult{},
		&admission.AcquireResult{}, &admission.NextDueResult{}, &admission.RenewResult{}, &admission.ReleaseResult{},
		&admission.ScheduleResult{}, &admission.UnscheduleResult{}, &admission.DeadResult{}, &admission.TakeResult{}, &admission.LeaseShareResult{}, &admission.WaitEnd{},
	} {
		var h hash
		h.value(filled(reflect.TypeOf(r).Elem()))
	}
}

// filled returns a value of a type in which no pointer is nil and no list empty.
func filled(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(of.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(of.Elem())))
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(filled(of.Field(i).Type))
			}
		}
	}
	return v
}

func TestDigestsAreKeptForAWhile(t *testing.T) {
	var d digests
	if _, known := d.at(0); known {
		t.Error("there is one before the first entry")
	}
	for i := range uint64(2 * recentDigests) {
		d.reset(d.after(i+1, nil, nil))
	}
	if got, known := d.at(2 * recentDigests); !known || got != d.last.digest {
		t.Errorf("the last is %x (%t), want %x", got, known, d.last.digest)
	}
	for index, want := range map[uint64]bool{recentDigests: false, recentDigests + 1: true, 2*recentDigests + 1: false} {
		if _, known := d.at(index); known != want {
			t.Errorf("that of entry %d: known is %t", index, known)
		}
	}
}

// The digest goes on over a restart, from a snapshot and what follows it in the log.
func TestDigestsOutliveARestart(t *testing.T) {
	t.Parallel()
	n := startCluster(t, 1).leader()
	n.applyPolicy(testPolicy())
	n.mustAcquire("acme")
	n.takeSnapshot()
	n.mustAcquire("acme")
	before := n.fsm.digests.last
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n.comeBack()
	n.waitReady()
	got, known := uint64(0), false
	n.fsm.read(func(*admission.State) { got, known = n.fsm.digests.at(before.index) })
	if !known || got != before.digest {
		t.Errorf("after entry %d: %x (%t), before the restart %x", before.index, got, known, before.digest)
	}
}

// Who decides otherwise than most stops, whether he leads or not, and the others go
// on.
func TestTheMinorityStops(t *testing.T) {
	t.Parallel()
	for name, pick := range map[string]func(*testCluster) *node{
		"a follower": func(c *testCluster) *node { return c.follower() },
		"the leader": func(c *testCluster) *node { return c.leader() },
	} {
		t.Run(name, func(t *testing.T) {
			clk := clock.NewManual(time.Now())
			c := newTestCluster(t, 3, 3)
			for _, n := range c.nodes {
				n.clk = clk
				n.begin()
			}
			c.leader().applyPolicy(testPolicy())
			c.agree()
			wrong := pick(c)
			wrong.fsm.mu.Lock()
			wrong.fsm.digests.reset(check{wrong.fsm.st.Index(), wrong.fsm.digests.last.digest + 1})
			wrong.fsm.mu.Unlock()
			clk.Advance(checkEvery)
			c.leader().mustAcquire("acme")
			wrong.waitFailed()
			if err := wrong.Close(); err != nil {
				t.Error(err)
			}
			clk.Advance(checkEvery)
			c.leader().mustAcquire("acme")
			c.agree()
			for _, n := range c.running() {
				if err := n.Err(); err != nil {
					t.Errorf("another ended, too: %v", err)
				}
			}
		})
	}
}
