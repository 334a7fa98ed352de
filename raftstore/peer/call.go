package peer

// Info is what a node says of itself when asked.
type Info struct {
	NodeID    string `json:"node_id"`
	ClusterID string `json:"cluster_id"`
	PeerAddr  string `json:"peer_addr"`
	GRPCAddr  string `json:"grpc_addr"`
	// Founded says that its cluster exists, as far as it knows: it holds entries.
	Founded bool `json:"founded"`
	// Expect and Sees are of a node without a cluster: how many it takes to found
	// one, and the ids of those without one that it has heard of lately.
	Expect int      `json:"expect,omitempty"`
	Sees   []string `json:"sees,omitempty"`
	// Leader is who leads, or zero.
	Leader Address `json:"leader"`
	// Wall is its wall clock, in nanoseconds since the Unix epoch.
	Wall int64 `json:"wall"`
	// Last is the index of the last entry in its log, Committed of the last that it
	// knows to be committed, Applied of the last command applied.
	Last      uint64 `json:"last"`
	Committed uint64 `json:"committed"`
	Applied   uint64 `json:"applied"`
	// Digest is what the results of all entries up to Applied come to, if it is known.
	Digest *uint64 `json:"digest,omitempty"`
}

// Address is where a node is.
type Address struct {
	NodeID   string `json:"node_id"`
	PeerAddr string `json:"peer_addr"`
	GRPCAddr string `json:"grpc_addr"`
}

// Request is a call of one node at another. One with nothing in it asks for the
// Info, which comes with every reply.
type Request struct {
	// Found asks a node without a cluster to be of this one, which is about to be.
	Found *Found `json:"found,omitempty"`
	// Join asks to be taken into the cluster.
	Join bool `json:"join,omitempty"`
	// DigestAt asks for the digest at an index.
	DigestAt uint64 `json:"digest_at,omitempty"`
}

// Found names a cluster that its founder is about to found.
type Found struct {
	ClusterID string `json:"cluster_id"`
}

// Reply answers a Request.
type Reply struct {
	Info Info `json:"info"`
	// Error says why what was asked for was not done.
	Error string `json:"error,omitempty"`
	// Digest is nil where it is not known, or no longer.
	Digest *uint64 `json:"digest,omitempty"`
}
