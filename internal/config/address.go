package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// splitAddr takes host:port apart, where the host may be empty.
func splitAddr(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("%q is not host:port", addr)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%q is not a port from 0 to 65535", port)
	} else if strconv.FormatUint(n, 10) != port {
		return "", "", fmt.Errorf("%q is not a port in plain digits", port)
	}
	return host, port, nil
}

// WithPeerPort adds DefaultPeerPort to a peer address that has no port.
func WithPeerPort(addr string) string {
	if addr == "" {
		return ""
	}
	if _, err := netip.ParseAddr(addr); err == nil || !strings.Contains(addr, ":") {
		return net.JoinHostPort(addr, DefaultPeerPort)
	}
	return addr
}

// isLoopback says whether a host is this machine alone. A name but localhost may
// stand for any.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// isEverywhere says whether a host stands for all interfaces, which one can
// listen on but not call.
func isEverywhere(host string) bool {
	if host == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
