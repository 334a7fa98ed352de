package server

import (
	"encoding/binary"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// A history is a sequence of steps: a kind, the length of what follows, and that:
// a message, or with the made bit the choices from which fill makes one.
const (
	kindAcquire = iota
	kindBatchAcquire
	kindNextDue
	kindRenew
	kindRelease
	kindSchedule
	kindUnschedule
	kindApplyPolicy
	kindPause
	kindResume
	kindSleep // 8 bytes are nanoseconds
	kinds

	made = 1 << 7
)

// FuzzHistory holds that whatever validation lets through applies without a
// panic, as do the reads that go with each answer.
func FuzzHistory(f *testing.F) {
	for _, seed := range seedHistories() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := newHistory()
		for steps := 0; len(data) >= 3 && steps < 64; steps++ {
			kind, n := data[0], int(binary.BigEndian.Uint16(data[1:]))
			data = data[3:]
			n = min(n, len(data))
			h.step(t, kind, data[:n])
			data = data[n:]
		}
	})
}

// history is a state with what has happened to it.
type history struct {
	state *admission.State
	entry admission.Entry
	// token is that of the last permit.
	token string
}

func newHistory() *history {
	h := &history{state: admission.New()}
	h.entry.W = admission.Wall(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	op, err := readApplyPolicy(&admitv1.ApplyPolicyRequest{Policy: testPolicy()})
	if err != nil {
		panic(err)
	}
	h.apply(op)
	return h
}

func (h *history) step(t *testing.T, kind byte, data []byte) {
	if (kind&^made)%kinds == kindSleep {
		if len(data) >= 8 {
			d := time.Duration(binary.BigEndian.Uint64(data) >> 8) // up to two years
			h.entry.T, h.entry.W = h.entry.T.Add(d), h.entry.W.Add(d)
		}
		h.apply()
		return
	}
	for _, op := range h.readOps(kind, data) {
		switch o := op.(type) {
		case *admission.Acquire:
			h.state.Decide(h.entry.T, o)
		case *admission.NextDue:
			h.state.PollDelay(h.entry.T, h.entry.W, o)
		}
		results := h.apply(op)
		if len(results) != 1 || results[0] == nil {
			t.Fatalf("%T has %d results", op, len(results))
		}
		h.keepToken(results[0])
		h.look(op, results[0])
	}
}

func (h *history) apply(ops ...admission.Op) []admission.Result {
	h.entry.Index++
	h.entry.Ops = ops
	return h.state.Apply(h.entry)
}

func (h *history) keepToken(r admission.Result) {
	switch r := r.(type) {
	case *admission.AcquireResult:
		if r.Err == nil && r.Decision.Shed == nil {
			h.token = r.Decision.Permit.Token.String()
		}
	case *admission.NextDueResult:
		for _, c := range r.Claims {
			h.token = c.Permit.Token.String()
		}
	}
}

// look reads the state in every way that an answer does.
func (h *history) look(op admission.Op, r admission.Result) {
	q := admission.SheddingQuery{HeldRows: defaultHeld}
	switch op := op.(type) {
	case *admission.Acquire:
		q.Pool, q.Tenant = op.Pool, op.Tenant
	case *admission.NextDue:
		q.Pool, q.Call = op.Pool, r.(*admission.NextDueResult)
	default:
		q.Pool = "email"
	}
	s := h.state.Shedding(h.entry.T, h.entry.W, q)
	writeShedding(&s)
	h.state.NextDueIn(q.Pool, h.entry.W)
	h.state.Deadline()
	writeQueueHealth(picture{pools: h.state.Health(h.entry.T, h.entry.W, "")})
	p, revision, applied := h.state.Policy()
	writePolicy(p, revision, applied)
}

// readOps makes a message, validates and converts it. It yields nothing where
// it is refused.
func (h *history) readOps(kind byte, data []byte) []admission.Op {
	in := source{choices: kind&made != 0, data: data, token: h.token}
	switch (kind &^ made) % kinds {
	case kindAcquire:
		return one(readAcquire(from(in, &admitv1.AcquireRequest{})))
	case kindBatchAcquire:
		var ops []admission.Op
		reqs, err := readBatchAcquire(from(in, &admitv1.BatchAcquireRequest{}))
		for _, r := range reqs {
			ops = append(ops, one(r.Op, err)...)
		}
		return ops
	case kindNextDue:
		req, _, err := readNextDue(from(in, &admitv1.NextDueRequest{}))
		return one(req.Op, err)
	case kindRenew:
		return one(readRenew(from(in, &admitv1.RenewRequest{})))
	case kindRelease:
		return one(readRelease(from(in, &admitv1.ReleaseRequest{})))
	case kindSchedule:
		return one(readSchedule(from(in, &admitv1.ScheduleRequest{})))
	case kindUnschedule:
		return one(readUnschedule(from(in, &admitv1.UnscheduleRequest{})))
	case kindApplyPolicy:
		return one(readApplyPolicy(from(in, &admitv1.ApplyPolicyRequest{})))
	case kindPause:
		return one(readPause(from(in, &admitv1.PauseRequest{})))
	default:
		return one(readResume(from(in, &admitv1.ResumeRequest{})))
	}
}

func one[O admission.Op](op O, err error) []admission.Op {
	if err != nil {
		return nil
	}
	return []admission.Op{op}
}

// source is where a message comes from: its encoding, or choices.
type source struct {
	choices bool
	data    []byte
	token   string
}

// from makes the message. One that can't be decoded stays empty, which
// validation refuses.
func from[M proto.Message](s source, m M) M {
	if s.choices {
		(&chance{s.data}).fill(m.ProtoReflect(), s.token, 5)
	} else if proto.Unmarshal(s.data, m) != nil {
		proto.Reset(m)
	}
	return m
}

// seedHistories run the main job, with the edges of what is allowed.
func seedHistories() [][]byte {
	var seed []byte
	add := func(kind byte, data []byte) {
		seed = binary.BigEndian.AppendUint16(append(seed, kind), uint16(len(data)))
		seed = append(seed, data...)
	}
	message := func(kind byte, m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		add(kind, data)
	}
	var seeds [][]byte
	end := func() { seeds, seed = append(seeds, seed), nil }

	message(kindAcquire, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp", RequestId: "r"})
	message(kindAcquire, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Cost: proto.Int64(1 << 53), Ttl: durationpb.New(maxTTL)})
	message(kindRelease, &admitv1.ReleaseRequest{
		Token: goodToken, Outcome: admitv1.Outcome_OUTCOME_THROTTLED, RetryAfter: durationpb.New(maxDelay), Bucket: "provider",
	})
	message(kindRelease, &admitv1.ReleaseRequest{Token: goodToken, ActualCost: proto.Int64(1 << 53)})
	end()

	entries := []*admitv1.EntrySpec{
		{Tenant: "acme", Key: "a", Category: "otp", Route: "r", Group: "g", MaxAttempts: 1},
		{Tenant: "trial", Key: "b", Due: &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(maxDelay)}},
		{Tenant: "trial", Key: "c", Category: "unmapped"},
	}
	message(kindSchedule, &admitv1.ScheduleRequest{Pool: "email", Entries: entries})
	message(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: 1000, Ttl: durationpb.New(minTTL), RequestId: "r"})
	add(kindSleep, binary.BigEndian.AppendUint64(nil, uint64(time.Minute)<<8))
	message(kindNextDue, &admitv1.NextDueRequest{Pool: "email", MaxItems: 10, Lanes: []string{"marketing"}})
	message(kindUnschedule, &admitv1.UnscheduleRequest{Pool: "email", Tenant: "trial", Key: "b"})
	end()

	message(kindPause, &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Bucket{Bucket: "provider"}})
	message(kindBatchAcquire, &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
		{Pool: "email", Tenant: "acme"}, {Pool: "email", Tenant: "trial", Category: "newsletter"}, {Pool: "none", Tenant: "t"},
	}})
	message(kindResume, &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Bucket{Bucket: "provider"}})
	lowered := testPolicy()
	lowered.Pools[0].MaxActive = proto.Int64(9)
	lowered.Pools[0].Buckets[0].Capacity = proto.Int64(3)
	message(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: lowered})
	message(kindRenew, &admitv1.RenewRequest{Tokens: []string{goodToken}, Ttl: durationpb.New(maxTTL)})
	message(kindApplyPolicy, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{}})
	end()

	// The same, made by choices: each step a run of them.
	for kind := range byte(kinds) {
		for _, run := range []string{"\x00\x01\x02", "\x00\x30\x00\x31\x00\x32\x00\x33\x00\x05\x00\x06\x00\x07\x01\x01\x01\x02\x01\x01"} {
			add(kindAcquire|made, []byte("\x00\x30\x00\x30\x00\x30\x00\x01\x03\x03"))
			add(kind|made, []byte(run))
		}
	}
	end()
	return seeds
}
