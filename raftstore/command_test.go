package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

// everyOp is one of each operation, with every field set.
func everyOp() []admission.Op {
	token := admission.Token{Epoch: 3, Index: 1 << 40, Position: 7, Nonce: 1<<63 + 5}
	filter := admission.DeadFilter{Tenant: "acme", Lane: "l", KeyPrefix: "k", Outcome: admission.OutcomeDead}
	return []admission.Op{
		admission.TermStart{Gap: time.Minute},
		admission.ApplyPolicy{ExpectedRevision: admission.AnyRevision, Policy: fullPolicy(), Drain: true},
		&admission.PutTenants{Pool: "mail", Rows: []admission.TenantPut{
			{Tenant: fullPolicy().Pools[0].Defaults, Remove: true},
		}},
		admission.Pause{Pool: "mail", Kind: admission.TargetGroup, Name: "b", Tenant: "acme", Resume: true},
		&admission.Acquire{
			Pool: "mail", Tenant: "acme", Category: "otp", Cost: 3, TTL: time.Second, RequestID: "r", WorkerID: "w",
			Nonce: 1<<63 + 1, MaxWait: time.Minute, LockKey: "l", DedupeKey: "d", IssuedAt: 1 << 60, RateOnly: true,
			Settle: true, Backlog: 5,
		},
		admission.Detach{Waiter: admission.WaiterKey{Index: 1 << 40, Position: 7}},
		&admission.ReportDemand{Pool: "mail", Tenant: "acme", Category: "otp", Backlog: 6, TTL: time.Second},
		&admission.NextDue{
			Pool: "mail", MaxItems: 10, TTL: time.Second, WorkerID: "w", Lanes: []string{"a", "b"}, RequestID: "r",
			Nonce: 9, Tenant: "acme", Batch: true, LaneLimits: map[string]int64{"a": 1}, Node: admission.Node{ID: "n", Owned: 1, Total: 2},
		},
		&admission.Take{Pool: "mail", Parts: []admission.TakePart{
			{Tenant: "acme", Category: "otp", Buckets: []string{"a", "b"}, Tokens: -5, Shadow: true},
		}},
		&admission.LeaseShare{
			Pool: "mail", Tenant: "acme", Category: "otp", Tokens: 5, Node: admission.Node{ID: "n", Owned: 1, Total: 2}, Nonce: 1<<63 + 2,
		},
		&admission.Renew{Tokens: []admission.Token{token, token}, TTL: time.Minute},
		&admission.Release{
			Token: token, Outcome: admission.OutcomeThrottled, ActualCost: admission.Absent, RetryAfter: time.Second,
			Bucket: "b", Miss: true,
		},
		&admission.Schedule{Pool: "mail", Entries: []admission.EntrySpec{
			{
				Tenant: "acme", Key: "k", Category: "otp", Route: "r", Group: "g", DueAt: -5, DueIn: time.Hour,
				Relative: true, MaxAttempts: 3, Every: time.Minute, Cadence: "c",
			},
		}},
		admission.Unschedule{Pool: "mail", Tenant: "acme", Key: "k"},
		&admission.Redrive{Pool: "mail", Filter: filter, Limit: 3, PerSecond: 4, From: admission.DeadCursor{After: 1, Until: 2, Due: 3}},
		&admission.PurgeDead{Pool: "mail", Filter: filter, Limit: 3, From: admission.DeadCursor{After: 1, Until: 2, Due: 3}},
	}
}

// fullPolicy has every field set.
func fullPolicy() admission.Policy {
	five := int64(5)
	tenant := admission.TenantPolicy{
		ID: "acme", Weight: 4, PreferredActive: &five, MaxActive: 9, Lane: "high",
		LaneMaxActive: map[string]int64{"high": 3},
		Buckets:       map[string]admission.BucketOverride{"b": {Capacity: 1, Refill: 2, Period: 3, Blocked: true}},
	}
	return admission.Policy{Pools: []admission.PoolPolicy{{
		Name: "mail", MaxActive: 4, PermitTTL: time.Second, MaxPause: time.Hour,
		Buckets: []admission.BucketPolicy{{
			Name: "b", Scope: admission.ScopeTenant, Capacity: 10, Refill: 5, Period: time.Second,
			PerPermit: true, Blocked: true, OneShot: true,
			Share: admission.TokenShare{Max: 4, TTL: 3, IdleReturn: 2, OnLoss: admission.OnLossSafe, Safe: 1},
		}},
		Lanes: []admission.LanePolicy{{
			Name: "high", LeaveSlots: 2, LeaveTokens: map[string]int64{"b": 1}, TenantCycleLimit: 3,
			Yield: &admission.YieldPolicy{Above: admission.Absent, Resume: 1, AboveAge: 2, ResumeAge: 3},
			Batch: admission.BatchPolicy{Size: 2, Only: true, Linger: 3},
		}},
		LockMaxActive: 2, DoneRetention: time.Hour, DeadRetention: 2 * time.Hour, Shadow: true, RefuseUnknown: true,
		Categories: map[string]string{"otp": "high"},
		Defaults:   tenant,
		Overrides:  []admission.TenantPolicy{tenant},
		Retry:      admission.RetryPolicy{MaxAttempts: 3, Base: 1, Max: 2},
		Cadences:   []admission.CadencePolicy{{Name: "c", Base: 1, Factor: 2, Max: 3}},
		Envoy: []admission.EnvoyRule{{
			Name: "e", Match: map[string]string{"k": "*"}, Tenant: "{k}", Category: "otp", Buckets: []string{"b"},
			Unlimited: true, Shadow: true,
		}},
		Limits: admission.LimitsPolicy{
			Entries: 1, EntriesPerTenant: 2, Tenants: 3, RequestIDs: 4, EndedPermits: 5, Waiting: 6, WaitingPerTenant: 7,
			DedupeKeys: 8, NewTenantsPerSecond: 9, TenantRows: 10, PausedGroups: 11, Shares: 12,
		},
	}}}
}

// checkFilled fails for a field of v, at any depth, that is zero: a test with it
// would not see it lost.
func checkFilled(t *testing.T, v reflect.Value, path string) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		checkFilled(t, v.Elem(), path)
		return
	case reflect.Struct:
		for i := range v.NumField() {
			checkFilled(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			checkFilled(t, v.Index(i), path)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			checkFilled(t, v.MapIndex(key), path)
		}
	}
	if v.IsZero() {
		t.Errorf("%s is zero, so its way through storage is not tested", path)
	}
}

func encode(t testing.TB, s stamp, ops ...admission.Op) []byte {
	t.Helper()
	var encoded [][]byte
	size := 0
	for _, op := range ops {
		b, err := appendOp(nil, op)
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, b)
		size += len(b)
	}
	b, err := encodeCommand(s, encoded, size)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestCommandsSurviveTheLog(t *testing.T) {
	ops := everyOp()
	stamped := stamp{proposal: 1<<63 + 1, t: 5, w: -6, check: check{7, 1 << 63}}
	b := encode(t, stamped, ops...)
	e, got, err := decodeCommand(8, b)
	if err != nil {
		t.Fatal(err)
	}
	want := admission.Entry{Index: 8, T: 5, W: -6, Ops: ops}
	if !reflect.DeepEqual(e, want) || got != stamped {
		t.Errorf("got %+v, %+v\nwant %+v, %+v", got, e, stamped, want)
	}
}

func TestEveryFieldOfEveryOpIsInTheTest(t *testing.T) {
	for _, op := range everyOp() {
		checkFilled(t, reflect.ValueOf(op), fmt.Sprintf("%T", op))
	}
}

func TestDamagedCommandsAreRefused(t *testing.T) {
	good := encode(t, stamp{proposal: 1, t: 2, w: 3}, everyOp()...)
	for i := range good {
		for _, bit := range []byte{1, 0x80} {
			bad := bytes.Clone(good)
			bad[i] ^= bit
			if _, _, err := decodeCommand(1, bad); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d flipped: %v", i, err)
			}
		}
		if _, _, err := decodeCommand(1, good[:i]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
}

func TestCommandsOfNewerVersionsAreRefused(t *testing.T) {
	// An unknown field of each kind, number 100.
	unknown := []byte{0xa2, 0x06, 0x01, 'x'}
	inEnvelope := func(version byte, payload []byte) []byte {
		b := append(make([]byte, envelopeSize), payload...)
		sealEnvelope(b)
		if version != commandVersion {
			b[2] = version
			sum := envelopeSum(b)
			b[4], b[5], b[6], b[7] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		return b
	}
	acquire := &storagev1.Acquire{Pool: "mail"}
	acquire.ProtoReflect().SetUnknown(unknown)
	marshal := func(m proto.Message) []byte {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	strange := &storagev1.Op{}
	strange.ProtoReflect().SetUnknown(unknown)
	for name, b := range map[string][]byte{
		"version":            inEnvelope(commandVersion+1, nil),
		"field of a command": inEnvelope(commandVersion, unknown),
		"operation":          inEnvelope(commandVersion, marshal(&storagev1.Command{Ops: []*storagev1.Op{strange}})),
		"field of an operation": inEnvelope(commandVersion, marshal(&storagev1.Command{
			Ops: []*storagev1.Op{{Kind: &storagev1.Op_Acquire{Acquire: acquire}}},
		})),
	} {
		if _, _, err := decodeCommand(1, b); !errors.Is(err, ErrUnknownFormat) {
			t.Errorf("unknown %s: %v", name, err)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	f.Add(encode(f, stamp{proposal: 1, t: 2, w: 3}, everyOp()...)[envelopeSize:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		b := append(make([]byte, envelopeSize), payload...)
		sealEnvelope(b)
		e, stamped, err := decodeCommand(1, b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnknownFormat) {
				t.Fatalf("neither corrupt nor unknown: %v", err)
			}
			return
		}
		again, stamped2, err := decodeCommand(1, encode(t, stamped, e.Ops...))
		if err != nil || stamped2 != stamped || !reflect.DeepEqual(again, e) {
			t.Fatalf("%+v became %+v, %v", e, again, err)
		}
	})
}
