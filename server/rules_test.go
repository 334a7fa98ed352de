package server

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// read validates a request of any kind.
func read(req proto.Message) error {
	var err error
	switch r := req.(type) {
	case *admitv1.AcquireRequest:
		_, err = readAcquire(r)
	case *admitv1.BatchAcquireRequest:
		_, err = readBatchAcquire(r)
	case *admitv1.ReportDemandRequest:
		_, err = readReportDemand(r)
	case *admitv1alpha1.LeaseShareRequest:
		_, err = readLeaseShare(r)
	case *admitv1.RenewRequest:
		_, err = readRenew(r)
	case *admitv1.ReleaseRequest:
		_, err = readRelease(r)
	case *admitv1.BatchReleaseRequest:
		_, err = readBatchRelease(r)
	case *admitv1.NextDueRequest:
		_, _, err = readNextDue(r)
	case *admitv1.ScheduleRequest:
		_, err = readSchedule(r)
	case *admitv1.UnscheduleRequest:
		_, err = readUnschedule(r)
	case *admitv1.GetEntryRequest:
		_, _, _, err = readGetEntry(r)
	case *admitv1.RedriveRequest:
		_, err = readRedrive(r)
	case *admitv1.PurgeDeadRequest:
		_, err = readPurgeDead(r)
	case *admitv1.ListEntriesRequest:
		_, err = readListEntries(r)
	case *admitv1.ListDeadRequest:
		_, err = readListDead(r)
	case *admitv1.PauseRequest:
		_, err = readPause(r)
	case *admitv1.ResumeRequest:
		_, err = readResume(r)
	case *admitv1.ApplyPolicyRequest:
		_, err = readApplyPolicy(r)
	case *admitv1.QueueHealthRequest:
		_, err = readQueueHealth(r)
	case *admitv1.LaneHistoryRequest:
		_, err = readLaneHistory(r)
	default:
		err = errors.New("no such request")
	}
	return err
}

func fieldsOf(err error) string {
	var f *fieldError
	if !errors.As(err, &f) {
		return ""
	}
	var names []string
	for _, v := range f.violations {
		names = append(names, v.Field)
	}
	return strings.Join(names, " ")
}

var (
	goodToken = admission.Token{Index: 7, Nonce: 9}.String()
	hour25    = durationpb.New(25 * time.Hour)
	unreal    = &durationpb.Duration{Seconds: 1, Nanos: -1}
	beyond    = &durationpb.Duration{Seconds: math.MaxInt64}
	long      = strings.Repeat("x", 129)
)

func acquire(change func(*admitv1.AcquireRequest)) *admitv1.AcquireRequest {
	r := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"}
	if change != nil {
		change(r)
	}
	return r
}

func schedule(change func(*admitv1.EntrySpec)) *admitv1.ScheduleRequest {
	e := &admitv1.EntrySpec{Tenant: "acme", Key: "k/1:2"}
	change(e)
	return &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{{Tenant: "t", Key: "k"}, e}}
}

func laneLimits(n int) map[string]int64 {
	limits := map[string]int64{}
	for i := range n {
		limits[strings.Repeat("l", i+1)] = 1
	}
	return limits
}

func TestWhatIsRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		req  proto.Message
		want string
	}{
		{"nothing given", &admitv1.AcquireRequest{}, "pool tenant"},
		{"long pool", acquire(func(r *admitv1.AcquireRequest) { r.Pool = strings.Repeat("p", 65) }), "pool"},
		{"pool with a slash", acquire(func(r *admitv1.AcquireRequest) { r.Pool = "a/b" }), "pool"},
		{"empty tenant", acquire(func(r *admitv1.AcquireRequest) { r.Tenant = "" }), "tenant"},
		{"long tenant", acquire(func(r *admitv1.AcquireRequest) { r.Tenant = long }), "tenant"},
		{"tenant with a space", acquire(func(r *admitv1.AcquireRequest) { r.Tenant = "a b" }), "tenant"},
		{"tenant with an umlaut", acquire(func(r *admitv1.AcquireRequest) { r.Tenant = "ä" }), "tenant"},
		{"tenant that is not UTF-8", acquire(func(r *admitv1.AcquireRequest) { r.Tenant = "a\xff" }), "tenant"},
		{"long category", acquire(func(r *admitv1.AcquireRequest) { r.Category = long }), "category"},
		{"cost 0", acquire(func(r *admitv1.AcquireRequest) { r.Cost = proto.Int64(0) }), "cost"},
		{"negative cost", acquire(func(r *admitv1.AcquireRequest) { r.Cost = proto.Int64(-1) }), "cost"},
		{"cost over 2^53", acquire(func(r *admitv1.AcquireRequest) { r.Cost = proto.Int64(1<<53 + 1) }), "cost"},
		{"ttl 0", acquire(func(r *admitv1.AcquireRequest) { r.Ttl = &durationpb.Duration{} }), "ttl"},
		{"ttl 25 h", acquire(func(r *admitv1.AcquireRequest) { r.Ttl = hour25 }), "ttl"},
		{"ttl that is no duration", acquire(func(r *admitv1.AcquireRequest) { r.Ttl = unreal }), "ttl"},
		{"ttl beyond all", acquire(func(r *admitv1.AcquireRequest) { r.Ttl = beyond }), "ttl"},
		{"max_wait of 61 s to acquire", acquire(func(r *admitv1.AcquireRequest) { r.MaxWait = durationpb.New(61 * time.Second) }), "max_wait"},
		{"negative max_wait to acquire", acquire(func(r *admitv1.AcquireRequest) { r.MaxWait = durationpb.New(-1) }), "max_wait"},
		{"long lock_key", acquire(func(r *admitv1.AcquireRequest) { r.LockKey = long }), "lock_key"},
		{"dedupe_key with a space", acquire(func(r *admitv1.AcquireRequest) { r.DedupeKey = "a b" }), "dedupe_key"},
		{"issued before 1970", acquire(func(r *admitv1.AcquireRequest) { r.IssuedAt = &timestamppb.Timestamp{Seconds: -1} }), "issued_at"},
		{"settle without rate_only", acquire(func(r *admitv1.AcquireRequest) { r.Settle = true }), "settle"},
		{"a lock that nothing holds", acquire(func(r *admitv1.AcquireRequest) { r.RateOnly, r.LockKey = true, "k" }), "lock_key"},
		{"a job that nobody ends", acquire(func(r *admitv1.AcquireRequest) { r.RateOnly, r.DedupeKey = true, "k" }), "dedupe_key"},
		{"negative backlog", acquire(func(r *admitv1.AcquireRequest) { r.Backlog = -1 }), "backlog"},
		{"backlog over 2^53", acquire(func(r *admitv1.AcquireRequest) { r.Backlog = 1<<53 + 1 }), "backlog"},
		{"negative cost of a dry run", acquire(func(r *admitv1.AcquireRequest) { r.DryRun, r.Cost = true, proto.Int64(-1) }), "cost"},
		{"a report of nothing", &admitv1.ReportDemandRequest{Backlog: -1}, "pool tenant backlog"},
		{"a report for no time", &admitv1.ReportDemandRequest{Pool: "p", Tenant: "t", Ttl: &durationpb.Duration{}}, "ttl"},
		{"a report for 61 s", &admitv1.ReportDemandRequest{Pool: "p", Tenant: "t", Ttl: durationpb.New(61 * time.Second)}, "ttl"},
		{"a share of nothing", &admitv1alpha1.LeaseShareRequest{}, "pool tenant tokens node"},
		{"a share beyond 2^53", &admitv1alpha1.LeaseShareRequest{
			Pool: "p", Tenant: "t", Tokens: 1<<53 + 1, Node: &admitv1.NodeShare{Id: "n", Owned: 2, Total: 1},
		}, "tokens node.owned"},
		{"long request_id", acquire(func(r *admitv1.AcquireRequest) { r.RequestId = strings.Repeat("r", 257) }), "request_id"},
		{"long worker_id", acquire(func(r *admitv1.AcquireRequest) { r.WorkerId = long }), "worker_id"},
		{"all at once", acquire(func(r *admitv1.AcquireRequest) { r.Tenant, r.Cost, r.Ttl = "", proto.Int64(0), hour25 }), "tenant cost ttl"},

		{"empty batch", &admitv1.BatchAcquireRequest{}, "requests"},
		{"2,000 in a batch", &admitv1.BatchAcquireRequest{Requests: slices.Repeat([]*admitv1.AcquireRequest{acquire(nil)}, 2000)}, "requests"},
		{"one bad in a batch", &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
			acquire(nil), acquire(nil), acquire(nil), acquire(func(r *admitv1.AcquireRequest) { r.Cost = proto.Int64(-1) }),
		}}, "requests[3].cost"},
		{"nothing in a batch", &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{{}}}, "requests[0].pool requests[0].tenant"},

		{"empty batch of releases", &admitv1.BatchReleaseRequest{}, "requests"},
		{"2,000 releases", &admitv1.BatchReleaseRequest{
			Requests: slices.Repeat([]*admitv1.ReleaseRequest{{Token: goodToken}}, 2000),
		}, "requests"},
		{"one bad release", &admitv1.BatchReleaseRequest{Requests: []*admitv1.ReleaseRequest{
			{Token: goodToken}, {Token: "x", Bucket: "b"},
		}}, "requests[1].token requests[1].bucket"},

		{"no tokens", &admitv1.RenewRequest{}, "tokens"},
		{"2,000 tokens", &admitv1.RenewRequest{Tokens: make([]string, 2000)}, "tokens"},
		{"tokens that can't be read", &admitv1.RenewRequest{Tokens: []string{goodToken, "", "x", goodToken + "x"}}, "tokens[1] tokens[2] tokens[3]"},
		{"tokens with line breaks", &admitv1.RenewRequest{Tokens: []string{goodToken[:30] + "\n", "\r\n" + goodToken[:29]}}, "tokens[0] tokens[1]"},
		{"renewal of 0 s", &admitv1.RenewRequest{Tokens: []string{goodToken}, Ttl: &durationpb.Duration{}}, "ttl"},

		{"no token", &admitv1.ReleaseRequest{}, "token"},
		{"unknown outcome", &admitv1.ReleaseRequest{Token: goodToken, Outcome: 99}, "outcome"},
		{"negative actual cost", &admitv1.ReleaseRequest{Token: goodToken, ActualCost: proto.Int64(-1)}, "actual_cost"},
		{"actual cost over 2^53", &admitv1.ReleaseRequest{Token: goodToken, ActualCost: proto.Int64(1<<53 + 1)}, "actual_cost"},
		{"a finding of work that failed", &admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_FAILED, Result: admitv1.Finding_FINDING_MISS}, "result"},
		{"an unknown finding", &admitv1.ReleaseRequest{Token: goodToken, Result: 99}, "result"},
		{"retry_after without throttle", &admitv1.ReleaseRequest{Token: goodToken, RetryAfter: durationpb.New(time.Second)}, "retry_after"},
		{"bucket without throttle", &admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_FAILED, Bucket: "b"}, "bucket"},
		{"throttle into the past", &admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_THROTTLED, RetryAfter: durationpb.New(-1)}, "retry_after"},
		{"throttle for 367 d", &admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_THROTTLED, RetryAfter: durationpb.New(maxDelay + 1)}, "retry_after"},

		{"negative max_items", &admitv1.NextDueRequest{Pool: "p", MaxItems: -1}, "max_items"},
		{"1,001 items", &admitv1.NextDueRequest{Pool: "p", MaxItems: 1001}, "max_items"},
		{"max_wait of 61 s", &admitv1.NextDueRequest{Pool: "p", MaxWait: durationpb.New(61 * time.Second)}, "max_wait"},
		{"negative max_wait", &admitv1.NextDueRequest{Pool: "p", MaxWait: durationpb.New(-1)}, "max_wait"},
		{"empty lane", &admitv1.NextDueRequest{Pool: "p", Lanes: []string{"a", ""}}, "lanes[1]"},
		{"17 lanes", &admitv1.NextDueRequest{Pool: "p", Lanes: make([]string, 17)}, "lanes"},
		{"tenant with a blank", &admitv1.NextDueRequest{Pool: "p", Tenant: "a b"}, "tenant"},
		{"17 lane limits", &admitv1.NextDueRequest{Pool: "p", LaneLimits: laneLimits(17)}, "lane_limits"},
		{"negative lane limit", &admitv1.NextDueRequest{Pool: "p", LaneLimits: map[string]int64{"a": -1, "b": 0}}, "lane_limits[a]"},
		{"lane limit of 1,001", &admitv1.NextDueRequest{Pool: "p", LaneLimits: map[string]int64{"a": 1001}}, "lane_limits[a]"},
		{"node without an id", &admitv1.NextDueRequest{Pool: "p", Node: &admitv1.NodeShare{Owned: 1, Total: 1}}, "node.id"},
		{"node of nothing", &admitv1.NextDueRequest{Pool: "p", Node: &admitv1.NodeShare{Id: "n"}}, "node.owned node.total"},
		{"node that owns more than all", &admitv1.NextDueRequest{Pool: "p", Node: &admitv1.NodeShare{Id: "n", Owned: 5, Total: 4}}, "node.owned"},
		{"node of 10,001 parts", &admitv1.NextDueRequest{Pool: "p", Node: &admitv1.NodeShare{Id: long, Owned: 1, Total: 10_001}}, "node.id node.total"},
		{"1,001 held rows", &admitv1.NextDueRequest{Pool: "p", HeldRows: 1001}, "held_rows"},

		{"no entries", &admitv1.ScheduleRequest{Pool: "p"}, "entries"},
		{"1,001 entries", &admitv1.ScheduleRequest{Pool: "p", Entries: make([]*admitv1.EntrySpec, 1001)}, "entries"},
		{"key with a space", schedule(func(e *admitv1.EntrySpec) { e.Key = "a b" }), "entries[1].key"},
		{"no key", schedule(func(e *admitv1.EntrySpec) { e.Key = "" }), "entries[1].key"},
		{"long route and group", schedule(func(e *admitv1.EntrySpec) { e.Route, e.Group = long, long }), "entries[1].route entries[1].group"},
		{"due in the past by delay", schedule(func(e *admitv1.EntrySpec) {
			e.Due = &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(-1)}
		}), "entries[1].due_in"},
		{"due before 1970", schedule(func(e *admitv1.EntrySpec) {
			e.Due = &admitv1.EntrySpec_DueAt{DueAt: &timestamppb.Timestamp{Seconds: -1}}
		}), "entries[1].due_at"},
		{"due after 9999", schedule(func(e *admitv1.EntrySpec) {
			e.Due = &admitv1.EntrySpec_DueAt{DueAt: &timestamppb.Timestamp{Seconds: math.MaxInt64}}
		}), "entries[1].due_at"},
		{"due at nothing", schedule(func(e *admitv1.EntrySpec) { e.Due = &admitv1.EntrySpec_DueAt{} }), "entries[1].due_at"},
		{"1,001 attempts", schedule(func(e *admitv1.EntrySpec) { e.MaxAttempts = 1001 }), "entries[1].max_attempts"},
		{"negative attempts", schedule(func(e *admitv1.EntrySpec) { e.MaxAttempts = -1 }), "entries[1].max_attempts"},

		{"unschedule of nothing", &admitv1.UnscheduleRequest{}, "pool tenant key"},
		{"list of nothing", &admitv1.ListEntriesRequest{}, "pool"},
		{"long page", &admitv1.ListEntriesRequest{Pool: "p", PageSize: 1001}, "page_size"},
		{"garbage for a page", &admitv1.ListEntriesRequest{Pool: "p", PageToken: "garbage"}, "page_token"},
		{"due before 1970, listed", &admitv1.ListEntriesRequest{Pool: "p", DueBefore: &timestamppb.Timestamp{}}, "due_before"},
		{"due before 1969, listed", &admitv1.ListEntriesRequest{Pool: "p", DueBefore: &timestamppb.Timestamp{Seconds: -1 << 25}}, "due_before"},
		{"get nothing", &admitv1.GetEntryRequest{}, "pool tenant key"},
		{"redrive more than 1000 at an odd rate", &admitv1.RedriveRequest{Pool: "p", Limit: 1001, PerSecond: -1}, "limit per_second"},
		{"redrive too fast", &admitv1.RedriveRequest{Pool: "p", PerSecond: 1_000_001}, "per_second"},
		{"redrive by what nobody has", &admitv1.RedriveRequest{Pool: "p", Filter: &admitv1.DeadFilter{
			Tenant: "a b", Lane: "a b", KeyPrefix: "a b", Outcome: admitv1.Outcome_OUTCOME_DONE,
		}}, "filter.tenant filter.lane filter.key_prefix filter.outcome"},
		{"garbage to go on redriving from", &admitv1.RedriveRequest{Pool: "p", PageToken: goodToken}, "page_token"},
		{"a purge's token to go on redriving from", &admitv1.RedriveRequest{Pool: "p", PageToken: cursorToken(
			purgeKind, "p", admission.DeadFilter{}, admission.DeadCursor{After: 1, Until: 2},
		)}, "page_token"},
		{"another filter's token", &admitv1.PurgeDeadRequest{Pool: "p", PageToken: cursorToken(
			purgeKind, "p", admission.DeadFilter{Tenant: "a"}, admission.DeadCursor{After: 1, Until: 2},
		)}, "page_token"},
		{"purge -1", &admitv1.PurgeDeadRequest{Pool: "p", Limit: -1}, "limit"},
		{"release with EXPIRED", &admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_EXPIRED}, "outcome"},
		{"garbage for a dead page", &admitv1.ListDeadRequest{Pool: "p", PageToken: goodToken}, "page_token"},

		{"pause of nothing", &admitv1.PauseRequest{Pool: "p"}, "target"},
		{"pause of no tenant", &admitv1.PauseRequest{Pool: "p", Target: &admitv1.PauseRequest_Tenant{}}, "tenant"},
		{"pause of a lane with a space", &admitv1.PauseRequest{Pool: "p", Target: &admitv1.PauseRequest_Lane{Lane: "a b"}}, "lane"},
		{"pause of a group of nobody", &admitv1.PauseRequest{Pool: "p", Target: &admitv1.PauseRequest_Group{Group: &admitv1.GroupTarget{Group: "g"}}}, "group.tenant"},
		{"resume of no group", &admitv1.ResumeRequest{Pool: "p", Target: &admitv1.ResumeRequest_Group{}}, "group.tenant group.group"},
		{"resume of nothing", &admitv1.ResumeRequest{}, "pool target"},
		{"resume of no bucket", &admitv1.ResumeRequest{Pool: "p", Target: &admitv1.ResumeRequest_Bucket{}}, "bucket"},

		{"no policy", &admitv1.ApplyPolicyRequest{}, "policy"},
		{"negative revision", &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}, ExpectedRevision: proto.Int64(-1)}, "expected_revision"},
		{"policy of 300 KiB", &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{Pools: []*admitv1.Pool{{Name: strings.Repeat("x", 300<<10)}}}}, "policy"},
		{"history of no pool", &admitv1.LaneHistoryRequest{}, "pool"},
		{"health of a bad pool", &admitv1.QueueHealthRequest{Pool: "a b"}, "pool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fieldsOf(read(c.req)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsJustAllowed(t *testing.T) {
	for _, req := range []proto.Message{
		acquire(func(r *admitv1.AcquireRequest) {
			r.Pool, r.Tenant = strings.Repeat("p", 64), strings.Repeat("A", 128)
			r.Cost, r.Ttl = proto.Int64(1<<53), durationpb.New(24*time.Hour)
			r.RequestId, r.WorkerId, r.Category = strings.Repeat("ü", 128), strings.Repeat("w", 128), strings.Repeat("c", 128)
		}),
		acquire(func(r *admitv1.AcquireRequest) { r.Tenant, r.Ttl = "aZ09._:/-", durationpb.New(time.Second) }),
		acquire(func(r *admitv1.AcquireRequest) {
			r.MaxWait, r.LockKey, r.DedupeKey = durationpb.New(time.Minute), strings.Repeat("l", 128), "aZ09._:/-"
			r.RateOnly, r.Settle, r.Backlog = true, true, 1<<53
			r.IssuedAt = &timestamppb.Timestamp{Seconds: 253402300799}
		}),
		acquire(func(r *admitv1.AcquireRequest) { r.DryRun, r.Cost = true, proto.Int64(0) }),
		&admitv1.ReportDemandRequest{Pool: "p", Tenant: "t", Backlog: 1 << 53, Ttl: durationpb.New(time.Minute)},
		&admitv1.ReportDemandRequest{Pool: "p", Tenant: "t", Ttl: durationpb.New(time.Millisecond)},
		&admitv1.BatchAcquireRequest{Requests: slices.Repeat([]*admitv1.AcquireRequest{acquire(nil)}, 1000)},
		&admitv1.BatchReleaseRequest{Requests: slices.Repeat([]*admitv1.ReleaseRequest{{Token: goodToken}}, 1000)},
		&admitv1.RenewRequest{Tokens: slices.Repeat([]string{goodToken}, 1000)},
		&admitv1.ReleaseRequest{Token: goodToken, ActualCost: proto.Int64(0)},
		&admitv1.ReleaseRequest{Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_THROTTLED, RetryAfter: durationpb.New(0), Bucket: "b"},
		&admitv1.NextDueRequest{Pool: "p", MaxItems: 1000, HeldRows: 1000, MaxWait: durationpb.New(time.Minute)},
		schedule(func(e *admitv1.EntrySpec) {
			e.Due = &admitv1.EntrySpec_DueAt{DueAt: &timestamppb.Timestamp{Seconds: 253402300799}}
		}),
		schedule(func(e *admitv1.EntrySpec) { e.Due = &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(maxDelay)} }),
		&admitv1.ListEntriesRequest{Pool: "p", PageSize: 1000},
		&admitv1.PauseRequest{Pool: "p", Target: &admitv1.PauseRequest_Bucket{Bucket: "b"}},
		&admitv1.QueueHealthRequest{},
	} {
		if err := read(req); err != nil {
			t.Errorf("%T: %v", req, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	ask, err := readAcquire(acquire(nil))
	want := admission.Acquire{Pool: "email", Tenant: "acme", Cost: 1}
	if op := ask.Op.(*admission.Acquire); err != nil || *op != want || ask.DryRun {
		t.Errorf("got %+v, %v", op, err)
	}
	req, wait, err := readNextDue(&admitv1.NextDueRequest{Pool: "p"})
	if poll := req.Op.(*admission.NextDue); err != nil || wait != 0 || req.HeldRows != 16 || poll.MaxItems != 1 {
		t.Errorf("got %+v, %v, %v, %v", poll, req.HeldRows, wait, err)
	}
	release, err := readRelease(&admitv1.ReleaseRequest{Token: goodToken})
	if err != nil || release.Outcome != admission.OutcomeDone || release.ActualCost != admission.Absent || release.RetryAfter != admission.Absent {
		t.Errorf("got %+v, %v", release, err)
	}
	entry := newChecker().entry(&admitv1.EntrySpec{Tenant: "t", Key: "k"})
	if want := (admission.EntrySpec{Tenant: "t", Key: "k", Relative: true}); entry != want {
		t.Errorf("got %+v", entry)
	}
	apply, err := readApplyPolicy(&admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}})
	if err != nil || apply.ExpectedRevision != admission.AnyRevision {
		t.Errorf("got %+v, %v", apply, err)
	}
}

// Nanoseconds since 1970 end in 2262; the API's times do not.
func TestFarTimesCountAsTheLast(t *testing.T) {
	c := newChecker()
	far := c.wall("due_at", timestamppb.New(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)))
	if got := time.Unix(0, int64(far)).UTC(); got != lastWall || c.err() != nil {
		t.Errorf("got %s, %v", got, c.err())
	}
}

func TestPageTokens(t *testing.T) {
	filter := admission.ListFilter{Pool: "p", Lane: "l"}
	token := entryToken(filter, entryKey{due: -5, seq: math.MaxUint64})
	c := newChecker()
	if got := c.entryPage("page_token", token, filter); got != (entryKey{due: -5, seq: math.MaxUint64}) || c.err() != nil {
		t.Errorf("got %+v, %v", got, c.err())
	}
	none, place := admission.DeadFilter{}, admission.DeadPlace{Tenant: 7, Key: "k", Letter: math.MaxUint64}
	dead := deadToken("p", none, place)
	if got := c.deadPage("page_token", dead, "p", none); got != place || c.err() != nil {
		t.Errorf("got %+v, %v", got, c.err())
	}
	at := admission.DeadCursor{After: 1, Until: math.MaxUint64, Due: -3}
	redrive := cursorToken(redriveKind, "p", none, at)
	if got := c.cursor(redriveKind, "page_token", redrive, "p", none); got != at || c.err() != nil {
		t.Errorf("got %+v, %v", got, c.err())
	}
	for _, bad := range []func(checker){
		func(c checker) { c.entryPage("t", token, admission.ListFilter{Pool: "p"}) },
		func(c checker) { c.entryPage("t", dead, filter) },
		func(c checker) { c.entryPage("t", token+"A", filter) },
		func(c checker) { c.entryPage("t", strings.Repeat("A", 4096), filter) },
		func(c checker) { c.deadPage("t", token, "p", none) },
		func(c checker) { c.deadPage("t", dead, "q", none) },
		func(c checker) { c.deadPage("t", dead, "p", admission.DeadFilter{Outcome: admission.OutcomeDead}) },
		func(c checker) { c.cursor(purgeKind, "t", redrive, "p", none) },
	} {
		c := newChecker()
		if bad(c); c.err() == nil {
			t.Error("a token of another list is taken")
		}
	}
}
