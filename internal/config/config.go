// Package config holds the settings of admitd: one struct, filled from the
// defaults, then the file, then the environment, then the flags. A setting has
// one name everywhere: `drain_delay` in the file is ADMIT_DRAIN_DELAY in the
// environment and --drain-delay as a flag.
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
	// HTTPAddr is where /metrics, /healthz and /readyz are served.
	HTTPAddr string `yaml:"http_addr"`
	// PolicyFile is applied at the first start, when no policy was ever applied.
	// Empty means the sample policy.
	PolicyFile string `yaml:"policy_file"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
	// DrainDelay is the time between turning unhealthy and refusing calls, in
	// which load balancers notice.
	DrainDelay time.Duration `yaml:"drain_delay"`
	// ShutdownTimeout is what calls under way get to end after that.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// DefaultConfig returns what holds where nothing is said.
func DefaultConfig() Config {
	return Config{
		Data:            defaultData(os.Getenv, os.UserHomeDir),
		GRPCAddr:        "127.0.0.1:7420",
		HTTPAddr:        "127.0.0.1:7422",
		LogLevel:        "info",
		LogFormat:       "text",
		DrainDelay:      0,
		ShutdownTimeout: 10 * time.Second,
	}
}

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
