package peer

import (
	"errors"
	"fmt"
	"io"
)

// A dialer begins with the magic and a byte each for the protocol's version and
// for what it wants. They never change, whatever comes after them does.
var magic = [4]byte{'A', 'D', 'M', 'T'}

const (
	// version is that of all that follows the magic; nodes with one below
	// oldestVersion are refused.
	version       = 1
	oldestVersion = 1

	wantRaft = 1
	wantCall = 2
)

// Levels is a range of feature levels.
type Levels struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// FeatureLevel is the level of the core's behaviour that this version has. Members
// need a common one, and snapshots say theirs.
const FeatureLevel = 1

// ownLevels are those that this version can run at.
var ownLevels = Levels{Min: FeatureLevel, Max: FeatureLevel}

func (l Levels) overlap(m Levels) bool { return l.Min <= m.Max && m.Min <= l.Max }

// Hello is what a node says of itself to the one that it dials.
type Hello struct {
	// ClusterID is "" while it belongs to none.
	ClusterID string `json:"cluster_id"`
	NodeID    string `json:"node_id"`
	// PeerAddr and GRPCAddr are where it listens for members and callers.
	PeerAddr string `json:"peer_addr"`
	GRPCAddr string `json:"grpc_addr"`
	// To is the node meant, or "" for whoever is there.
	To     string `json:"to,omitempty"`
	Levels Levels `json:"levels"`
}

// Welcome is the answer to a Hello.
type Welcome struct {
	Hello
	// Refused says why the connection is not to be.
	Refused string `json:"refused,omitempty"`
}

// RefusedError is why a node would not talk.
type RefusedError struct{ Reason string }

// Error gives the reason.
func (e *RefusedError) Error() string { return "refused: " + e.Reason }

func writeHello(w io.Writer, want byte, h Hello) error {
	if _, err := w.Write([]byte{magic[0], magic[1], magic[2], magic[3], version, want}); err != nil {
		return err
	}
	return writeFrame(w, h)
}

func readHello(r io.Reader) (want byte, h Hello, err error) {
	var b [6]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, Hello{}, err
	}
	if [4]byte(b[:]) != magic {
		return 0, Hello{}, errors.New("it does not speak this protocol")
	}
	if b[4] < oldestVersion {
		return 0, Hello{}, fmt.Errorf("its version %d of the protocol is too old", b[4])
	}
	return b[5], h, readFrame(r, &h)
}

// fits says whether a node may talk to another at all, both as they say of
// themselves.
func fits(self, other Hello) error {
	switch {
	case other.To != "" && other.To != self.NodeID:
		return fmt.Errorf("this is node %s, not %s", self.NodeID, other.To)
	case other.ClusterID != "" && self.ClusterID != "" && other.ClusterID != self.ClusterID:
		return fmt.Errorf("this is cluster %s, not %s", self.ClusterID, other.ClusterID)
	case !self.Levels.overlap(other.Levels):
		return fmt.Errorf("feature levels %d to %d are not among %d to %d here",
			other.Levels.Min, other.Levels.Max, self.Levels.Min, self.Levels.Max)
	}
	return nil
}
