package raftstore

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A data directory holds
//
//	lock        locked by the process that uses it
//	node.json   the node's identity, and how it stands to its cluster
//	log-end     how far the log reaches at least
//	wal/        the log
//	snapshots/  the snapshots
const (
	lockFile     = "lock"
	identityFile = "node.json"
	logEndFile   = "log-end"
	walDir       = "wal"
	snapshotsDir = "snapshots"
	tmpSuffix    = ".tmp"

	// dataVersion is the version of this layout.
	dataVersion = 1
)

// ErrInUse says that another process uses the data directory.
var ErrInUse = errors.New("the data directory is in use by another process")

// lockDir makes dir if need be and keeps other processes out of it until the
// file is closed.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the data directory: %w", err)
	}
	if err := syncDir(filepath.Dir(filepath.Clean(dir))); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the data directory's lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: %s", ErrInUse, dir)
	}
	return nil, fmt.Errorf("lock the data directory %s: %w", dir, err)
}

// identity is the content of identityFile.
type identity struct {
	Version int    `json:"version"`
	NodeID  string `json:"node_id"`
	// ClusterID is "" while the node is of no cluster.
	ClusterID string `json:"cluster_id"`
	Standing  string `json:"standing"`
}

// How a node stands to its cluster.
const (
	// seeking has none.
	seeking = "seeking"
	// founding is about to found one; it may have asked others to be of it.
	founding = "founding"
	// joining is of one, but nothing in its log yet.
	joining = "joining"
	// member has a log, without which it is nobody.
	member = "member"
)

// newNodeID makes up a node. An id is never used for two sets of data: a node
// that came back with its old id and an empty log could vote away what it once
// confirmed. In a cluster it begins with the name in the node's certificate.
func newNodeID(name string) string {
	if name == "" {
		return randomHex(8)
	}
	return name + "-" + randomHex(6)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// readIdentity returns fs.ErrNotExist where the directory has none.
func readIdentity(dir string) (identity, error) {
	path := filepath.Join(dir, identityFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return identity{}, fmt.Errorf("read the node's identity: %w", err)
	}
	var id identity
	if err := json.Unmarshal(b, &id); err != nil || id.NodeID == "" {
		return identity{}, fmt.Errorf("%w: %s names no node", ErrCorrupt, path)
	}
	if id.Version != dataVersion {
		return identity{}, fmt.Errorf("%w: %s has version %d", ErrUnknownFormat, path, id.Version)
	}
	switch id.Standing {
	case seeking, founding, joining, member:
		return id, nil
	}
	return identity{}, fmt.Errorf("%w: in %s the node is %q", ErrUnknownFormat, path, id.Standing)
}

func writeIdentity(dir string, id identity) error {
	b, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode the node's identity: %w", err)
	}
	if err := replaceFile(dir, identityFile, append(b, '\n')); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	return nil
}

// replaceFile writes the whole file or none of it.
func replaceFile(dir, name string, b []byte) error {
	path := filepath.Join(dir, name)
	if err := writeSynced(path+tmpSuffix, b); err != nil {
		return err
	}
	if err := os.Rename(path+tmpSuffix, path); err != nil {
		return err
	}
	return syncDir(dir)
}

func writeSynced(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// sweepSnapshots removes what snapshots left behind that were not finished. The
// library keeps them for good, and a full disk would never empty.
func sweepSnapshots(dir string) error {
	list, err := os.ReadDir(filepath.Join(dir, snapshotsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for unfinished snapshots: %w", err)
	}
	for _, entry := range list {
		if !strings.HasSuffix(entry.Name(), tmpSuffix) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, snapshotsDir, entry.Name())); err != nil {
			return fmt.Errorf("remove an unfinished snapshot: %w", err)
		}
	}
	return nil
}

// sweepUnfounded removes what is left of a founding that did not come to its
// end, which raft can neither use nor repeat. More than that is somebody's data.
func sweepUnfounded(dir string, end *logEnd) error {
	snaps, err := filepath.Glob(filepath.Join(dir, snapshotsDir, "*", "*"))
	if err != nil {
		return fmt.Errorf("look for snapshots: %w", err)
	}
	last := end.index
	path := filepath.Join(dir, walDir)
	if _, err := os.Stat(path); err == nil && last <= 1 {
		if last, err = lastIndex(path); err != nil {
			return err
		}
	}
	if last > 1 || len(snaps) > 0 {
		return fmt.Errorf("%w: %s has data, and no %s that says whose", ErrCorrupt, dir, identityFile)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove an unfinished log: %w", err)
	}
	return end.set(0)
}
