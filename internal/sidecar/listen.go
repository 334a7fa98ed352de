package sidecar

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
)

// unixScheme begins the address of a Unix socket.
const unixScheme = "unix:"

// socketPath returns the path of a Unix socket that an address names, unix:PATH or
// unix:///PATH; false for any other address.
func socketPath(addr string) (path string, ok bool) {
	path, ok = strings.CutPrefix(addr, unixScheme)
	if rooted, found := strings.CutPrefix(path, "//"); found {
		path = rooted
	}
	return path, ok
}

// listen takes an address for workers: a Unix socket that those can reach whom the mode
// lets, or a port of the loopback interface.
func listen(addr string, mode fs.FileMode) (net.Listener, error) {
	if path, ok := socketPath(addr); ok {
		return listenUnix(path, mode)
	}
	return listenLoopback(addr, maxConnections)
}

// listenLoopback takes a port that only this machine reaches. A name may stand for any
// address.
func listenLoopback(addr string, connections int) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s is %s, which is not on the loopback interface", addr, l.Addr()), l.Close())
	}
	return netutil.LimitListener(l, connections), nil
}

func listenUnix(path string, mode fs.FileMode) (net.Listener, error) {
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// Nobody may come in before the mode is set.
	mask := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(mask)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return netutil.LimitListener(l, maxConnections), nil
}

// removeStale removes a socket on which nobody listens any more: that of a sidecar that
// was killed.
func removeStale(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("%s is in use by another process", path), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("find out whether %s is in use: %w", path, err)
	}
	return os.Remove(path)
}
