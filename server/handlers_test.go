package server

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// testPolicy is one pool of the kind that the product is for.
func testPolicy() *admitv1.Policy {
	return &admitv1.Policy{Pools: []*admitv1.Pool{{
		Name:      "email",
		MaxActive: proto.Int64(10),
		Buckets: []*admitv1.Bucket{
			{
				Name: "provider", Scope: admitv1.Bucket_POOL, Capacity: proto.Int64(5), Refill: proto.Int64(5),
				Period: durationpb.New(time.Second), Charge: admitv1.Bucket_PERMIT,
			},
			{
				Name: "fair-use", Scope: admitv1.Bucket_TENANT, Capacity: proto.Int64(20), Refill: proto.Int64(1),
				Period: durationpb.New(time.Second),
			},
		},
		Lanes: []*admitv1.Lane{
			{Name: "transactional"},
			{Name: "marketing", LeaveSlots: 2, LeaveTokens: map[string]int64{"provider": 1}, TenantCycleLimit: proto.Int64(2)},
		},
		Categories: map[string]string{"otp": "transactional", "newsletter": "marketing"},
		Tenants:    &admitv1.Tenants{Overrides: []*admitv1.Tenant{{Id: "trial", MaxActive: proto.Int64(1)}}},
	}}}
}

// startWithPolicy is a server whose state has testPolicy.
func startWithPolicy(t *testing.T) (*harness, *fakeStore) {
	t.Helper()
	store := newFakeStore()
	h := start(t, store)
	resp, err := h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: testPolicy(), ExpectedRevision: proto.Int64(0)})
	if err != nil || resp.GetRevision() != 1 || !resp.GetChanged() {
		t.Fatalf("got %v, %v", resp, err)
	}
	return h, store
}

func TestAPermitIsGrantedRenewedAndReleased(t *testing.T) {
	h, _ := startWithPolicy(t)
	in := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp", RequestId: "r1", Ttl: durationpb.New(time.Minute)}
	first, err := h.Acquire(soon(t), in)
	if err != nil {
		t.Fatal(err)
	}
	p := first.GetDecision().GetPermit()
	if p.GetToken() == "" || p.GetFence() == 0 || p.GetPool() != "email" || p.GetTenant() != "acme" || p.GetLane() != "transactional" ||
		p.GetState() != admitv1.PermitState_PERMIT_STATE_LIVE || p.GetExpiresIn().AsDuration() != time.Minute {
		t.Errorf("got %v", p)
	}
	if s := first.GetShedding(); s.GetLogIndex() == 0 || s.GetPolicyRevision() != 1 || len(s.GetLanes()) != 2 || s.GetLanes()[0].GetOldestAge() != nil {
		t.Errorf("got %v", s)
	}
	again, err := h.Acquire(soon(t), in)
	if err != nil || !again.GetDecision().GetReplayed() || again.GetDecision().GetPermit().GetToken() != p.GetToken() {
		t.Errorf("the retry got %v, %v", again, err)
	}
	renewed, err := h.Renew(soon(t), &admitv1.RenewRequest{Tokens: []string{p.GetToken(), goodToken}, Ttl: durationpb.New(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	rows := renewed.GetResults()
	if rows[0].GetResult() != admitv1.LeaseResult_LEASE_RESULT_RENEWED || rows[0].GetExpiresIn().AsDuration() != time.Hour {
		t.Errorf("got %v", rows[0])
	}
	if rows[1].GetResult() != admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST || rows[1].GetExpiresIn() != nil {
		t.Errorf("got %v", rows[1])
	}
	for _, want := range []admitv1.LeaseResult{admitv1.LeaseResult_LEASE_RESULT_RELEASED, admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED} {
		got, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: p.GetToken()})
		if err != nil || got.GetResult() != want {
			t.Errorf("got %v, %v, want %s", got, err, want)
		}
	}
	in.Cost = proto.Int64(2)
	_, err = h.Acquire(soon(t), in)
	if got := tell(t, err); got.code != codes.FailedPrecondition || got.reason != "REQUEST_MISMATCH" {
		t.Errorf("got %+v", got)
	}
}

func TestARefusalSaysWhyAndWhenToComeBack(t *testing.T) {
	h, _ := startWithPolicy(t)
	in := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp", Cost: proto.Int64(20)}
	if _, err := h.Acquire(soon(t), in); err != nil {
		t.Fatal(err)
	}
	resp, err := h.Acquire(soon(t), in)
	if err != nil {
		t.Fatal(err)
	}
	shed := resp.GetDecision().GetShed()
	if shed.GetReason() != admitv1.Reason_REASON_TENANT_RATE || shed.GetRetryAfter().AsDuration() != 20*time.Second || shed.MaxGrantable != nil {
		t.Errorf("got %v", shed)
	}
	if l := shed.GetBlocking(); len(l) != 1 || l[0].GetName() != "fair-use" || l[0].GetScope() != admitv1.Limit_SCOPE_TENANT ||
		l[0].GetCapacity() != 20 || l[0].GetUsed() != 20 || l[0].GetAsked() != 20 {
		t.Errorf("got %v", l)
	}
	in.Cost = proto.Int64(21)
	resp, err = h.Acquire(soon(t), in)
	if err != nil || resp.GetDecision().GetShed().GetMaxGrantable() != 20 || resp.GetDecision().GetShed().GetRetryAfter() != nil {
		t.Errorf("got %v, %v", resp, err)
	}
}

func TestABatchDecidesEachOnItsOwn(t *testing.T) {
	h, _ := startWithPolicy(t)
	resp, err := h.BatchAcquire(soon(t), &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
		{Pool: "email", Tenant: "trial"},
		{Pool: "nowhere", Tenant: "trial"},
		{Pool: "email", Tenant: "trial"},
		{Pool: "email", Tenant: "acme", Category: "unheard-of"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	rows := resp.GetResults()
	if rows[0].GetResponse().GetDecision().GetPermit() == nil {
		t.Errorf("got %v", rows[0])
	}
	if e := rows[1].GetError(); e.GetReason() != "POOL_NOT_FOUND" || e.GetField() != "requests[1].pool" {
		t.Errorf("got %v", rows[1])
	}
	if s := rows[2].GetResponse().GetDecision().GetShed(); s.GetReason() != admitv1.Reason_REASON_TENANT_CAP {
		t.Errorf("got %v", rows[2])
	}
	if e := rows[3].GetError(); e.GetReason() != "UNKNOWN_CATEGORY" || e.GetField() != "requests[3].category" {
		t.Errorf("got %v", rows[3])
	}
}

func TestABatchGivesBackEachOnItsOwn(t *testing.T) {
	h, _ := startWithPolicy(t)
	asked, err := h.BatchAcquire(soon(t), &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
		{Pool: "email", Tenant: "acme"}, {Pool: "email", Tenant: "trial"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	token := func(i int) string { return asked.GetResults()[i].GetResponse().GetDecision().GetPermit().GetToken() }
	resp, err := h.BatchRelease(soon(t), &admitv1.BatchReleaseRequest{Requests: []*admitv1.ReleaseRequest{
		{Token: token(0)},
		{Token: goodToken},
		{Token: token(1), Outcome: admitv1.Outcome_OUTCOME_THROTTLED, Bucket: "nowhere"},
		{Token: token(1)},
		{Token: token(0)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]admitv1.LeaseResult{
		0: admitv1.LeaseResult_LEASE_RESULT_RELEASED,
		1: admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST,
		3: admitv1.LeaseResult_LEASE_RESULT_RELEASED,
		4: admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED,
	} {
		if got := resp.GetResults()[i].GetResponse(); got.GetResult() != want {
			t.Errorf("%d: got %v, want %v", i, got, want)
		}
	}
	if e := resp.GetResults()[2].GetError(); e.GetField() != "requests[2].bucket" {
		t.Errorf("got %v", resp.GetResults()[2])
	}
}

func TestDueWorkIsScheduledClaimedAndFinished(t *testing.T) {
	h, store := startWithPolicy(t)
	in := &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{
		{Tenant: "acme", Key: "k1", Category: "newsletter", Route: "r", Group: "g"},
		{Tenant: "acme", Key: "k2", Category: "newsletter", Due: &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(time.Hour)}},
		{Tenant: "acme", Key: "k3", Category: "unheard-of"},
	}}
	resp, err := h.due.Schedule(soon(t), in)
	if err != nil {
		t.Fatal(err)
	}
	rows := resp.GetResults()
	if rows[0].GetStatus() != admitv1.ScheduleResult_STATUS_SCHEDULED || rows[1].GetStatus() != admitv1.ScheduleResult_STATUS_SCHEDULED {
		t.Errorf("got %v", rows)
	}
	if rows[2].GetStatus() != admitv1.ScheduleResult_STATUS_ERROR || rows[2].GetError().GetReason() != "UNKNOWN_CATEGORY" ||
		rows[2].GetError().GetField() != "entries[2].category" {
		t.Errorf("got %v", rows[2])
	}
	poll, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxItems: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(poll.GetClaims()) != 1 || poll.GetNextDueIn().AsDuration() != time.Hour {
		t.Fatalf("got %v", poll)
	}
	c := poll.GetClaims()[0]
	if c.GetKey() != "k1" || c.GetRoute() != "r" || c.GetGroup() != "g" || c.GetCategory() != "newsletter" || c.GetAttempt() != 1 ||
		c.GetDueAt().AsTime().UnixNano() != int64(store.wall) || c.GetPermit().GetToken() == "" {
		t.Errorf("got %v", c)
	}
	gone, err := h.due.Unschedule(soon(t), &admitv1.UnscheduleRequest{Pool: "email", Tenant: "acme", Key: "k1"})
	if err != nil || !gone.GetWasClaimed() {
		t.Errorf("got %v, %v", gone, err)
	}
	ended, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: c.GetPermit().GetToken()})
	if err != nil || ended.GetResult() != admitv1.LeaseResult_LEASE_RESULT_CANCELLED {
		t.Errorf("got %v, %v", ended, err)
	}
	_, err = h.due.Unschedule(soon(t), &admitv1.UnscheduleRequest{Pool: "email", Tenant: "acme", Key: "k1"})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "ENTRY_NOT_FOUND" || got.meta["key"] != "k1" {
		t.Errorf("got %+v", got)
	}
}

func TestListsPageThroughEverything(t *testing.T) {
	h, _ := startWithPolicy(t)
	in := &admitv1.ScheduleRequest{Pool: "email"}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		in.Entries = append(in.Entries, &admitv1.EntrySpec{Tenant: "acme", Key: key, Category: "otp", MaxAttempts: 1})
	}
	if _, err := h.due.Schedule(soon(t), in); err != nil {
		t.Fatal(err)
	}
	poll, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxItems: 3})
	if err != nil || len(poll.GetClaims()) != 3 {
		t.Fatalf("got %v, %v", poll, err)
	}
	for _, c := range poll.GetClaims()[:2] {
		if _, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: c.GetPermit().GetToken(), Outcome: admitv1.Outcome_OUTCOME_FAILED}); err != nil {
			t.Fatal(err)
		}
	}
	var listed []string
	page := &admitv1.ListEntriesRequest{Pool: "email", PageSize: 2}
	for pages := 0; pages < 3; pages++ {
		resp, err := h.due.ListEntries(soon(t), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range resp.GetEntries() {
			listed = append(listed, e.GetKey()+":"+strings.TrimPrefix(e.GetState().String(), "ENTRY_STATE_"))
		}
		if page.PageToken = resp.GetNextPageToken(); page.PageToken == "" {
			break
		}
	}
	if got := strings.Join(listed, " "); got != "c:CLAIMED d:QUEUED e:QUEUED" {
		t.Errorf("got %s", got)
	}
	first, err := h.due.ListDead(soon(t), &admitv1.ListDeadRequest{Pool: "email", PageSize: 1})
	if err != nil || len(first.GetEntries()) != 1 || first.GetNextPageToken() == "" {
		t.Fatalf("got %v, %v", first, err)
	}
	if d := first.GetEntries()[0]; d.GetKey() != "a" || d.GetHistory()[0].GetOutcome() != admitv1.Outcome_OUTCOME_FAILED || d.GetDiedAt() == nil || d.GetState() != admitv1.EntryState_ENTRY_STATE_DEAD {
		t.Errorf("got %v", d)
	}
	last, err := h.due.ListDead(soon(t), &admitv1.ListDeadRequest{Pool: "email", PageSize: 1, PageToken: first.GetNextPageToken()})
	if err != nil || last.GetEntries()[0].GetKey() != "b" || last.GetNextPageToken() != "" {
		t.Errorf("got %v, %v", last, err)
	}
	_, err = h.due.ListEntries(soon(t), &admitv1.ListEntriesRequest{Pool: "nowhere"})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "POOL_NOT_FOUND" {
		t.Errorf("got %+v", got)
	}
}

func TestPoliciesComeBackAsTheyWere(t *testing.T) {
	h, _ := startWithPolicy(t)
	got, err := h.policy.GetPolicy(soon(t), &admitv1.GetPolicyRequest{})
	if err != nil || got.GetRevision() != 1 || got.GetAppliedAt() == nil || !proto.Equal(got.GetPolicy(), testPolicy()) {
		t.Errorf("got %v, %v", got, err)
	}
	next := testPolicy()
	next.Pools[0].MaxActive = proto.Int64(99)
	next.Pools = append(next.Pools, &admitv1.Pool{Name: "sms"})
	if _, err := h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: next}); err != nil {
		t.Fatal(err)
	}
	kept, err := h.policy.ListRevisions(soon(t), &admitv1.ListRevisionsRequest{})
	if err != nil || len(kept.GetRevisions()) != 2 || kept.GetRevisions()[0].GetRevision() != 2 ||
		!slices.Equal(kept.GetRevisions()[0].GetChangedPools(), []string{"email", "sms"}) || kept.GetRevisions()[1].GetAppliedAt() == nil {
		t.Errorf("got %v, %v", kept, err)
	}
	if got, err := h.policy.GetPolicy(soon(t), &admitv1.GetPolicyRequest{Revision: 1}); err != nil || !proto.Equal(got.GetPolicy(), testPolicy()) {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = h.policy.GetPolicy(soon(t), &admitv1.GetPolicyRequest{Revision: 3})
	if got := tell(t, err); got.reason != "REVISION_NOT_FOUND" || got.meta["revision"] != "3" {
		t.Errorf("got %+v", got)
	}
	if _, err := h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: testPolicy()}); err != nil {
		t.Fatal(err)
	}
	_, err = h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: testPolicy(), ExpectedRevision: proto.Int64(7)})
	if got := tell(t, err); got.code != codes.FailedPrecondition || got.reason != "REVISION_CONFLICT" || got.meta["actual"] != "3" {
		t.Errorf("got %+v", got)
	}
	bad := testPolicy()
	bad.Pools[0].Buckets[1].Name = "provider"
	bad.Pools[0].Categories["otp"] = "nowhere"
	_, err = h.policy.ApplyPolicy(soon(t), &admitv1.ApplyPolicyRequest{Policy: bad})
	if got := tell(t, err); got.code != codes.InvalidArgument || got.reason != "POLICY_INVALID" ||
		!strings.Contains(got.fields, "pools[0].buckets[1].name") || !strings.Contains(got.fields, "categories") {
		t.Errorf("got %+v", got)
	}
}

func TestAPolicyIsNotMadeUpBeforeTheStoreIsReady(t *testing.T) {
	store := newFakeStore()
	store.ready = false
	h := start(t, store)
	_, err := h.policy.GetPolicy(soon(t), &admitv1.GetPolicyRequest{})
	if got := tell(t, err); got.code != codes.Unavailable || got.reason != "NO_QUORUM" {
		t.Errorf("got %+v", got)
	}
}

func TestPausedTargetsAreHeldUntilResumed(t *testing.T) {
	h, _ := startWithPolicy(t)
	reason := func() admitv1.Reason {
		t.Helper()
		resp, err := h.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "trial", Category: "otp"})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetDecision().GetShed().GetReason()
	}
	if _, err := h.policy.Pause(soon(t), &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Lane{Lane: "transactional"}}); err != nil {
		t.Fatal(err)
	}
	if got := reason(); got != admitv1.Reason_REASON_PAUSED {
		t.Errorf("got %s", got)
	}
	health, err := h.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Pool: "email"})
	if err != nil || !health.GetPools()[0].GetLanes()[0].GetPaused() || health.GetPools()[0].GetMaxActive() != 10 {
		t.Errorf("got %v, %v", health, err)
	}
	if _, err := h.policy.Resume(soon(t), &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Lane{Lane: "transactional"}}); err != nil {
		t.Fatal(err)
	}
	// What operators do is told, what workers do is not.
	told := strings.Join(h.log.lines(), "\n")
	for _, want := range []string{`msg="applied a policy" policy=1`, "msg=paused pool=email lane=transactional", "msg=resumed pool=email lane=transactional"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in %q", want, told)
		}
	}
	if strings.Contains(told, "Acquire") {
		t.Errorf("got %q", told)
	}
	if got := reason(); got != admitv1.Reason_REASON_UNSPECIFIED {
		t.Errorf("got %s", got)
	}
	_, err = h.policy.Pause(soon(t), &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Bucket{Bucket: "nowhere"}})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "TARGET_NOT_FOUND" {
		t.Errorf("got %+v", got)
	}
	_, err = h.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Pool: "nowhere"})
	if got := tell(t, err); got.code != codes.NotFound || got.reason != "POOL_NOT_FOUND" || got.meta["pool"] != "nowhere" {
		t.Errorf("got %+v", got)
	}
}

// The gauges show the state as it is, and no label has a tenant or a key.
func TestTheScrapeShowsTheState(t *testing.T) {
	h, _ := startWithPolicy(t)
	for _, in := range []*admitv1.AcquireRequest{
		{Pool: "email", Tenant: "trial", Category: "otp"},
		{Pool: "email", Tenant: "trial", Category: "otp"},
		{Pool: "nowhere", Tenant: "trial"},
	} {
		_, _ = h.Acquire(soon(t), in) // the last is an error, which is no decision
	}
	if _, err := h.due.Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{{Tenant: "trial", Key: "k", Category: "otp"}}}); err != nil {
		t.Fatal(err)
	}
	got := scrape(t, h.reg)
	if *update {
		if err := os.WriteFile("testdata/scrape.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/scrape.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEveryReasonOfTheCoreHasOneInTheAPI(t *testing.T) {
	for r := admission.NeverGrantable; r.String() != "UNKNOWN"; r++ {
		if got := reasons[r].String(); got != "REASON_"+r.String() {
			t.Errorf("%s is %s", r, got)
		}
	}
	if len(reasons)+1 != len(admitv1.Reason_name) {
		t.Errorf("%d of %d reasons are told", len(reasons), len(admitv1.Reason_name)-1)
	}
}

func TestListsWaitForTheirTurn(t *testing.T) {
	store := newFakeStore()
	s := newDueWorkService(store, reads{store, &router{}})
	for range cap(s.listing) {
		s.listing <- struct{}{}
	}
	given, up := context.WithCancel(t.Context())
	up()
	if _, err := s.ListEntries(given, &admitv1.ListEntriesRequest{Pool: "p"}); !errors.Is(err, context.Canceled) {
		t.Errorf("entries were listed for nobody: %v", err)
	}
	if _, err := s.ListDead(given, &admitv1.ListDeadRequest{Pool: "p"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the dead were listed for nobody: %v", err)
	}
	<-s.listing
	// Every list gives its place back, one that fails too.
	for range 2 {
		_, err := s.ListEntries(t.Context(), &admitv1.ListEntriesRequest{Pool: "p"})
		if got := tell(t, statusError(err, true)); got.reason != "POOL_NOT_FOUND" {
			t.Errorf("got %+v", got)
		}
		_, err = s.ListDead(t.Context(), &admitv1.ListDeadRequest{Pool: "p"})
		if got := tell(t, statusError(err, true)); got.reason != "POOL_NOT_FOUND" {
			t.Errorf("got %+v", got)
		}
	}
}

func TestAPausedGroupIsHeldUntilResumed(t *testing.T) {
	h, _ := startWithPolicy(t)
	entry := &admitv1.EntrySpec{Tenant: "trial", Key: "k", Category: "otp", Group: "run-1"}
	if _, err := h.due.Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{entry}}); err != nil {
		t.Fatal(err)
	}
	group := &admitv1.GroupTarget{Tenant: "trial", Group: "run-1"}
	if _, err := h.policy.Pause(soon(t), &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Group{Group: group}}); err != nil {
		t.Fatal(err)
	}
	due := func() *admitv1.NextDueResponse {
		t.Helper()
		resp, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxItems: 1})
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	held := due()
	if rows := held.GetShedding().GetHeld(); len(held.GetClaims()) != 0 || len(rows) != 1 ||
		rows[0].GetReason() != admitv1.Reason_REASON_PAUSED || rows[0].GetDue() != 1 {
		t.Errorf("got %v", held)
	}
	if _, err := h.policy.Resume(soon(t), &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Group{Group: group}}); err != nil {
		t.Fatal(err)
	}
	if got := due(); len(got.GetClaims()) != 1 {
		t.Errorf("got %v", got)
	}
	if want, told := "msg=paused pool=email group=run-1 tenant=trial", strings.Join(h.log.lines(), "\n"); !strings.Contains(told, want) {
		t.Errorf("%q is missing in %q", want, told)
	}
}
