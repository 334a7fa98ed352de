package admission

import (
	"fmt"
	"testing"
	"time"
)

// A few tenants that come and go are new once, however short their permits are and
// however few may be new in a second.
func TestWhoComesBackIsNotNew(t *testing.T) {
	for what, use := range map[string]func(s *story, tenant string){
		"short permits": func(s *story, tenant string) { s.release(s.granted(tenant).Token) },
		"tokens only": func(s *story, tenant string) {
			d := s.acquire(&Acquire{Pool: "p", Tenant: tenant, Cost: 1, RateOnly: true})
			want(s, "granted", d.Shed == nil, true)
		},
		"entries": func(s *story, tenant string) {
			s.plan(in(0, tenant, "k"))
			s.release(s.poll(1)[0].Permit.Token)
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := tell(t, PoolPolicy{Limits: LimitsPolicy{NewTenantsPerSecond: 3}})
			for range 10 {
				for _, tenant := range []string{"a", "b", "c"} {
					use(s, tenant)
				}
				s.wait(time.Millisecond)
			}
			s.shed("d", Cardinality)
		})
	}
}

// Who comes back after his time is new again.
func TestWhoComesBackLateIsNew(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{NewTenantsPerSecond: 1}})
	s.release(s.granted("a").Token)
	s.wait(spareTime)
	s.release(s.granted("a").Token)
	s.wait(spareTime + 1)
	s.granted("b")
	want(t, "retry after", s.shed("a", Cardinality).RetryAfter, time.Second)
}

// Those that are spare are known only while there is room: the longest spare goes
// first when somebody new comes.
func TestWhoIsSpareLongestMakesRoom(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{Tenants: 3}})
	known := func() (all string) {
		s.pools.byName("p").named.Scan(func(t *tenant) bool {
			all += t.id
			return true
		})
		return all
	}
	for _, tenant := range []string{"b", "a", "c"} {
		s.release(s.granted(tenant).Token)
		s.wait(time.Second)
	}
	s.release(s.granted("b").Token)
	s.wait(time.Second)
	s.granted("d")
	want(t, "known", known(), "bcd")
	s.State = restored(t, s.State)
	s.granted("e")
	s.granted("b")
	want(t, "known", known(), "bde")
	s.shed("f", Cardinality)
}

// Who is spare has no place of his own: the tenth of the top lane is not taken by
// those who were here before.
func TestWhoIsSpareNeedsAPlaceAgain(t *testing.T) {
	s := tell(t, PoolPolicy{
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"otp": "high", "bulk": "low"},
		Limits: LimitsPolicy{Tenants: 10},
	})
	ask := func(tenant, category string) Decision {
		return s.acquire(&Acquire{Pool: "p", Tenant: tenant, Category: category, Cost: 1})
	}
	s.release(ask("back", "bulk").Permit.Token)
	s.wait(time.Second)
	for i := range 9 {
		want(t, "granted", ask(fmt.Sprint(i), "bulk").Shed == nil, true)
	}
	shed := ask("back", "bulk").Shed
	if shed == nil || shed.Reason != Cardinality || shed.Blocking[0].Used != 9 {
		t.Fatalf("in the lower lane: %+v", shed)
	}
	want(t, "reported for nothing", s.do(&ReportDemand{Pool: "p", Tenant: "back", Category: "bulk", Backlog: 1})[0].(*ReportResult).Err == nil, true)
	want(t, "depth", s.Shedding(s.t, s.w, SheddingQuery{Pool: "p"}).Lanes[1].Depth, 0)
	want(t, "in the top lane", ask("back", "otp").Shed == nil, true)
	err := s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "new"})[0].(*PauseResult).Err
	want(t, "paused beyond the limit", err != nil && err.Reason == LimitReached, true)
}

// A row of his own takes a tenant out of those who may be new.
func TestARowOfItsOwnEndsSparing(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.release(s.granted("a").Token)
	s.wait(time.Second)
	row := TenantPut{Tenant: TenantPolicy{ID: "a", Weight: 2}}
	s.do(&PutTenants{Pool: "p", Rows: []TenantPut{row}})
	check(t, s.State)
	s.wait(time.Second)
	want(t, "tenants", s.tenants.Len(), 0)
}
