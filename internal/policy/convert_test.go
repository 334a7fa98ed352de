package policy_test

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// fill sets every field of m, down to the leaves, to a value that is not zero.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			v := leaf(m.Mutable(f).Map().NewValue, f.MapValue())
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("k").MapKey(), v)
		case f.IsList():
			m.Mutable(f).List().Append(leaf(m.Mutable(f).List().NewElement, f))
		default:
			m.Set(f, leaf(func() protoreflect.Value { return m.NewField(f) }, f))
		}
	}
}

func leaf(newValue func() protoreflect.Value, f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.MessageKind:
		v := newValue()
		fill(v.Message())
		return v
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(2)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("s")
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	}
	return protoreflect.ValueOfInt64(7)
}

// singles calls f with the message at each of the policy's fields, everything
// else absent, so that no field can hide behind another.
func singles(m protoreflect.Message, root proto.Message, f func(name string, root proto.Message)) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		switch {
		case fd.IsMap() || fd.Message() == nil || fd.Message().FullName() == "google.protobuf.Duration":
			only := m.New()
			fill(only)
			m.Set(fd, only.Get(fd))
			f(string(fd.FullName()), root)
		case fd.IsList():
			l := m.Mutable(fd).List()
			l.Append(l.NewElement())
			singles(l.Get(0).Message(), root, f)
		default:
			singles(m.Mutable(fd).Message(), root, f)
		}
		m.Clear(fd)
	}
}

func TestEveryFieldSurvivesTheRoundTrip(t *testing.T) {
	full := &admitv1.Policy{}
	fill(full.ProtoReflect())
	core, violations := policy.FromProto(full)
	if len(violations) != 0 {
		t.Fatalf("violations: %v", violations)
	}
	if got := policy.ToProto(core); !proto.Equal(got, full) {
		t.Errorf("full policy:\n got %v\nwant %v", got, full)
	}
	n := 0
	root := &admitv1.Policy{}
	singles(root.ProtoReflect(), root, func(name string, p proto.Message) {
		n++
		core, _ := policy.FromProto(p.(*admitv1.Policy))
		if got := policy.ToProto(core); !proto.Equal(got, p) {
			t.Errorf("only %s:\n got %v\nwant %v", name, got, p)
		}
	})
	if n < 30 {
		t.Errorf("walked %d fields, expected all of the policy's", n)
	}
}

func TestAPresentZeroIsNotAbsent(t *testing.T) {
	zero := &admitv1.Pool{
		Name:      "p",
		MaxActive: proto.Int64(0),
		PermitTtl: durationpb.New(0),
		Buckets:   []*admitv1.Bucket{{Name: "b", Scope: admitv1.Bucket_POOL, Capacity: proto.Int64(0), Refill: proto.Int64(0), Period: durationpb.New(0)}},
		Lanes:     []*admitv1.Lane{{Name: "l", TenantCycleLimit: proto.Int64(0)}},
		Tenants: &admitv1.Tenants{Defaults: &admitv1.Tenant{
			Weight: proto.Int64(0), PreferredActive: proto.Int64(0), MaxActive: proto.Int64(0),
		}},
		Retry:  &admitv1.Retry{MaxAttempts: proto.Int32(0)},
		Limits: &admitv1.Limits{Entries: proto.Int64(0)},
	}
	core, violations := policy.FromProto(&admitv1.Policy{Pools: []*admitv1.Pool{zero}})
	if len(violations) != 0 {
		t.Fatalf("violations: %v", violations)
	}
	p := core.Pools[0]
	got := map[string]int64{
		"max_active": p.MaxActive, "permit_ttl": int64(p.PermitTTL), "capacity": p.Buckets[0].Capacity,
		"refill": p.Buckets[0].Refill, "period": int64(p.Buckets[0].Period), "cycle": p.Lanes[0].TenantCycleLimit,
		"weight": p.Defaults.Weight, "tenant max_active": p.Defaults.MaxActive,
		"max_attempts": int64(p.Retry.MaxAttempts), "entries": p.Limits.Entries,
	}
	for name, v := range got {
		if v >= 0 {
			t.Errorf("%s: a present 0 became %d, which the core can't tell from absent", name, v)
		}
	}
	if p.Defaults.PreferredActive == nil || *p.Defaults.PreferredActive != 0 {
		t.Errorf("preferred_active: got %v, want a present 0", p.Defaults.PreferredActive)
	}
}

func TestDurationsThatDoNotFit(t *testing.T) {
	tests := map[string]struct {
		in   *durationpb.Duration
		want time.Duration
	}{
		"absent":          {nil, 0},
		"negative":        {durationpb.New(-time.Second), -1},
		"signs differ":    {&durationpb.Duration{Seconds: 1, Nanos: -1}, -1},
		"nanos too big":   {&durationpb.Duration{Nanos: 2e9}, -1},
		"ten thousand y":  {&durationpb.Duration{Seconds: 315_576_000_000}, math.MaxInt64},
		"what fits stays": {durationpb.New(90 * time.Minute), 90 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			core, _ := policy.FromProto(&admitv1.Policy{Pools: []*admitv1.Pool{{Name: "p", MaxPause: tt.in}}})
			if got := core.Pools[0].MaxPause; got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestEnumNumbersThatNobodyKnows(t *testing.T) {
	core, violations := policy.FromProto(&admitv1.Policy{Pools: []*admitv1.Pool{{
		Buckets: []*admitv1.Bucket{{Scope: 9}, {Charge: 9}},
	}}})
	if s := core.Pools[0].Buckets[0].Scope; s != 0 {
		t.Errorf("scope 9 became %d, want none", s)
	}
	want := admission.Violation{Field: "pools[0].buckets[1].charge", Message: "expected COST or PERMIT, got 9"}
	if len(violations) != 1 || violations[0] != want {
		t.Errorf("got %v, want %v", violations, want)
	}
}
