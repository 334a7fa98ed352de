package server

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// crowd is a server whose pool has so many held tenants, each with one entry.
func crowd(t *testing.T, n int) (*harness, *fakeStore) {
	t.Helper()
	store := newFakeStore()
	op := func(op admission.Op) {
		store.index++
		store.state.Apply(admission.Entry{Index: store.index, T: store.at, W: store.wall, Ops: []admission.Op{op}})
	}
	op(admission.ApplyPolicy{Policy: admission.Policy{Pools: []admission.PoolPolicy{{Name: "p", MaxActive: 1}}}})
	op(&admission.Acquire{Pool: "p", Tenant: "holder", Cost: 1})
	specs := make([]admission.EntrySpec, n)
	for i := range specs {
		specs[i] = admission.EntrySpec{Tenant: fmt.Sprintf("t%d", i), Key: "k", Relative: true}
	}
	for part := range slices.Chunk(specs, 500) { // newcomers are bounded
		store.at, store.wall = store.at.Add(time.Second), store.wall.Add(time.Second)
		op(&admission.Schedule{Pool: "p", Entries: part})
	}
	op(&admission.Schedule{Pool: "p", Entries: []admission.EntrySpec{{Tenant: "t0", Key: "more", Relative: true}}})
	return start(t, store), store
}

// GetShedding shows every held tenant once, in chunks, all of one index.
func TestGetSheddingShowsAll(t *testing.T) {
	h, _ := crowd(t, 1500)
	stream, err := h.status.GetShedding(soon(t), &admitv1.GetSheddingRequest{Pool: "p"})
	if err != nil {
		t.Fatal(err)
	}
	seen, sizes := map[string]bool{}, ""
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		s := chunk.GetShedding()
		sizes += fmt.Sprint(len(s.GetHeld()), s.GetMore(), s.GetLogIndex(), len(s.GetTotals()), " ")
		for _, row := range s.GetHeld() {
			seen[row.GetTenant()] = true
		}
	}
	if want := "1000 true 6 1 500 false 0 0 "; sizes != want || len(seen) != 1500 {
		t.Errorf("chunks %q with %d tenants, want %q with 1500", sizes, len(seen), want)
	}
}

// So many pictures are read at the same time, and no more.
func TestPicturesAreBounded(t *testing.T) {
	store := newFakeStore()
	s := newStatusService(reads{store, &router{}}, nil, &debugger{})
	for range maxPictures {
		s.pictures <- struct{}{}
	}
	_, err := s.TopShed(soon(t), &admitv1.TopShedRequest{Pool: "p"})
	if told := tell(t, statusError(err, true)); told.code != codes.ResourceExhausted || told.retry == 0 {
		t.Errorf("a picture too many: %+v", told)
	}
}

// A watch tells at once, then only what has changed.
func TestWatchShedding(t *testing.T) {
	h, store := crowd(t, 2)
	stream, err := h.status.WatchShedding(soon(t), &admitv1.WatchSheddingRequest{Pool: "p", Interval: durationpb.New(minWatch)})
	if err != nil {
		t.Fatal(err)
	}
	next := func() *admitv1.Shedding {
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetShedding()
	}
	if first := next(); len(first.GetHeld()) != 2 {
		t.Errorf("first: %v, want two held", first)
	}
	store.mu.Lock()
	store.index += 2
	store.at += admission.Instant(time.Millisecond) // time alone is no news
	store.state.Apply(admission.Entry{Index: store.index, T: store.at, W: store.wall, Ops: []admission.Op{
		&admission.Schedule{Pool: "p", Entries: []admission.EntrySpec{{Tenant: "late", Key: "k", Relative: true}}},
	}})
	store.mu.Unlock()
	if second := next(); len(second.GetHeld()) != 3 {
		t.Errorf("second: %v, want three held", second)
	}
	wrong, err := h.status.WatchShedding(soon(t), &admitv1.WatchSheddingRequest{Pool: "none"})
	if err == nil {
		_, err = wrong.Recv()
	}
	if told := tell(t, err); told.reason != "POOL_NOT_FOUND" {
		t.Errorf("no such pool: %+v", told)
	}
	wrong, err = h.status.WatchShedding(soon(t), &admitv1.WatchSheddingRequest{Pool: "p", Interval: durationpb.New(1)})
	if err == nil {
		_, err = wrong.Recv()
	}
	if told := tell(t, err); told.fields != "interval" {
		t.Errorf("an interval too short: %+v", told)
	}
}

// TopShed names who has the most, and takes filters.
func TestTopShed(t *testing.T) {
	h, _ := crowd(t, 3)
	top, err := h.status.TopShed(soon(t), &admitv1.TopShedRequest{Pool: "p", N: 1})
	if err != nil {
		t.Fatal(err)
	}
	if rows := top.GetTenants(); len(rows) != 1 || rows[0].GetTenant() != "t0" || rows[0].GetTotal() != 2 {
		t.Errorf("top: %v, want t0 with 2", rows)
	}
	none, err := h.status.TopShed(soon(t), &admitv1.TopShedRequest{Pool: "p", Reason: admitv1.Reason_REASON_PAUSED})
	if err != nil || len(none.GetTenants()) != 0 {
		t.Errorf("paused: %v, %v, want none", none, err)
	}
}

// Explain says why, with the numbers, and who is ahead.
func TestExplain(t *testing.T) {
	h, _ := crowd(t, 2)
	explain := func(in *admitv1.ExplainRequest) *admitv1.Explanation {
		t.Helper()
		resp, err := h.status.Explain(soon(t), in)
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetExplanation()
	}
	e := explain(&admitv1.ExplainRequest{Pool: "p", Tenant: "new"})
	if e.GetShed().GetReason() != admitv1.Reason_REASON_POOL_CAP || len(e.GetLimits()) != 1 || e.GetLine().GetDue() != 2 {
		t.Errorf("request: %v", e)
	}
	e = explain(&admitv1.ExplainRequest{Pool: "p", Tenant: "t0", Key: "more"})
	if e.GetEntry().GetAhead() != 1 || e.GetEntry().GetEntry().GetState() != admitv1.EntryState_ENTRY_STATE_QUEUED {
		t.Errorf("entry: %v", e)
	}
	for _, c := range []struct {
		in   *admitv1.ExplainRequest
		want string
	}{
		{&admitv1.ExplainRequest{Pool: "none", Tenant: "a"}, "POOL_NOT_FOUND"},
		{&admitv1.ExplainRequest{Pool: "p", Tenant: "a", Key: "k"}, "ENTRY_NOT_FOUND"},
		{&admitv1.ExplainRequest{Pool: "p", Tenant: "a", Category: "c"}, "UNKNOWN_CATEGORY"},
		{&admitv1.ExplainRequest{Permit: "x"}, "INVALID_FIELD"},
	} {
		_, err := h.status.Explain(soon(t), c.in)
		if told := tell(t, err); told.reason != c.want {
			t.Errorf("%v: %+v, want %s", c.in, told, c.want)
		}
	}
}
