package raftstore

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// fsm feeds the log to the core. All methods of raft.BatchingFSM run on one
// goroutine of raft's, the only one that changes the state.
//
// It is a BatchingFSM less for the batches than because raft tells only such
// ones of configuration entries. Another one's idea of the last index stays
// behind after such an entry, and snapshots fail until the next command.
type fsm struct {
	clk     clock.Clock
	metrics *metrics
	// fatal is told why the node can't go on.
	fatal func(error)
	// applied is called after each entry, before the next one is.
	applied func(e admission.Entry, proposal uint64, results []admission.Result)
	// checked is told of each digest of the leader's, and this node's own.
	checked func(theirs check, own uint64)
	// grown is called when the log holds so much that no snapshot does.
	grown func(entries uint64, bytes int64)

	mu sync.RWMutex // guards what follows; st.Snapshot needs the write lock too
	st *admission.State
	// digests are of the results of all entries; a node that is alone has nobody to
	// compare them with, and keeps none.
	digests digests
	alone   bool

	// live is set once the store has started: snapshots that are restored later come
	// from a leader.
	live atomic.Bool
	// restored is called when they are.
	restored func()
	// opened returns the index of the snapshot that was opened last.
	opened func() uint64
	// installs are the snapshots that a leader installed since the log last grew.
	installs atomic.Int32

	// seen is the index of the last entry that raft showed, one of raft's own or not.
	seen  atomic.Uint64
	steps steps

	// broken is why no entry may be applied any more; refused are the snapshots
	// that could not be restored, and why.
	broken, refused error
	// entries and bytes are those since the last snapshot.
	entries uint64
	bytes   int64
}

// ApplyBatch applies committed entries. A response is nil or an error.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	responses := make([]any, len(logs))
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		if err := f.apply(l); err != nil {
			responses[i] = err
		}
	}
	f.seen.Store(logs[len(logs)-1].Index)
	f.steps.done()
	f.grown(f.entries, f.bytes)
	return responses
}

// Apply is never called by raft, which prefers ApplyBatch.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// apply always decodes, on the leader that encoded the very same entry too, so
// that no node can decide on anything but what the log says.
func (f *fsm) apply(l *raft.Log) error {
	if f.broken != nil {
		return f.broken
	}
	began := f.clk.Now()
	entry, stamp, err := decodeCommand(l.Index, l.Data)
	if err != nil {
		f.broken = fmt.Errorf("apply log entry %d: %w", l.Index, err)
		f.fatal(f.broken)
		return f.broken
	}
	f.mu.Lock()
	results := f.st.Apply(entry)
	f.mu.Unlock()
	f.digest(l.Index, stamp.check, results)
	f.entries++
	f.bytes += int64(len(l.Data))
	f.metrics.entries.Inc()
	f.metrics.appliedIndex.Set(float64(l.Index))
	if f.live.Load() {
		f.metrics.clockOffset.Set(f.clk.Now().Wall.Sub(time.Unix(0, int64(entry.W))).Seconds())
	}
	f.applied(entry, stamp.proposal, results)
	f.metrics.applySeconds.Observe(f.clk.Now().Since(began).Seconds())
	return nil
}

// digest notes what an entry came to, and has the leader's digest compared if the entry
// told one. Others read meanwhile: only this goroutine changes the state, the results
// and the digests.
func (f *fsm) digest(index uint64, told check, results []admission.Result) {
	if f.alone {
		return
	}
	own, known := f.digests.at(told.index)
	after := f.digests.after(index, results, f.st.Ended())
	f.mu.Lock()
	f.digests.reset(after)
	f.mu.Unlock()
	if known {
		f.checked(told, own)
	}
}

// Snapshot takes a picture of the state in no time; Persist does the work.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.entries, f.bytes = 0, 0
	return &imageSnapshot{
		image: f.st.Snapshot(), results: f.digests.last.digest, clk: f.clk, took: f.metrics.snapshotSeconds.Observe,
	}, nil
}

// Restore replaces the state by a snapshot's, or changes nothing.
func (f *fsm) Restore(r io.ReadCloser) error {
	st, results, err := readSnapshot(r)
	if err != nil {
		f.refused = errors.Join(f.refused, err)
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.st = st
	f.digests.reset(check{st.Index(), results})
	f.entries, f.bytes = 0, 0
	f.metrics.appliedIndex.Set(float64(st.Index()))
	f.seen.Store(f.opened())
	f.steps.done()
	if !f.live.Load() {
		return nil
	}
	f.restored()
	if f.installs.Add(1) >= maxInstalls {
		f.fatal(errInstalls)
	}
	return nil
}

// maxInstalls are the snapshots that a leader may install while the log doesn't
// grow. Where it can't, raft goes on installing for ever (hashicorp/raft#697).
const maxInstalls = 3

var errInstalls = errors.New("the leader's snapshots do not help: this node must be removed from the cluster " +
	"and join it anew, with an empty data directory")

// read runs fn on the state, which meanwhile stays as it is.
func (f *fsm) read(fn func(*admission.State)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	fn(f.st)
}

// index returns the index of the last entry applied.
func (f *fsm) index() (index uint64) {
	f.read(func(st *admission.State) { index = st.Index() })
	return index
}

// decided returns the index of the last entry applied, and what the results of all up
// to it come to: nil where that is not known, as on a node that is alone.
func (f *fsm) decided() (index uint64, digest *uint64) {
	f.read(func(st *admission.State) {
		index = st.Index()
		if d, known := f.digests.at(index); known && !f.alone {
			digest = &d
		}
	})
	return index, digest
}

// image returns a picture of the state.
func (f *fsm) image() *admission.Image {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.st.Snapshot()
}

type imageSnapshot struct {
	image   *admission.Image
	results uint64
	clk     clock.Clock
	took    func(seconds float64)
}

// Persist writes the picture; raft cancels the sink if it fails.
func (s *imageSnapshot) Persist(sink raft.SnapshotSink) error {
	start := s.clk.Now()
	if err := writeSnapshot(sink, s.image, s.results); err != nil {
		return err
	}
	s.took(s.clk.Now().Since(start).Seconds())
	return nil
}

// Release lets the picture go.
func (s *imageSnapshot) Release() { s.image = nil }
