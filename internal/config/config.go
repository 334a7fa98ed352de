// Package config holds the settings of admitd: one struct, filled from the
// defaults, then the file, then the environment, then the flags. A setting has
// one name everywhere: `drain_delay` in the file is ADMIT_DRAIN_DELAY in the
// environment and --drain-delay as a flag. What is a list in the file is parted
// by commas elsewhere.
package config

import (
	"os"
	"path/filepath"
	"time"
)

// Config is how one node runs.
type Config struct {
	// Data is the directory that holds the log and the snapshots. It belongs to
	// one process at a time.
	Data string `yaml:"data"`
	// GRPCAddr is where the API is served, as host:port; port 0 takes a free one.
	GRPCAddr string `yaml:"grpc_addr"`
	// HTTPAddr is where the page, /metrics, /healthz and /readyz are served.
	HTTPAddr string `yaml:"http_addr"`
	// Profiles has the HTTP side serve /debug/pprof too, to whom it serves /metrics.
	Profiles bool `yaml:"profiles"`
	// PolicyFile is applied at the first start, when no policy was ever applied.
	// Empty means the sample policy.
	PolicyFile string `yaml:"policy_file"`

	// TLSCert and TLSKey encrypt the API and the HTTP side. Empty means plain text,
	// on loopback alone.
	TLSCert string `yaml:"tls_cert"`
	TLSKey  string `yaml:"tls_key"`
	// TLSClientCA has the authorities whose certificates callers can show.
	TLSClientCA string `yaml:"tls_client_ca"`
	// TokensFile has the hashes of the tokens that callers can send. Where neither
	// it nor TLSClientCA is set, whoever reaches the node may call.
	TokensFile string `yaml:"tokens_file"`

	// PeerAddr is where other members of the cluster reach this node; without a
	// port it is DefaultPeerPort. Empty means a node that is alone.
	PeerAddr string `yaml:"peer_addr"`
	// PeerAdvertise and GRPCAdvertise are what the other members are told, where
	// PeerAddr and GRPCAddr are not what they can call.
	PeerAdvertise string `yaml:"peer_advertise"`
	GRPCAdvertise string `yaml:"grpc_advertise"`
	// Join are the peer addresses at which a node without data looks for a cluster.
	Join []string `yaml:"join"`
	// BootstrapExpect founds a cluster once so many nodes without data see each
	// other. 0 waits to be taken in.
	BootstrapExpect int `yaml:"bootstrap_expect"`
	// PeerCA, PeerCert and PeerKey prove the members to one another.
	PeerCA   string `yaml:"peer_ca"`
	PeerCert string `yaml:"peer_cert"`
	PeerKey  string `yaml:"peer_key"`
	// ElectionTimeout is how long a leader may be silent before the others elect
	// another.
	ElectionTimeout time.Duration `yaml:"election_timeout"`

	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
	// TracesEndpoint is a collector that traces of calls are sent to, by OTLP over gRPC:
	// http://host:port, or https:// for TLS. Empty means that nothing is traced.
	TracesEndpoint string `yaml:"traces_endpoint"`
	// TracesRatio is how many of the calls are traced whose callers did not decide, from
	// 0 to 1.
	TracesRatio float64 `yaml:"traces_ratio"`
	// DrainDelay is the time between turning unhealthy and refusing calls, in
	// which load balancers notice.
	DrainDelay time.Duration `yaml:"drain_delay"`
	// ShutdownTimeout is what calls under way get to end after that.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// DefaultPeerPort is the port of a peer address that names none.
const DefaultPeerPort = "7421"

// DefaultConfig returns what holds where nothing is said.
func DefaultConfig() Config {
	return Config{
		Data:            defaultData(os.Getenv, os.UserHomeDir),
		GRPCAddr:        "127.0.0.1:7420",
		HTTPAddr:        "127.0.0.1:7422",
		ElectionTimeout: time.Second,
		LogLevel:        "info",
		LogFormat:       "text",
		TracesRatio:     0.01,
		DrainDelay:      0,
		ShutdownTimeout: 10 * time.Second,
	}
}

// Clustered says whether the node is a member of a cluster of several.
func (c Config) Clustered() bool { return c.PeerAddr != "" }

// defaultData is where a user's programs keep state, so that a node started
// from anywhere finds what it knew; without a home it is a directory here.
func defaultData(env func(string) string, home func() (string, error)) string {
	if state := env("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "admit")
	}
	if dir, err := home(); err == nil {
		return filepath.Join(dir, ".local", "state", "admit")
	}
	return "admit-data"
}
