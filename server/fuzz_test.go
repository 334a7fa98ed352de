package server

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
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
	kindReportDemand
	kindRedrive
	kindPurgeDead
	kindPutTenants
	kindExplain
	kindLeaseShare
	kinds

	made = 1 << 7
)

// FuzzHistory holds that whatever validation lets through applies without a
// panic, as do the reads that go with each answer, and restores to the same.
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
		h.restore(t)
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
	ops := h.readOps(kind, data)
	for _, op := range ops {
		switch o := op.(type) {
		case *admission.Acquire:
			h.state.Decide(h.entry.T, o)
		case *admission.NextDue:
			h.state.PollDelay(h.entry.T, h.entry.W, o)
		}
	}
	results := h.apply(ops...)
	if len(results) != len(ops) {
		t.Fatalf("%d operations have %d results", len(ops), len(results))
	}
	for i, op := range ops {
		if results[i] == nil {
			t.Fatalf("%T has no result", op)
		}
		h.keepToken(results[i])
		h.look(op, results[i])
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
	h.lookAround(q.Pool)
	h.state.NextDueIn(q.Pool, h.entry.W)
	h.state.Deadline()
	writeQueueHealth(picture{pools: h.state.Health(h.entry.T, h.entry.W, "")})
	if now, failed := h.state.RevisionOf(0); failed == nil {
		writePolicy(now)
	}
	writeRevisions(h.state.Revisions())
	image := h.state.Snapshot()
	if rows, failed := image.ListEntries(admission.ListFilter{Pool: q.Pool}, 0, 0, 3); failed == nil {
		writeEntries(h.entry.Index, listing{size: 2}, rows)
	}
	if rows, failed := image.ListDead(q.Pool, admission.DeadFilter{}, admission.DeadPlace{}, 3); failed == nil {
		writeDead(h.entry.Index, deadListing{size: 2}, rows)
	}
}

// lookAround reads what operators read of a pool.
func (h *history) lookAround(pool string) {
	h.state.Limits(h.entry.T, pool)
	if list, failed := h.state.ListTenants(h.entry.T, pool, "", 3); failed == nil {
		writeTenants(h.entry.Index, tenantListing{pool: pool, size: 2}, list)
	}
	shot, failed := h.state.Picture(h.entry.T, h.entry.W, pool)
	if failed != nil {
		return
	}
	for row := range shot.All(admission.HeldFilter{}) {
		writeHeld(row)
	}
	shot.Top(3, admission.HeldFilter{})
}

func (h *history) explain(q *admission.ExplainQuery) {
	if e, failed := h.state.Explain(h.entry.T, h.entry.W, q); failed == nil {
		writeExplanation(e)
	}
}

// restore holds that what was let in can be written down and read back.
func (h *history) restore(t *testing.T) {
	image := h.state.Snapshot()
	restored, err := admission.Restore(image.Header(), func(yield func(admission.Row, error) bool) {
		for r := range image.Rows() {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := restored.Snapshot().Digest(), image.Digest(); got != want {
		t.Fatalf("restored to digest %x, want %x", got, want)
	}
}

// logged yields the request's operation, if it is one for the log.
func logged(r raftstore.Request, err error) []admission.Op {
	if r.DryRun {
		return nil
	}
	return one(r.Op, err)
}

// readOps makes a message, validates and converts it. It yields nothing where
// it is refused.
func (h *history) readOps(kind byte, data []byte) []admission.Op {
	in := source{choices: kind&made != 0, data: data, token: h.token}
	switch (kind &^ made) % kinds {
	case kindAcquire:
		return logged(readAcquire(from(in, &admitv1.AcquireRequest{})))
	case kindBatchAcquire:
		var ops []admission.Op
		reqs, err := readBatchAcquire(from(in, &admitv1.BatchAcquireRequest{}))
		for _, r := range reqs {
			ops = append(ops, logged(r, err)...)
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
	case kindRedrive:
		return one(readRedrive(from(in, &admitv1.RedriveRequest{})))
	case kindPurgeDead:
		return one(readPurgeDead(from(in, &admitv1.PurgeDeadRequest{})))
	case kindPutTenants:
		return one(readPutTenants(from(in, &admitv1.PutTenantsRequest{})))
	case kindExplain:
		if q, err := readExplain(from(in, &admitv1.ExplainRequest{})); err == nil {
			h.explain(q)
		}
		return nil
	case kindApplyPolicy:
		return one(readApplyPolicy(from(in, &admitv1.ApplyPolicyRequest{})))
	case kindPause:
		return one(readPause(from(in, &admitv1.PauseRequest{})))
	case kindLeaseShare:
		return one(readLeaseShare(from(in, &admitv1alpha1.LeaseShareRequest{})))
	case kindReportDemand:
		return one(readReportDemand(from(in, &admitv1.ReportDemandRequest{})))
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
		return m
	}
	data := s.data
	if s.token != "" { // goodToken stands for the last permit's
		data = bytes.ReplaceAll(data, []byte(goodToken), []byte(s.token))
	}
	if proto.Unmarshal(data, m) != nil {
		proto.Reset(m)
	}
	return m
}
