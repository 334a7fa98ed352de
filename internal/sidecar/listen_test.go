package sidecar

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket can be used by those whom the mode lets, and is gone when its sidecar is.
func TestASocketHasItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	for _, addr := range []string{"unix:" + path, "unix://" + path} {
		l, err := listen(addr, 0o640)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o640 || info.Mode().Type() != os.ModeSocket {
			t.Errorf("it is %v, %v", info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
	}
}

// The socket of a sidecar that was killed is replaced; one that is in use is not, nor
// what is no socket.
func TestAStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := listen("unix:"+path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:"+path, 0o600); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("a second one was told %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen("unix:"+path, 0o600); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("one in place of a file was told %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// A socket of another kind is in use by who knows whom.
func TestASocketOfAnotherKindStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	other, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := listen("unix:"+path, 0o600); err == nil || !strings.Contains(err.Error(), "find out whether") {
		t.Errorf("one in its place was told %v", err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// A port is one of this machine alone, whatever its name.
func TestAPortIsLoopback(t *testing.T) {
	l, err := listen("127.0.0.1:0", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := listen("0.0.0.0:0", 0); err == nil || !strings.Contains(err.Error(), "not on the loopback interface") {
		t.Errorf("a port for everybody was answered with %v", err)
	}
}
