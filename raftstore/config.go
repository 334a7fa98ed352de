package raftstore

import (
	"cmp"
	"time"
)

// Config says where a store keeps its data and how it behaves. A zero field
// has the default that its comment gives.
type Config struct {
	// Dir is the data directory, made if need be. Required. One process at a
	// time may use it.
	Dir string
	// WriteLimit is the longest that a write of the log may take before the
	// store ends with an error. Default three election timeouts, in which others
	// have taken over long since; 10 s where the node is alone, as it then only has
	// to tell a dead disk from a slow one.
	WriteLimit time.Duration
	// SnapshotEntries and SnapshotBytes are how much log there may be since the
	// last snapshot before the next is taken, whichever comes first. Defaults
	// 16384 and 64 MiB.
	SnapshotEntries uint64
	SnapshotBytes   int64
	// ParkedPolls is how many NextDue calls may wait for work at once. Default
	// 10,000.
	ParkedPolls int
	// Cluster makes the node a member of a cluster. Without it the node is alone
	// and talks to nobody.
	Cluster *Cluster
}

func (c Config) withDefaults() Config {
	if c.Cluster != nil {
		cluster := *c.Cluster
		cluster.ElectionTimeout = cmp.Or(cluster.ElectionTimeout, time.Second)
		c.Cluster = &cluster
		c.WriteLimit = cmp.Or(c.WriteLimit, 3*cluster.ElectionTimeout)
	}
	c.WriteLimit = cmp.Or(c.WriteLimit, 10*time.Second)
	if c.SnapshotEntries == 0 {
		c.SnapshotEntries = 16384
	}
	if c.SnapshotBytes == 0 {
		c.SnapshotBytes = 64 << 20
	}
	if c.ParkedPolls == 0 {
		c.ParkedPolls = 10_000
	}
	return c
}

// electionTimeout is how long there may be no leader before one is elected.
func (c Config) electionTimeout() time.Duration {
	if c.Cluster == nil {
		return loneElectionTimeout
	}
	return c.Cluster.ElectionTimeout
}

func (c Config) peerAddr() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Cluster.Advertise
}

func (c Config) grpcAddr() string {
	if c.Cluster == nil {
		return ""
	}
	return c.Cluster.GRPCAddr
}

const (
	// loneElectionTimeout is how long a lone voter waits before it elects itself.
	// There is nobody whose heartbeat could be late.
	loneElectionTimeout = 50 * time.Millisecond
	// transportTimeouts are the election timeouts that a request between members may
	// take: more than a write may, as the answer comes after it.
	transportTimeouts = 5
	// commitTimeout is how often idle followers learn how far entries are committed.
	commitTimeout = 20 * time.Millisecond
	// trailingLogs is the least that compaction leaves in the log; see
	// failStop.DeleteRange for what it leaves beyond. It leaves more in a cluster, so
	// that a member that was away for a while needs no snapshot.
	trailingLogs       = 1024
	memberTrailingLogs = 20_000
	// keptSnapshots are how many snapshots are kept, the newest ones.
	keptSnapshots = 2
	// logCacheEntries bounds the newest entries kept in memory. An entry has up
	// to maxEntryBytes, so they take 32 MiB at most.
	logCacheEntries = 128

	// maxInFlight is how many entries may be proposed and not yet applied: one
	// that the disk writes, and one that fills meanwhile.
	maxInFlight = 2
	// maxEntryRows and maxEntryBytes bound an entry. A single operation that is
	// larger still gets an entry of its own.
	maxEntryRows  = 2048
	maxEntryBytes = 256 << 10
	// tickInterval is the least time between two ticks.
	tickInterval = 5 * time.Millisecond
	// answerTime is left of a caller's deadline when a poll stops waiting.
	answerTime = 200 * time.Millisecond
)
