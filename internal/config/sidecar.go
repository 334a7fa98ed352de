package config

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// Sidecar is how one sidecar runs.
type Sidecar struct {
	// Listen is where workers call: unix:PATH, or host:port on loopback.
	Listen string `yaml:"listen"`
	// SocketMode is who may use a Unix socket, in octal.
	SocketMode string `yaml:"socket_mode"`
	// Upstream are nodes of the cluster; one that is reached tells who leads.
	Upstream []string `yaml:"upstream"`
	// CACert has the authorities of the nodes' certificates. Empty means plain text.
	CACert string `yaml:"ca_cert"`
	// Cert and Key are a certificate to show the nodes, TokenFile has a token to send
	// them. What workers may do is what the sidecar may.
	Cert      string `yaml:"cert"`
	Key       string `yaml:"key"`
	TokenFile string `yaml:"token_file"`
	// HTTPAddr is where /metrics, /healthz and /readyz are served. Empty means nowhere.
	HTTPAddr string `yaml:"http_addr"`

	// Grace is how long a worker may be without a connection before what it holds is
	// given back.
	Grace time.Duration `yaml:"grace"`
	// MaxLifetime is for how long a permit is renewed. 0 means without end.
	MaxLifetime time.Duration `yaml:"max_lifetime"`
	// MaxPermits is how many permits are kept, with those that calls under way may be
	// granted.
	MaxPermits int `yaml:"max_permits"`
	// MaxShares is for how many pools, tenants and categories tokens are held to grant
	// from. 0 means that none are.
	MaxShares int `yaml:"max_shares"`
	// Node names the sidecar among those that share tokens. Empty means its host's name
	// and chance.
	Node string `yaml:"node"`
	// NodeOwned is for how many of the NodeTotal parts of the fleet it stands.
	NodeOwned int `yaml:"node_owned"`
	NodeTotal int `yaml:"node_total"`

	// LogLevel is debug, info, warn or error.
	LogLevel string `yaml:"log_level"`
	// LogFormat is text or json.
	LogFormat string `yaml:"log_format"`
	// ShutdownTimeout is what calls under way get to end.
	ShutdownTimeout time.Duration `yaml:"shutdown_timeout"`
}

// The bounds of a sidecar's settings.
const (
	maxGrace       = 10 * time.Minute
	minMaxLifetime = time.Second
	maxMaxPermits  = 1_000_000
	maxMaxShares   = 1_000_000
	maxNodeBytes   = 128
	maxNodeTotal   = 10_000
	// maxSocketPath is what the system lets the path of a Unix socket be, in bytes.
	maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1
)

// DefaultSidecar returns what holds where nothing is said.
func DefaultSidecar() Sidecar {
	return Sidecar{
		Listen:          "127.0.0.1:7423",
		SocketMode:      "0660",
		Upstream:        []string{"127.0.0.1:7420"},
		HTTPAddr:        "127.0.0.1:7424",
		Grace:           5 * time.Second,
		MaxPermits:      100_000,
		MaxShares:       10_000,
		NodeOwned:       1,
		NodeTotal:       1,
		LogLevel:        "info",
		LogFormat:       "text",
		ShutdownTimeout: 10 * time.Second,
	}
}

// sidecarForm has all keys, in the order of Sidecar.
var sidecarForm = form[Sidecar]{
	settings: []setting[Sidecar]{
		text("listen", "where workers call: unix:PATH, or host:port on loopback", func(c *Sidecar) *string { return &c.Listen }),
		text("socket_mode", "who may use a Unix socket, in octal", func(c *Sidecar) *string { return &c.SocketMode }),
		list("upstream", "nodes of the cluster, host:port, parted by commas", func(c *Sidecar) *[]string { return &c.Upstream }),
		text("ca_cert", "authorities of the nodes' certificates (default plain text)", func(c *Sidecar) *string { return &c.CACert }),
		text("cert", "certificate to show the nodes", func(c *Sidecar) *string { return &c.Cert }),
		text("key", "its key", func(c *Sidecar) *string { return &c.Key }),
		text("token_file", "token to send the nodes", func(c *Sidecar) *string { return &c.TokenFile }),
		text("http_addr", "where /metrics, /healthz and /readyz are served; empty for nowhere", func(c *Sidecar) *string { return &c.HTTPAddr }),
		span("grace", "how long a worker may be without a connection", func(c *Sidecar) *time.Duration { return &c.Grace }),
		span("max_lifetime", "for how long a permit is renewed, 0s without end", func(c *Sidecar) *time.Duration { return &c.MaxLifetime }),
		number("max_permits", "how many permits are kept", func(c *Sidecar) *int { return &c.MaxPermits }),
		number("max_shares", "for how many keys tokens are held, 0 for none", func(c *Sidecar) *int { return &c.MaxShares }),
		text("node", "name among the sidecars that share tokens (default the host's and chance)", func(c *Sidecar) *string { return &c.Node }),
		number("node_owned", "for how many parts of the fleet it stands", func(c *Sidecar) *int { return &c.NodeOwned }),
		number("node_total", "how many parts there are", func(c *Sidecar) *int { return &c.NodeTotal }),
		text("log_level", "debug, info, warn or error", func(c *Sidecar) *string { return &c.LogLevel }),
		text("log_format", "text or json", func(c *Sidecar) *string { return &c.LogFormat }),
		span("shutdown_timeout", "time that calls under way get to end", func(c *Sidecar) *time.Duration { return &c.ShutdownTimeout }),
	},
	prefix:   "ADMIT_SIDECAR_",
	defaults: DefaultSidecar,
}

// AddSidecarFlags defines one flag for each setting of a sidecar.
func AddSidecarFlags(flags *pflag.FlagSet) { sidecarForm.addFlags(flags) }

// LoadSidecar fills a Sidecar as Load does a Config.
func LoadSidecar(file string, lookup func(string) (string, bool), flags *pflag.FlagSet) (Sidecar, error) {
	return sidecarForm.load(file, lookup, flags)
}

// Mode is SocketMode as a number; false if it is none.
func (c Sidecar) Mode() (mode fs.FileMode, ok bool) {
	n, err := strconv.ParseUint(c.SocketMode, 8, 32)
	return fs.FileMode(n), err == nil && n <= 0o777
}

// Validate returns all that is wrong, joined, one line for each problem that begins with
// the key at fault.
func (c Sidecar) Validate() error {
	var wrong problems
	c.checkListeners(&wrong)
	c.checkUpstream(&wrong)
	if c.Grace < 0 || c.Grace > maxGrace {
		wrong.add("grace", "is %s, must be from 0s to %s", c.Grace, maxGrace)
	}
	if c.MaxLifetime != 0 && c.MaxLifetime < minMaxLifetime {
		wrong.add("max_lifetime", "is %s, must be 0s or at least %s", c.MaxLifetime, minMaxLifetime)
	}
	if c.MaxPermits < 1 || c.MaxPermits > maxMaxPermits {
		wrong.add("max_permits", "is %d, must be from 1 to %d", c.MaxPermits, maxMaxPermits)
	}
	c.checkShares(&wrong)
	checkLog(&wrong, c.LogLevel, c.LogFormat)
	checkShutdown(&wrong, c.ShutdownTimeout)
	return errors.Join(wrong...)
}

// checkShares wants what nodes take.
func (c Sidecar) checkShares(wrong *problems) {
	if c.MaxShares < 0 || c.MaxShares > maxMaxShares {
		wrong.add("max_shares", "is %d, must be from 0 to %d", c.MaxShares, maxMaxShares)
	}
	if len(c.Node) > maxNodeBytes {
		wrong.add("node", "has %d bytes, may have %d", len(c.Node), maxNodeBytes)
	}
	if c.NodeTotal < 1 || c.NodeTotal > maxNodeTotal {
		wrong.add("node_total", "is %d, must be from 1 to %d", c.NodeTotal, maxNodeTotal)
	} else if c.NodeOwned < 1 || c.NodeOwned > c.NodeTotal {
		wrong.add("node_owned", "is %d, must be from 1 to node_total, which is %d", c.NodeOwned, c.NodeTotal)
	}
}

// checkListeners wants what nobody beyond this machine can reach.
func (c Sidecar) checkListeners(wrong *problems) {
	path, isSocket := strings.CutPrefix(c.Listen, "unix:")
	switch {
	case !isSocket:
		checkLoopback(wrong, "listen", c.Listen)
	case strings.TrimPrefix(path, "//") == "":
		wrong.add("listen", "names no path; unix:/run/admit/sidecar.sock does")
	case len(strings.TrimPrefix(path, "//")) > maxSocketPath:
		wrong.add("listen", "the path of a socket has at most %d bytes, this one has %d", maxSocketPath, len(strings.TrimPrefix(path, "//")))
	}
	if _, ok := c.Mode(); !ok {
		wrong.add("socket_mode", "%q is no mode from 0000 to 0777", c.SocketMode)
	}
	if c.HTTPAddr == "" {
		return
	}
	checkLoopback(wrong, "http_addr", c.HTTPAddr)
	if c.HTTPAddr == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
		wrong.add("http_addr", "%s is taken by listen already", c.HTTPAddr)
	}
}

func checkLoopback(wrong *problems, key, addr string) {
	host, port, err := splitAddr(addr)
	switch {
	case err != nil:
		wrong.add(key, "%w", err)
	case !isLoopback(host):
		wrong.add(key, "%q is refused: a sidecar serves its own machine alone, as on 127.0.0.1:%s; a node serves others", addr, port)
	}
}

// checkUpstream wants nodes, and what belongs together together.
func (c Sidecar) checkUpstream(wrong *problems) {
	if len(c.Upstream) == 0 {
		wrong.add("upstream", "is required")
	}
	for _, addr := range c.Upstream {
		if host, port, err := splitAddr(addr); err != nil {
			wrong.add("upstream", "%w", err)
		} else if host == "" || port == "0" {
			wrong.add("upstream", "%q can't be called", addr)
		}
	}
	if slices.Contains(c.Upstream, c.Listen) {
		wrong.add("upstream", "%s is the sidecar itself", c.Listen)
	}
	if (c.Cert == "") != (c.Key == "") {
		wrong.add("cert", "goes with key")
	}
	if c.CACert == "" && (c.Cert != "" || c.TokenFile != "") {
		wrong.add("ca_cert", "is required with cert and with token_file: without it nothing is encrypted")
	}
}
