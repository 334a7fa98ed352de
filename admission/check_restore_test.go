package admission

import (
	"fmt"
	"iter"
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// rowsOf returns an image's rows as Restore takes them.
func rowsOf(im *Image) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row := range im.Rows() {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// restored returns the state that an image of this one gives back. It fails
// unless that one has the same digest and indexes that are true [I13].
func restored(t tester, s *State) *State {
	t.Helper()
	im := s.Snapshot()
	r, err := Restore(im.Header(), rowsOf(im))
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	sameRows(t, s, r)
	check(t, r)
	return r
}

// sameRows fails unless two states have the same digest, and says where they
// differ.
func sameRows(t tester, a, b *State) {
	t.Helper()
	one, two := a.Snapshot(), b.Snapshot()
	if one.Digest() == two.Digest() {
		return
	}
	if one.Header() != two.Header() {
		t.Errorf("headers differ:\n%+v\n%+v", one.Header(), two.Header())
	}
	next, stop := iter.Pull(two.Rows())
	defer stop()
	for row := range one.Rows() {
		other, _ := next()
		if !reflect.DeepEqual(row, other) {
			t.Fatalf("rows differ:\n%T %+v\n%T %+v", row, row, other, other)
		}
	}
	t.Fatalf("digests differ")
}

// sameLooks fails unless two states answer alike whoever looks at them.
func sameLooks(t tester, a, b *State, call *NextDueResult) {
	t.Helper()
	for _, p := range a.pools.list {
		q := SheddingQuery{Pool: p.name, HeldRows: 3}
		if call != nil && call.op != nil && call.op.Pool == p.name {
			q.Call = call
		}
		poll := &NextDue{Pool: p.name, MaxItems: 1}
		for what, look := range map[string]func(*State) any{
			"shedding": func(s *State) any { return s.Shedding(s.t, s.w, q) },
			"health":   func(s *State) any { return s.Health(s.t, s.w, p.name) },
			"next due": func(s *State) any { return s.NextDueIn(p.name, s.w) },
			"delay": func(s *State) any {
				wait, ok := s.PollDelay(s.t, s.w, poll)
				return fmt.Sprint(wait, ok)
			},
			"deadline": func(s *State) any {
				at, ok := s.Deadline()
				return fmt.Sprint(at, ok)
			},
		} {
			if one, two := look(a), look(b); !reflect.DeepEqual(one, two) {
				t.Errorf("pool %s: %s differs:\n%+v\n%+v", p.name, what, one, two)
			}
		}
	}
}

// replica is the law that a state restored at any index goes on as the one it was
// taken from [I13].
type replica struct{ *State }

func (r *replica) see(h *history, e Entry, results []Result) {
	if r.State == nil {
		return
	}
	theirs := r.Apply(e)
	if !reflect.DeepEqual(h.Ended(), r.Ended()) {
		h.Fatalf("waits end otherwise in a restored state:\n%+v\n%+v", h.Ended(), r.Ended())
	}
	var call *NextDueResult
	for i := range results {
		if !reflect.DeepEqual(results[i], theirs[i]) {
			h.Fatalf("a restored state answers %T %+v otherwise:\n%+v\n%+v", e.Ops[i], e.Ops[i], results[i], theirs[i])
		}
		if c, ok := results[i].(*NextDueResult); ok {
			call = c
		}
	}
	sameLooks(h, h.State, r.State, call)
}

// frozen is the law that an image stays as it was taken.
type frozen struct {
	image  *Image
	digest uint64
}

func (f *frozen) take(s *State) {
	f.image = s.Snapshot()
	f.digest = f.image.Digest()
}

func (f *frozen) see(h *history, _ Entry, _ []Result) {
	if f.image != nil && f.image.Digest() != f.digest {
		h.Fatalf("the image of index %d changed", f.image.header.Index)
	}
}

func TestRestoredStatesGoOnAlike(t *testing.T) {
	n := NewTally()
	rapid.Check(t, func(t *rapid.T) {
		twin, image := &replica{}, &frozen{}
		h := begin(t, n, policies.Draw(t, "policy"), twin, image)
		t.Repeat(map[string]func(*rapid.T){
			"entry":        func(t *rapid.T) { h.apply(h.next(t, 6)) },
			"second entry": func(t *rapid.T) { h.apply(h.next(t, 3)) },
			"restart":      func(t *rapid.T) { twin.State = restored(t, h.State) },
			"image":        func(*rapid.T) { image.take(h.State) },
			"compare": func(t *rapid.T) {
				if twin.State != nil {
					sameRows(t, h.State, twin.State)
				}
			},
		})
		restored(t, h.State)
	})
	n.Report(t)
}

// An image may be read by another goroutine while entries are applied; the race
// detector watches.
func TestImagesAreReadBesideApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := begin(t, NewTally(), policies.Draw(t, "policy"))
		for range number(t, "entries before", 1, 10) {
			h.apply(h.next(t, 6))
		}
		im := h.Snapshot()
		before := im.Digest()
		var during uint64
		var reader sync.WaitGroup
		reader.Go(func() {
			during = im.Digest()
			for _, pool := range poolNames {
				im.ListEntries(ListFilter{Pool: pool}, beginning, 0, 10)
				im.ListDead(pool, DeadFilter{}, DeadPlace{}, 10)
			}
		})
		for range number(t, "entries beside", 1, 10) {
			h.apply(h.next(t, 6))
		}
		reader.Wait()
		if after := im.Digest(); before != during || before != after {
			t.Fatalf("digests of one image: %x before, %x beside, %x after", before, during, after)
		}
	})
}
