package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// die lets entries of a tenant fail for good, in the order of the keys.
func (h *harness) die(t *testing.T, tenant string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := h.due.Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{
			{Tenant: tenant, Key: key, Category: "otp"},
		}}); err != nil {
			t.Fatal(err)
		}
		poll, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxItems: 1, WorkerId: "w"})
		if err != nil || len(poll.GetClaims()) != 1 {
			t.Fatalf("got %v, %v", poll, err)
		}
		if _, err := h.Release(soon(t), &admitv1.ReleaseRequest{
			Token: poll.GetClaims()[0].GetPermit().GetToken(), Outcome: admitv1.Outcome_OUTCOME_DEAD,
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestGetEntryShowsHowItDied(t *testing.T) {
	h, store := startWithPolicy(t)
	h.die(t, "acme", "k")
	got, err := h.due.GetEntry(soon(t), &admitv1.GetEntryRequest{Pool: "email", Tenant: "acme", Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	e := got.GetEntry()
	if e.GetState() != admitv1.EntryState_ENTRY_STATE_DEAD || e.GetDiedAt().AsTime().UnixNano() != int64(store.wall) ||
		len(e.GetHistory()) != 1 || got.GetLogIndex() != store.index {
		t.Fatalf("got %v", got)
	}
	if a := e.GetHistory()[0]; a.GetNumber() != 1 || a.GetOutcome() != admitv1.Outcome_OUTCOME_DEAD || a.GetWorkerId() != "w" ||
		a.GetEndedAt().AsTime().UnixNano() != int64(store.wall) {
		t.Errorf("got %v", a)
	}
	_, err = h.due.GetEntry(soon(t), &admitv1.GetEntryRequest{Pool: "email", Tenant: "acme", Key: "other"})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "ENTRY_NOT_FOUND" {
		t.Errorf("got %+v", got)
	}
	_, err = h.due.GetEntry(soon(t), &admitv1.GetEntryRequest{Pool: "nowhere", Tenant: "acme", Key: "k"})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "POOL_NOT_FOUND" {
		t.Errorf("got %+v", got)
	}
}

// Calls go on where the one before ended, in line with the rate, until none is
// left.
func TestRedriveGoesOnFromPageToPage(t *testing.T) {
	h, store := startWithPolicy(t)
	h.die(t, "acme", "a", "b", "c")
	h.die(t, "trial", "d")
	in := &admitv1.RedriveRequest{Pool: "email", Limit: 2, PerSecond: 2, Filter: &admitv1.DeadFilter{Tenant: "acme"}}
	var counts []int32
	for {
		resp, err := h.due.Redrive(soon(t), in)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, resp.GetRedriven())
		if in.PageToken = resp.GetNextPageToken(); in.PageToken == "" {
			break
		}
	}
	if fmt.Sprint(counts) != "[2 1]" {
		t.Errorf("redriven %v, want 2 and 1", counts)
	}
	listed, err := h.due.ListEntries(soon(t), &admitv1.ListEntriesRequest{Pool: "email"})
	if err != nil {
		t.Fatal(err)
	}
	var due []string
	for _, e := range listed.GetEntries() {
		due = append(due, fmt.Sprint(e.GetKey(), " in ", time.Duration(e.GetDueAt().AsTime().UnixNano()-int64(store.wall))))
	}
	if got := strings.Join(due, ", "); got != "a in 0s, b in 500ms, c in 1s" {
		t.Errorf("got %s", got)
	}
	_, err = h.due.Redrive(soon(t), &admitv1.RedriveRequest{Pool: "email", Filter: &admitv1.DeadFilter{Lane: "none"}})
	if got := tell(t, err); got.code != codes.InvalidArgument || got.fields != "filter.lane" {
		t.Errorf("got %+v", got)
	}
	_, err = h.due.Redrive(soon(t), &admitv1.RedriveRequest{Pool: "nowhere"})
	if got := tell(t, err); got.code != codes.NotFound {
		t.Errorf("got %+v", got)
	}
}

func TestPurgeDeadGoesOnFromPageToPage(t *testing.T) {
	h, _ := startWithPolicy(t)
	h.die(t, "acme", "a", "b")
	h.die(t, "trial", "c")
	in := &admitv1.PurgeDeadRequest{Pool: "email", Limit: 2, Filter: &admitv1.DeadFilter{Outcome: admitv1.Outcome_OUTCOME_DEAD}}
	first, err := h.due.PurgeDead(soon(t), in)
	if err != nil || first.GetPurged() != 2 || first.GetNextPageToken() == "" {
		t.Fatalf("got %v, %v", first, err)
	}
	left, err := h.due.ListDead(soon(t), &admitv1.ListDeadRequest{Pool: "email"})
	if err != nil || len(left.GetEntries()) != 1 || left.GetEntries()[0].GetTenant() != "trial" {
		t.Fatalf("got %v, %v; want what died last", left, err)
	}
	in.PageToken = first.GetNextPageToken()
	last, err := h.due.PurgeDead(soon(t), in)
	if err != nil || last.GetPurged() != 1 || last.GetNextPageToken() != "" {
		t.Errorf("got %v, %v", last, err)
	}
	_, err = h.due.PurgeDead(soon(t), &admitv1.PurgeDeadRequest{Pool: "nowhere"})
	if got := tell(t, err); got.code != codes.NotFound {
		t.Errorf("got %+v", got)
	}
}

// A page of the dead goes on where the one before ended, though the tenant that it
// ended with is gone and came back.
func TestListDeadGoesOnWithoutTheLastTenant(t *testing.T) {
	h, store := startWithPolicy(t)
	h.die(t, "acme", "a")
	h.die(t, "trial", "b")
	page, err := h.due.ListDead(soon(t), &admitv1.ListDeadRequest{Pool: "email", PageSize: 1})
	if err != nil || page.GetEntries()[0].GetKey() != "a" {
		t.Fatalf("got %v, %v", page, err)
	}
	if _, err := h.due.PurgeDead(soon(t), &admitv1.PurgeDeadRequest{Pool: "email", Filter: &admitv1.DeadFilter{Tenant: "acme"}}); err != nil {
		t.Fatal(err)
	}
	store.at = store.at.Add(time.Hour) // the tenant is forgotten
	h.die(t, "acme", "c")
	page, err = h.due.ListDead(soon(t), &admitv1.ListDeadRequest{Pool: "email", PageSize: 1, PageToken: page.GetNextPageToken()})
	if err != nil || page.GetEntries()[0].GetKey() != "b" {
		t.Fatalf("got %v, %v; want the entry that stayed", page, err)
	}
}
