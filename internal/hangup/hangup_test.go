package hangup

import (
	"io"
	"net"
	"testing"

	"google.golang.org/grpc/test/bufconn"
)

// accept has one come by l, and returns both sides of it.
func accept(t *testing.T, raw *bufconn.Listener, l net.Listener) (theirs, ours net.Conn) {
	t.Helper()
	dialled := make(chan net.Conn, 1)
	go func() {
		c, err := raw.Dial()
		if err != nil {
			t.Error(err)
		}
		dialled <- c
	}()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	theirs = <-dialled
	t.Cleanup(func() { _ = theirs.Close() })
	return theirs, ours
}

// closed says whether the other side of a connection has closed it; it says nothing.
func closed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return err == io.EOF
}

func TestSilentOnesAreHungUpOn(t *testing.T) {
	var connections Connections
	raw := bufconn.Listen(16)
	l := connections.Of(raw)
	silent, _ := accept(t, raw, l)
	speaker, heard := accept(t, raw, l)
	if _, err := speaker.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(heard, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	left, ours := accept(t, raw, l)
	if err := ours.Close(); err != nil || !closed(left) {
		t.Fatalf("one that is closed as usual: %v", err)
	}
	connections.Silent()
	if !closed(silent) {
		t.Error("one that says nothing stays")
	}
	if late, _ := accept(t, raw, l); !closed(late) {
		t.Error("one that comes later stays")
	}
	if _, err := heard.Write([]byte{1}); err != nil {
		t.Fatalf("one that spoke is closed: %v", err)
	}
	if _, err := speaker.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n := len(connections.open); n != 1 {
		t.Errorf("%d are open, want the one that spoke", n)
	}
	connections.All()
	if !closed(speaker) || len(connections.open) != 0 {
		t.Error("one that spoke stays")
	}
}
