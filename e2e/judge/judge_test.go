package judge

import (
	"strings"
	"testing"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	ms       = time.Millisecond
	released = admitv1.LeaseResult_LEASE_RESULT_RELEASED
	already  = admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED
	lost     = admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST
	done     = admitv1.Outcome_OUTCOME_DONE
	failed   = admitv1.Outcome_OUTCOME_FAILED
	created  = admitv1.ScheduleResult_STATUS_SCHEDULED
	same     = admitv1.ScheduleResult_STATUS_UNCHANGED
)

var limits = Limits{PoolActive: 3, TenantActive: 2, Capacity: 2, Refill: 10, Period: time.Second}

// story is a history that no rule objects to: a permit that was asked for twice,
// released without an answer and then released twice more, and an entry that
// failed once.
func story() History {
	return History{
		Answers: []Answer{
			acquired("r1", 0, 10*ms, grant("p1", 1, "a")),
			acquired("r1", 20*ms, 30*ms, grant("p1", 1, "a")),
			claimed("r2", 400*ms, 410*ms, claim("c1", 2, "a", "k1", 1)),
			claimed("r2", 412*ms, 414*ms, claim("c1", 2, "a", "k1", 1)),
			claimed("r3", 600*ms, 610*ms, claim("c2", 3, "a", "k1", 2), claim("c3", 4, "b", "k2", 1)),
			claimed("r3", 660*ms, 670*ms, claim("c3", 4, "b", "k2", 1)),
		},
		Releases: []Release{
			{Token: "p1", Outcome: done, Sent: 40 * ms, LastSent: 60 * ms, Got: 70 * ms, Result: already, Unknown: 1},
			{Token: "p1", Outcome: done, Sent: 80 * ms, LastSent: 80 * ms, Got: 90 * ms, Result: already},
			{Token: "c1", Outcome: failed, Sent: 420 * ms, LastSent: 420 * ms, Got: 430 * ms, Result: released},
			{Token: "c2", Outcome: done, Sent: 640 * ms, LastSent: 640 * ms, Got: 650 * ms, Result: released},
			{Token: "c3", Outcome: done, Sent: 680 * ms, LastSent: 680 * ms, Got: 690 * ms, Result: released},
		},
		Schedules: []Schedule{
			{Tenant: "a", Key: "k1", Sent: 300 * ms, Got: 310 * ms, Status: created},
			{Tenant: "b", Key: "k2", Sent: 300 * ms, Got: 310 * ms, Status: same, Unknown: 1},
		},
	}
}

func grant(token string, fence int64, tenant string) Grant {
	return Grant{Token: token, Fence: fence, Tenant: tenant, TTL: time.Minute}
}

func claim(token string, fence int64, tenant, key string, attempt int32) Grant {
	g := grant(token, fence, tenant)
	g.Key, g.Attempt = key, attempt
	return g
}

func acquired(id string, sent, got Moment, g Grant) Answer {
	return Answer{RequestID: id, Sent: sent, LastSent: sent, Got: got, Grants: []Grant{g}}
}

func claimed(id string, sent, got Moment, gs ...Grant) Answer {
	return Answer{RequestID: id, Sent: sent, LastSent: sent, Got: got, Claims: true, Grants: gs}
}

// permit adds a permit of its own request that is held from got to given.
func (h *History) permit(g Grant, sent, got, given Moment) {
	h.Answers = append(h.Answers, acquired("r-"+g.Token, sent, got, g))
	h.Releases = append(h.Releases, Release{Token: g.Token, Outcome: done, Sent: given, LastSent: given, Got: given + ms, Result: released})
}

func TestJudgeAcceptsWhatMayHappen(t *testing.T) {
	cases := map[string]func(h *History){
		"the story as it is": func(*History) {},
		"a permit lost after its time": func(h *History) {
			h.permit(grant("p9", 9, "a"), 2*time.Second, 2*time.Second+ms, time.Hour)
			h.Releases[len(h.Releases)-1].Result = lost
		},
		"a first try that created the entry, which was done before the next try created it anew": func(h *History) {
			h.Schedules[0].Unknown, h.Schedules[0].Got = 1, 2*time.Second
			h.Answers = append(h.Answers, claimed("r9", 3*time.Second, 3*time.Second+ms, claim("c9", 9, "a", "k1", 1)))
			h.Releases = append(h.Releases, Release{Token: "c9", Outcome: done, Sent: 4 * time.Second, Got: 4 * time.Second, Result: released})
		},
		"as many permits as the bucket and the caps allow": func(h *History) {
			h.permit(grant("p8", 8, "b"), 2*time.Second, 2*time.Second+ms, 3*time.Second)
			h.permit(grant("p9", 9, "b"), 2*time.Second, 2*time.Second+ms, 3*time.Second)
			h.permit(grant("p7", 10, "a"), 2*time.Second, 2*time.Second+100*ms, 3*time.Second)
		},
		"overlapping requests whose fences cross": func(h *History) {
			h.permit(grant("p8", 9, "b"), 2*time.Second, 2*time.Second+5*ms, 3*time.Second)
			h.permit(grant("p9", 8, "b"), 2*time.Second+2*ms, 2*time.Second+8*ms, 3*time.Second)
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			h := story()
			change(&h)
			for _, o := range Judge(h, limits).Objections {
				t.Errorf("objects: %v", o)
			}
		})
	}
}

func TestJudgeObjects(t *testing.T) {
	cases := map[string]struct {
		rule   string
		change func(h *History)
	}{
		"a second permit for one request": {"one answer per request", func(h *History) {
			h.Answers[1].Grants[0].Token = "p2"
			h.Releases = append(h.Releases, Release{Token: "p2", Outcome: done, Sent: time.Second, Result: released})
		}},
		"a claim that is missing when asked again": {"one answer per request", func(h *History) {
			h.Answers[3].Grants = nil
		}},
		"a claim that is new when asked again": {"one answer per request", func(h *History) {
			h.Answers[3].Grants = append(h.Answers[3].Grants, claim("c3", 4, "b", "k2", 1))
		}},
		"a permit lost in its time": {"no grant is lost", func(h *History) {
			h.Releases[2].Result = lost
		}},
		"a permit that is never released": {"no grant is lost", func(h *History) {
			h.Releases = h.Releases[:4]
		}},
		"a claim that is cancelled": {"no grant is lost", func(h *History) {
			h.Releases[2].Result = admitv1.LeaseResult_LEASE_RESULT_CANCELLED
		}},
		"a release that counts twice": {"one release per grant", func(h *History) {
			h.Releases[1].Result = released
		}},
		"a permit that somebody else released": {"one release per grant", func(h *History) {
			h.Releases[2].Result = already
		}},
		"a released permit that is forgotten": {"one release per grant", func(h *History) {
			h.Releases[1].Result = lost
		}},
		"a permit out of nowhere": {"one release per grant", func(h *History) {
			h.Releases = append(h.Releases, Release{Token: "px", Outcome: done, Sent: time.Second, Result: released})
		}},
		"one permit too many for the tenant": {"caps hold", func(h *History) {
			h.permit(grant("p7", 7, "a"), 2*time.Second, 3*time.Second, 9*time.Second)
			h.permit(grant("p8", 8, "a"), 4*time.Second, 5*time.Second, 9*time.Second)
			h.permit(grant("p9", 9, "a"), 6*time.Second, 7*time.Second, 9*time.Second)
		}},
		"one permit too many for the pool": {"caps hold", func(h *History) {
			for i, tenant := range []string{"a", "b", "c", "d"} {
				at := time.Duration(2+2*i) * time.Second
				h.permit(grant("p-"+tenant, int64(6+i), tenant), at, at+time.Second, 20*time.Second)
			}
		}},
		"one permit too many for the bucket": {"bucket holds", func(h *History) {
			for i, tenant := range []string{"a", "b", "c"} {
				at := 2*time.Second + Moment(i)*20*ms
				h.permit(grant("p-"+tenant, int64(6+i), tenant), at, at+10*ms, at+15*ms)
			}
		}},
		"a fence that falls": {"fences grow", func(h *History) {
			h.Answers[2].Grants[0].Fence = 1000
		}},
		"a fence given twice": {"fences grow", func(h *History) {
			h.Answers[4].Grants[1].Fence = 3
		}},
		"an entry claimed twice at a time": {"entries are claimed one at a time", func(h *History) {
			h.Releases[2].Sent = 620 * ms
		}},
		"a failure that was forgotten": {"attempts count", func(h *History) {
			h.Answers[4].Grants[0].Attempt = 1
		}},
		"a fourth attempt given back": {"attempts count", func(h *History) {
			h.Schedules = append(h.Schedules, Schedule{Tenant: "c", Key: "k3", Got: time.Second, Status: created})
			for i := range 5 {
				at := time.Duration(2+i) * time.Second
				g := claim("n"+string(rune('0'+i)), int64(10+i), "c", "k3", 1)
				h.permit(g, at, at+ms, at+2*ms)
				if i < 4 {
					h.Releases[len(h.Releases)-1].Outcome = admitv1.Outcome_OUTCOME_NOT_STARTED
				}
			}
		}},
		"a schedule that was lost": {"every schedule is done once", func(h *History) {
			h.Schedules = append(h.Schedules, Schedule{Tenant: "a", Key: "k9", Status: created})
		}},
		"an entry done twice": {"every schedule is done once", func(h *History) {
			h.Releases[2].Outcome = done
		}},
		"an entry done twice after its schedule was answered at the second try": {"every schedule is done once", func(h *History) {
			h.Schedules[0].Unknown = 1
			h.Releases[2].Outcome = done
		}},
		"an entry that nobody scheduled": {"every schedule is done once", func(h *History) {
			h.Schedules = h.Schedules[:1]
		}},
		"an entry that was there already": {"every schedule is done once", func(h *History) {
			h.Schedules[0].Status = same
		}},
		"an entry that was shed": {"every schedule is done once", func(h *History) {
			h.Schedules[0].Status = admitv1.ScheduleResult_STATUS_SHED
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := story()
			c.change(&h)
			var all []string
			for _, o := range Judge(h, limits).Objections {
				if o.Rule == c.rule {
					return
				}
				all = append(all, o.String())
			}
			t.Errorf("doesn't object by the rule %q, but:\n%s", c.rule, strings.Join(all, "\n"))
		})
	}
}

func TestTheVerdictInNumbers(t *testing.T) {
	h := story()
	if v := Judge(h, limits); v.Lost != 0 || v.Doubled != 0 || v.Cap != (Use{2, 3}) || v.Bucket != (Use{2, 2}) {
		t.Errorf("the story comes to %v", v)
	}
	h.Schedules = append(h.Schedules, Schedule{Tenant: "a", Key: "k9", Status: created})
	h.Releases[1].Result = released
	h.permit(grant("p8", 8, "a"), 2*time.Second, 2*time.Second, 9*time.Second)
	h.permit(grant("p9", 9, "a"), 2*time.Second, 2*time.Second, 9*time.Second)
	h.permit(grant("p7", 7, "b"), 2*time.Second, 2*time.Second, 2*time.Second)
	if v := Judge(h, limits); v.Lost != 1 || v.Doubled != 1 || v.Cap != (Use{2, 2}) || v.Bucket != (Use{3, 2}) {
		t.Errorf("a lost schedule, a doubled release, a full cap and a bucket that overflows come to %v", v)
	}
}
