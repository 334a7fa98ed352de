package admission

import (
	"fmt"
	"testing"
	"time"
)

// Pages of a list hold every entry once, by due time and then by arrival, whatever
// the page's size.
func TestListEntries(t *testing.T) {
	s := tell(t, PoolPolicy{Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"x": "high"}})
	high := in(2*time.Second, "b", "h")
	high.Category = "x"
	s.plan(in(3*time.Second, "a", "3"), in(time.Second, "a", "1"), in(time.Second, "b", "1"), high, in(0, "a", "claimed"), in(0, "c", "dead"))
	for _, c := range s.poll(2) {
		if c.Key == "dead" {
			s.release(c.Permit.Token, with(OutcomeDead))
		}
	}
	im := s.Snapshot()
	if _, err := im.ListEntries(ListFilter{Pool: "p", Lane: "z"}, beginning, 0, 1); err == nil || err.Field != "lane" {
		t.Errorf("a lane that is not there: %v, want its field named", err)
	}
	for _, c := range []struct {
		name   string
		filter ListFilter
		want   string
	}{
		{"all", ListFilter{}, "[a/claimed a/1 b/1 b/h a/3]"},
		{"a tenant", ListFilter{Tenant: "a"}, "[a/claimed a/1 a/3]"},
		{"a lane", ListFilter{Lane: "high"}, "[b/h]"},
		{"due before", ListFilter{DueBefore: birth.Add(2 * time.Second)}, "[a/claimed a/1 b/1]"},
		{"a tenant that is not known", ListFilter{Tenant: "z"}, "[]"},
	} {
		for size := 1; size <= 6; size++ {
			t.Run(fmt.Sprintf("%s by %d", c.name, size), func(t *testing.T) {
				c.filter.Pool = "p"
				got := []string{}
				after, seq := beginning, uint64(0)
				for {
					page, err := im.ListEntries(c.filter, after, seq, size)
					if err != nil || len(page) > size {
						t.Fatalf("%d rows, %v", len(page), err)
					}
					if len(page) == 0 {
						break
					}
					for _, e := range page {
						got = append(got, e.Tenant+"/"+e.Key)
						after, seq = e.DueAt, e.Seq
						want(t, e.Key+" is claimed", e.Claimed, e.Key == "claimed")
					}
				}
				want(t, "entries", fmt.Sprint(got), c.want)
			})
		}
	}
	if _, err := im.ListEntries(ListFilter{Pool: "none"}, beginning, 0, 1); err == nil || err.Reason != PoolNotFound {
		t.Errorf("no such pool: %v", err)
	}
}

// Pages of the dead hold each once, and say how each ended.
func TestListDead(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.plan(in(0, "a", "2"), in(0, "a", "1"), in(0, "b", "1"), in(0, "a", "live"))
	ends := map[string]Outcome{"a/2": OutcomeFailed, "a/1": OutcomeDead, "b/1": OutcomeExpired}
	for _, c := range s.poll(4) {
		switch key := c.Permit.Tenant + "/" + c.Key; {
		case c.Key == "live":
			s.release(c.Permit.Token, with(OutcomeThrottled), func(r *Release) { r.Outcome = OutcomeNotStarted })
		case ends[key] != OutcomeExpired:
			s.release(c.Permit.Token, with(ends[key]))
		}
	}
	s.wait(time.Minute)
	im := s.Snapshot()
	for _, c := range []struct{ tenant, want string }{{"", "[a/1 a/2 b/1]"}, {"a", "[a/1 a/2]"}, {"z", "[]"}} {
		for size := 1; size <= 4; size++ {
			got := []string{}
			var last DeadPlace
			for {
				page, err := im.ListDead("p", DeadFilter{Tenant: c.tenant}, last, size)
				if err != nil || len(page) > size {
					t.Fatalf("%d rows, %v", len(page), err)
				}
				if len(page) == 0 {
					break
				}
				for _, d := range page {
					got = append(got, d.Tenant+"/"+d.Key)
					last = d.Place
					want(t, "end of "+d.Key, d.History[0].Outcome, ends[d.Tenant+"/"+d.Key])
				}
			}
			want(t, fmt.Sprintf("dead of %q by %d", c.tenant, size), fmt.Sprint(got), c.want)
		}
	}
}
