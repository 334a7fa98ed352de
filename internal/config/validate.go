package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/internal/logging"
)

// The longest times that a stop may take; a supervisor would have lost patience
// before.
const (
	maxDrainDelay      = 5 * time.Minute
	maxShutdownTimeout = 10 * time.Minute
)

// problems are what is wrong with a Config, one line for each that begins with
// the key at fault.
type problems []error

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, fmt.Errorf(key+": "+format, args...))
}

// Validate returns all that is wrong, joined, one line for each problem that
// begins with the key at fault.
func (c Config) Validate() error {
	var wrong problems
	if c.Data == "" {
		wrong.add("data", "is required")
	}
	c.checkTLS(&wrong)
	c.checkPorts(&wrong)
	c.checkCluster(&wrong)
	checkLog(&wrong, c.LogLevel, c.LogFormat)
	c.checkTraces(&wrong)
	if c.DrainDelay < 0 || c.DrainDelay > maxDrainDelay {
		wrong.add("drain_delay", "is %s, must be from 0s to %s", c.DrainDelay, maxDrainDelay)
	}
	checkShutdown(&wrong, c.ShutdownTimeout)
	return errors.Join(wrong...)
}

// checkLog wants a level and a format that there are.
func checkLog(wrong *problems, level, format string) {
	if err := new(slog.Level).UnmarshalText([]byte(level)); err != nil {
		wrong.add("log_level", "%q is none of debug, info, warn, error", level)
	}
	if !slices.Contains(logging.Formats, format) {
		wrong.add("log_format", "%q is none of %s", format, strings.Join(logging.Formats, ", "))
	}
}

func checkShutdown(wrong *problems, timeout time.Duration) {
	if timeout <= 0 || timeout > maxShutdownTimeout {
		wrong.add("shutdown_timeout", "is %s, must be above 0s and at most %s", timeout, maxShutdownTimeout)
	}
}

// checkTraces wants an address to which spans can be sent.
func (c Config) checkTraces(wrong *problems) {
	if !(c.TracesRatio >= 0 && c.TracesRatio <= 1) { // nor NaN
		wrong.add("traces_ratio", "is %v, must be from 0 to 1", c.TracesRatio)
	}
	if c.TracesEndpoint == "" {
		return
	}
	u, err := url.Parse(c.TracesEndpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil,
		u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "":
		wrong.add("traces_endpoint", "is not of the form http://host:port or https://host:port")
	case u.Port() == "":
		wrong.add("traces_endpoint", "%q has no port; collectors listen on 4317", c.TracesEndpoint)
	}
}

// checkTLS wants what belongs together together.
func (c Config) checkTLS(wrong *problems) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		wrong.add("tls_cert", "goes with tls_key")
	}
	if c.TLSCert != "" {
		return
	}
	if c.TLSClientCA != "" {
		wrong.add("tls_client_ca", "needs tls_cert and tls_key")
	}
	if c.TokensFile != "" {
		wrong.add("tokens_file", "needs tls_cert and tls_key: a token must not travel in plain text")
	}
}

// Open says whether the ports can be shown to the world: connections are
// encrypted, and callers have to prove who they are.
func (c Config) Open() bool {
	return c.TLSCert != "" && c.TLSKey != "" && (c.TLSClientCA != "" || c.TokensFile != "")
}

func (c Config) checkPorts(wrong *problems) {
	for _, a := range []struct{ key, addr string }{{"grpc_addr", c.GRPCAddr}, {"http_addr", c.HTTPAddr}} {
		host, port, err := splitAddr(a.addr)
		switch {
		case err != nil:
			wrong.add(a.key, "%w", err)
		case !c.Open() && !isLoopback(host):
			wrong.add(a.key, "%q is refused: beyond loopback a port needs tls_cert and tls_key, and tokens_file or tls_client_ca; 127.0.0.1:%s needs neither", a.addr, port)
		}
	}
	if c.HTTPAddr == c.GRPCAddr && !strings.HasSuffix(c.GRPCAddr, ":0") {
		wrong.add("http_addr", "%s is taken by grpc_addr already", c.HTTPAddr)
	}
}
