package raftstore

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

// The keys under which raft keeps its vote, and ours for both as one.
const (
	lastVoteTerm = "LastVoteTerm"
	lastVoteCand = "LastVoteCand"
	voteKey      = "Vote"
)

// oneVote is a stable store that keeps the term and the candidate of a vote in
// one record. Raft writes first the one and then the other; a crash between the
// two would leave the new term beside the old candidate, who could then be
// granted a vote that nobody cast.
type oneVote struct {
	raft.StableStore

	mu sync.Mutex
	// term waits for its candidate.
	term uint64
}

func (s *oneVote) SetUint64(key []byte, value uint64) error {
	if string(key) != lastVoteTerm {
		return s.StableStore.SetUint64(key, value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = value
	return nil
}

func (s *oneVote) Set(key, value []byte) error {
	if string(key) != lastVoteCand {
		return s.StableStore.Set(key, value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.StableStore.Set([]byte(voteKey), append(binary.LittleEndian.AppendUint64(nil, s.term), value...))
}

func (s *oneVote) GetUint64(key []byte) (uint64, error) {
	if string(key) != lastVoteTerm {
		return s.StableStore.GetUint64(key)
	}
	term, _, err := s.vote()
	return term, err
}

func (s *oneVote) Get(key []byte) ([]byte, error) {
	if string(key) != lastVoteCand {
		return s.StableStore.Get(key)
	}
	_, candidate, err := s.vote()
	return candidate, err
}

// vote returns zeros where there is none, as raft-wal does.
func (s *oneVote) vote() (term uint64, candidate []byte, err error) {
	b, err := s.StableStore.Get([]byte(voteKey))
	if err != nil || len(b) == 0 {
		return 0, nil, err
	}
	if len(b) < 8 {
		return 0, nil, fmt.Errorf("%w: a vote of %d bytes", ErrCorrupt, len(b))
	}
	return binary.LittleEndian.Uint64(b), b[8:], nil
}
