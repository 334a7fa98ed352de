package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
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

// Validate returns all that is wrong, joined, one line for each problem that
// begins with the key at fault.
func (c Config) Validate() error {
	var wrong []error
	fail := func(key, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf(key+": "+format, args...))
	}
	if c.Data == "" {
		fail("data", "is required")
	}
	for _, a := range []struct{ key, addr string }{{"grpc_addr", c.GRPCAddr}, {"http_addr", c.HTTPAddr}} {
		if err := checkAddr(a.addr); err != nil {
			fail(a.key, "%w", err)
		}
	}
	if c.HTTPAddr == c.GRPCAddr && !strings.HasSuffix(c.GRPCAddr, ":0") {
		fail("http_addr", "%s is taken by grpc_addr already", c.HTTPAddr)
	}
	if err := new(slog.Level).UnmarshalText([]byte(c.LogLevel)); err != nil {
		fail("log_level", "%q is none of debug, info, warn, error", c.LogLevel)
	}
	if !slices.Contains(logging.Formats, c.LogFormat) {
		fail("log_format", "%q is none of %s", c.LogFormat, strings.Join(logging.Formats, ", "))
	}
	if c.DrainDelay < 0 || c.DrainDelay > maxDrainDelay {
		fail("drain_delay", "is %s, must be from 0s to %s", c.DrainDelay, maxDrainDelay)
	}
	if c.ShutdownTimeout <= 0 || c.ShutdownTimeout > maxShutdownTimeout {
		fail("shutdown_timeout", "is %s, must be above 0s and at most %s", c.ShutdownTimeout, maxShutdownTimeout)
	}
	return errors.Join(wrong...)
}

// checkAddr wants a port of this machine alone: calls are neither encrypted nor
// authenticated yet.
func checkAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port from 0 to 65535", port)
	} else if strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q is not a port in plain digits", port)
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is refused: admitd has no TLS and no authentication yet, so it binds to loopback only, for example 127.0.0.1:%s", addr, port)
	}
	return nil
}
