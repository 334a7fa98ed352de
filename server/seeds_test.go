package server

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// seed writes a history for the fuzzer. goodToken in it stands for the last
// permit's token.
type seed struct{ data []byte }

func (s *seed) add(kind byte, data []byte) {
	s.data = binary.BigEndian.AppendUint16(append(s.data, kind), uint16(len(data)))
	s.data = append(s.data, data...)
}

func (s *seed) send(kind byte, m proto.Message) {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	s.add(kind, data)
}

func (s *seed) acquire(cost int64) {
	s.send(kindAcquire, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp", Cost: &cost})
}

func (s *seed) release(r *admitv1.ReleaseRequest) {
	r.Token = goodToken
	s.send(kindRelease, r)
}

func (s *seed) poll(items int32) {
	s.send(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: items, Ttl: durationpb.New(minTTL)})
}

func (s *seed) sleep(d time.Duration) {
	s.add(kindSleep, binary.BigEndian.AppendUint64(nil, uint64(d)<<8))
}

// seedHistories run the main job, with the edges of what is allowed.
func seedHistories() [][]byte {
	var all [][]byte
	for _, write := range []func(*seed){seedPermits, seedDueWork, seedRetries, seedDead, seedPolicies, seedTenants, seedDrain, seedShares, seedChoices} {
		var s seed
		write(&s)
		all = append(all, s.data)
	}
	return all
}

func seedPermits(s *seed) {
	named := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp", RequestId: "r"}
	s.send(kindAcquire, named)
	s.send(kindRenew, &admitv1.RenewRequest{Tokens: []string{goodToken}, Ttl: durationpb.New(maxTTL)})
	s.release(&admitv1.ReleaseRequest{})
	s.release(&admitv1.ReleaseRequest{})
	s.send(kindAcquire, named)
	named.Cost = proto.Int64(2)
	s.send(kindAcquire, named)
	s.sleep(time.Minute)
	s.acquire(20)
	s.release(&admitv1.ReleaseRequest{ActualCost: proto.Int64(0)})
	s.acquire(20)
	s.release(&admitv1.ReleaseRequest{ActualCost: proto.Int64(1 << 53)})
	s.acquire(1 << 53)
	s.sleep(time.Hour)
	s.acquire(1)
	s.release(&admitv1.ReleaseRequest{Outcome: admitv1.Outcome_OUTCOME_THROTTLED})
	s.acquire(1)
	s.sleep(48 * time.Hour)
	s.acquire(1)
	s.release(&admitv1.ReleaseRequest{
		Outcome: admitv1.Outcome_OUTCOME_THROTTLED, RetryAfter: durationpb.New(maxDelay), Bucket: "provider",
	})
	s.send(kindAcquire, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Ttl: durationpb.New(minTTL)})
	s.sleep(time.Minute)
	s.send(kindRenew, &admitv1.RenewRequest{Tokens: []string{goodToken}})
}

// seedShares lends tokens to sidecars, through changes of what they may hold.
func seedShares(s *seed) {
	policy := sharedPolicy()
	apply := func() { s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: policy}) }
	lease := func(node string, tokens, owned, total int64) {
		s.send(kindLeaseShare, &admitv1alpha1.LeaseShareRequest{
			Pool: "email", Tenant: "acme", Category: "otp", Tokens: tokens,
			Node: &admitv1.NodeShare{Id: node, Owned: owned, Total: total},
		})
	}
	lease("n", 1, 1, 1)
	apply()
	lease("n", 2, 1, 1)
	lease("m", 1<<53, 1, maxNodeParts)
	s.send(kindRenew, &admitv1.RenewRequest{Tokens: []string{goodToken}})
	s.release(&admitv1.ReleaseRequest{ActualCost: proto.Int64(0)})
	lease("m", 1<<53, maxNodeParts, maxNodeParts)
	policy.Pools[0].Buckets[0].Capacity = proto.Int64(1)
	policy.Pools[0].Buckets[0].Share.Max = proto.Int64(1)
	apply()
	s.release(&admitv1.ReleaseRequest{ActualCost: proto.Int64(1 << 53)})
	s.sleep(time.Minute)
	lease("o", 1, 1, 2)
	policy.Pools[0].Buckets[0].Charge, policy.Pools[0].Buckets[0].Share = admitv1.Bucket_PERMIT, nil
	apply()
	s.sleep(time.Minute)
}

func seedDueWork(s *seed) {
	entries := []*admitv1.EntrySpec{
		{Tenant: "acme", Key: "a", Category: "otp", Route: "r", Group: "g", MaxAttempts: 1},
		{Tenant: "acme", Key: "b", Category: "otp", Route: "s"},
		{Tenant: "trial", Key: "b", Due: &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(maxDelay)}},
		{Tenant: "trial", Key: "c", Category: "unmapped"},
	}
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: entries})
	s.send(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: 1000, RequestId: "r"})
	s.send(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: 1000, RequestId: "r"})
	s.send(kindRenew, &admitv1.RenewRequest{Tokens: []string{goodToken}})
	entries[1].Group = "other"
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: entries})
	s.release(&admitv1.ReleaseRequest{})
	s.sleep(time.Minute)
	s.send(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: 10, Lanes: []string{"transactional", "nowhere"}})
	s.send(kindUnschedule, &admitv1.UnscheduleRequest{Pool: "email", Tenant: "trial", Key: "b"})
	s.send(kindUnschedule, &admitv1.UnscheduleRequest{Pool: "email", Tenant: "trial", Key: "b"})
}

// seedDead lets work die, and brings it back at a rate, a part at a time.
func seedDead(s *seed) {
	spec := func(key string) *admitv1.EntrySpec {
		return &admitv1.EntrySpec{Tenant: "acme", Key: key, Category: "otp"}
	}
	grid := spec("grid")
	grid.Recurrence = &admitv1.EntrySpec_Every{Every: durationpb.New(time.Second)}
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{spec("a"), spec("b"), grid}})
	for range 4 {
		s.poll(1)
		s.release(&admitv1.ReleaseRequest{Outcome: admitv1.Outcome_OUTCOME_DEAD})
		s.sleep(time.Second)
	}
	s.send(kindRedrive, &admitv1.RedriveRequest{Pool: "email", Limit: 1, PerSecond: 1_000_000, Filter: &admitv1.DeadFilter{
		Tenant: "acme", Lane: "transactional", KeyPrefix: "g", Outcome: admitv1.Outcome_OUTCOME_DEAD,
	}})
	s.send(kindRedrive, &admitv1.RedriveRequest{Pool: "email", Limit: 1, PerSecond: 1, PageToken: cursorToken(
		redriveKind, "email", admission.DeadFilter{}, admission.DeadCursor{After: math.MaxUint64, Until: math.MaxUint64, Due: math.MaxInt64},
	)})
	s.poll(1000)
	s.release(&admitv1.ReleaseRequest{Outcome: admitv1.Outcome_OUTCOME_FAILED})
	s.send(kindUnschedule, &admitv1.UnscheduleRequest{Pool: "email", Tenant: "acme", Key: "grid"})
	s.send(kindPurgeDead, &admitv1.PurgeDeadRequest{Pool: "email", Limit: 1})
	s.send(kindPurgeDead, &admitv1.PurgeDeadRequest{Pool: "nowhere"})
}

// seedRetries take an entry through every end that an attempt has.
func seedRetries(s *seed) {
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{{Tenant: "acme", Key: "k", Category: "newsletter"}}})
	for _, outcome := range []admitv1.Outcome{
		admitv1.Outcome_OUTCOME_FAILED, admitv1.Outcome_OUTCOME_NOT_STARTED, admitv1.Outcome_OUTCOME_NOT_STARTED,
		admitv1.Outcome_OUTCOME_NOT_STARTED, admitv1.Outcome_OUTCOME_NOT_STARTED, admitv1.Outcome_OUTCOME_THROTTLED,
	} {
		s.poll(1)
		s.release(&admitv1.ReleaseRequest{Outcome: outcome})
		s.sleep(time.Hour)
	}
	s.poll(1) // and its holder vanishes
	s.sleep(time.Hour)
	s.poll(1)
	s.release(&admitv1.ReleaseRequest{Outcome: admitv1.Outcome_OUTCOME_DEAD})
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{{Tenant: "acme", Key: "k", Category: "otp"}}})
	s.poll(1)
	s.release(&admitv1.ReleaseRequest{})
}

func seedPolicies(s *seed) {
	s.send(kindPause, &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Bucket{Bucket: "provider"}})
	s.send(kindBatchAcquire, &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
		{Pool: "email", Tenant: "acme"}, {Pool: "email", Tenant: "trial", Category: "newsletter"}, {Pool: "none", Tenant: "t"},
	}})
	s.send(kindResume, &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Bucket{Bucket: "provider"}})
	s.send(kindPause, &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Tenant{Tenant: "acme"}})
	s.send(kindResume, &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Tenant{Tenant: "acme"}})
	group := &admitv1.GroupTarget{Tenant: "acme", Group: "run-1"}
	s.send(kindPause, &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Group{Group: group}})
	s.send(kindResume, &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Group{Group: group}})
	for range 4 {
		s.acquire(1)
	}
	lowered := testPolicy()
	lowered.Pools[0].MaxActive = proto.Int64(3)
	lowered.Pools[0].Buckets[0].Capacity = proto.Int64(3)
	lowered.Pools[0].Tenants = &admitv1.Tenants{Overrides: []*admitv1.Tenant{{
		Id: "acme", Weight: proto.Int64(5), Buckets: map[string]*admitv1.BucketOverride{"fair-use": {Blocked: true}},
	}}}
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: lowered})
	s.acquire(1)
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: lowered, ExpectedRevision: proto.Int64(1)})
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}})
	s.sleep(time.Hour)
	lowered.Pools[0].Lanes = lowered.Pools[0].Lanes[:1]
	lowered.Pools[0].Categories = nil
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: lowered})
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}})
}

// seedTenants gives tenants rows of their own, takes them away again, and asks why
// they wait.
func seedTenants(s *seed) {
	put := func(rows ...*admitv1.TenantPut) {
		s.send(kindPutTenants, &admitv1.PutTenantsRequest{Pool: "email", Rows: rows})
	}
	row := &admitv1.Tenant{
		Id: "acme", Weight: proto.Int64(1_000_000), PreferredActive: proto.Int64(1), MaxActive: proto.Int64(1),
		LaneMaxActive: map[string]int64{"marketing": 1}, Buckets: map[string]*admitv1.BucketOverride{"fair-use": {Capacity: proto.Int64(1)}},
	}
	s.acquire(2)
	put(&admitv1.TenantPut{Tenant: row}, &admitv1.TenantPut{Tenant: &admitv1.Tenant{Id: "new"}})
	s.send(kindAcquire, &admitv1.AcquireRequest{
		Pool: "email", Tenant: "acme", Category: "newsletter", RequestId: "w", MaxWait: durationpb.New(time.Minute),
	})
	s.send(kindReportDemand, &admitv1.ReportDemandRequest{Pool: "email", Tenant: "new", Backlog: 3})
	s.send(kindExplain, &admitv1.ExplainRequest{Pool: "email", Tenant: "acme", RequestId: "w"})
	s.send(kindExplain, &admitv1.ExplainRequest{Pool: "email", Tenant: "stranger", Category: "otp", DedupeKey: "j", LockKey: "l"})
	s.send(kindExplain, &admitv1.ExplainRequest{Permit: goodToken})
	row.Buckets["fair-use"] = &admitv1.BucketOverride{Blocked: true}
	put(&admitv1.TenantPut{Tenant: row})
	for i := range 6 {
		s.send(kindAcquire, &admitv1.AcquireRequest{Pool: "email", Tenant: "t" + strconv.Itoa(i), DedupeKey: "j", LockKey: "l"})
	}
	put(&admitv1.TenantPut{Tenant: &admitv1.Tenant{Id: "acme"}, Remove: true}, &admitv1.TenantPut{Tenant: &admitv1.Tenant{Id: "new"}, Remove: true})
	s.sleep(time.Hour)
}

// seedDrain takes a lane and then the pool away while they hold something, and
// brings the pool back.
func seedDrain(s *seed) {
	s.send(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{
		{Tenant: "acme", Key: "a", Category: "newsletter"}, {Tenant: "acme", Key: "b", Category: "otp"},
	}})
	s.acquire(1)
	less := testPolicy()
	less.Pools[0].Lanes, less.Pools[0].Categories = less.Pools[0].Lanes[:1], map[string]string{"otp": "transactional"}
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: less, Drain: true})
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}, Drain: true})
	s.acquire(1)
	s.poll(1000)
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: testPolicy()})
	s.poll(1000)
	s.release(&admitv1.ReleaseRequest{})
	s.send(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}, Drain: true})
	s.sleep(48 * time.Hour)
}

// seedChoices let fill make each kind of message.
func seedChoices(s *seed) {
	for kind := range byte(kinds) {
		for _, run := range []string{"\x00\x01\x02", "\x00\x30\x00\x31\x00\x32\x00\x33\x00\x05\x00\x06\x00\x07\x01\x01\x01\x02\x01\x01"} {
			s.add(kindAcquire|made, []byte("\x00\x30\x00\x30\x00\x30\x00\x01\x03\x03"))
			s.add(kind|made, []byte(run))
		}
	}
}
