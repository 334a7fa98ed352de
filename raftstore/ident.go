package raftstore

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// ident is who a node is, in memory and in its data directory. Its methods may be
// called by several goroutines at once.
type ident struct {
	dir string

	mu sync.Mutex
	id identity
}

// readIdent returns whom dir belongs to; known is false if to nobody yet.
func readIdent(dir string) (i *ident, known bool, err error) {
	i = &ident{dir: dir}
	i.id, err = readIdentity(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return i, false, nil
	}
	return i, true, err
}

func (i *ident) get() identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.id
}

// change writes a changed identity; if that fails nothing is changed.
func (i *ident) change(by func(*identity)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changeLocked(by)
}

func (i *ident) changeLocked(by func(*identity)) error {
	id := i.id
	by(&id)
	id.Version = dataVersion
	if id == i.id {
		return nil
	}
	if err := writeIdentity(i.dir, id); err != nil {
		return err
	}
	i.id = id
	return nil
}

// enter makes a node that seeks a cluster one of a certain one. Entering that same
// one again changes nothing.
func (i *ident) enter(clusterID string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.id.ClusterID == clusterID {
		return nil
	}
	if i.id.Standing != seeking {
		return fmt.Errorf("this node is of cluster %s", i.id.ClusterID)
	}
	return i.changeLocked(func(id *identity) { id.ClusterID, id.Standing = clusterID, joining })
}

// found makes up a cluster for a node that is about to found one, and has not
// begun to yet. It fails if the node is of another by now.
func (i *ident) found() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.id.Standing {
	case founding:
		return nil
	case seeking:
		return i.changeLocked(func(id *identity) { id.ClusterID, id.Standing = randomHex(8), founding })
	}
	return fmt.Errorf("this node is of cluster %s", i.id.ClusterID)
}

// settle notes that a node has a log, once it has one.
func (i *ident) settle() error {
	return i.change(func(id *identity) { id.Standing = member })
}
