package raftstore

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/admitd/admit/admission"
)

// ReadLog calls each with the commands of the log in dir from an index on, in
// order, and the term of the leader that wrote each. The node must not be running.
// What was compacted is not there any more; the last entries may be some that were
// never committed.
func ReadLog(dir string, from uint64, each func(term uint64, e admission.Entry) error) (err error) {
	if _, err := readIdentity(dir); err != nil {
		return err // before anything is made there
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	path := filepath.Join(dir, walDir)
	if err := checkWAL(path); err != nil {
		return err
	}
	log, err := openWAL(path, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	first, err := log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	for i := max(first, from, 1); i <= last; i++ {
		if err := readCommand(log, i, each); err != nil {
			return err
		}
	}
	return nil
}

func readCommand(log raft.LogStore, index uint64, each func(term uint64, e admission.Entry) error) error {
	var l raft.Log
	if err := log.GetLog(index, &l); err != nil {
		return fmt.Errorf("read log entry %d: %w", index, err)
	}
	if l.Type != raft.LogCommand {
		return nil
	}
	e, _, err := decodeCommand(l.Index, l.Data)
	if err != nil {
		return fmt.Errorf("read log entry %d: %w", index, err)
	}
	return each(l.Term, e)
}
