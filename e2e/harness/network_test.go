package harness

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo is a member's port that answers what it hears.
func echo(t *testing.T, n *Network, member int) (proxy string) {
	t.Helper()
	l, err := net.Listen("tcp", memberIP(member)+":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return n.proxy(member, l.Addr().String())
}

// dialAs dials as a member does, or as a client.
func dialAs(t *testing.T, member int, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{}
	if member != noMember {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(memberIP(member))}
	}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

const soonEnough = 5 * time.Second

// hears says whether a byte that is sent comes back within limit.
func hears(t *testing.T, conn net.Conn, limit time.Duration) bool {
	t.Helper()
	if _, err := conn.Write([]byte{1}); err != nil {
		return false
	}
	return receives(t, conn, limit)
}

func receives(t *testing.T, conn net.Conn, limit time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
		t.Logf("read: %v", err)
	}
	return err == nil
}

func TestNetworkHoldsOneDirectionOfOnePair(t *testing.T) {
	n := newNetwork(t, 3)
	proxy := echo(t, n, 1)
	mine, other, client := dialAs(t, 0, proxy), dialAs(t, 2, proxy), dialAs(t, noMember, proxy)
	for from, to := range map[int]int{0: 1, 1: 0} {
		n.Hold(from, to)
		if hears(t, mine, 50*time.Millisecond) {
			t.Errorf("%d still hears %d", to, from)
		}
		if !hears(t, other, soonEnough) || !hears(t, client, soonEnough) {
			t.Error("others are held back too")
		}
		n.Heal()
		if !receives(t, mine, soonEnough) {
			t.Error("what was held back does not arrive")
		}
	}
	if n.Isolate(0); hears(t, dialAs(t, 0, proxy), 50*time.Millisecond) {
		t.Error("an isolated member is heard on a new connection")
	}
}

func TestNetworkDelays(t *testing.T) {
	n := newNetwork(t, 2)
	conn := dialAs(t, 0, echo(t, n, 1))
	const late = 60 * time.Millisecond
	n.Delay(1, 0, late)
	began := time.Now()
	if !hears(t, conn, soonEnough) || time.Since(began) < late {
		t.Errorf("the answer came after %v, not %v late", time.Since(began), late)
	}
}
