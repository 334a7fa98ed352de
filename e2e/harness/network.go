package harness

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Network lies between the members of a cluster. Each member's ports are reached
// by a proxy, which others are told of; each dials from an address of its own, so
// that a proxy knows who it is. So each direction between two members can be
// disturbed by itself. Whoever dials from elsewhere, a client, is let through.
//
// Bytes that are held back arrive when the way is open again, as TCP would send
// them again: that is when very late messages come.
type Network struct {
	t    testing.TB
	ways [][]*way // from, to

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool // those that are open
	serving   sync.WaitGroup
}

const (
	noMember = -1
	// proxyAddr is the proxies', which no member has.
	proxyAddr = "127.0.0.1"
	// firstMember is the last part of the first member's address.
	firstMember = 11
)

// memberIP is the address of a member, which it listens at and dials from.
func memberIP(i int) string { return fmt.Sprintf("127.0.0.%d", firstMember+i) }

func newNetwork(t testing.TB, members int) *Network {
	n := &Network{t: t, conns: map[net.Conn]bool{}}
	for range members {
		row := make([]*way, members)
		for to := range row {
			row[to] = newWay()
		}
		n.ways = append(n.ways, row)
	}
	t.Cleanup(n.close)
	return n
}

// proxy returns where others reach the port of a member that listens at addr.
func (n *Network) proxy(member int, addr string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", proxyAddr+":0")
	if err != nil {
		n.t.Fatalf("listen for a proxy: %v", err)
	}
	n.mu.Lock()
	n.listeners = append(n.listeners, l)
	n.mu.Unlock()
	n.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.serving.Go(func() { n.serve(conn, member, addr) })
		}
	})
	return l.Addr().String()
}

func (n *Network) serve(conn net.Conn, to int, addr string) {
	defer conn.Close()
	if !n.keep(conn) {
		return
	}
	defer n.drop(conn)
	up, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return // it is down: whoever dialed sees the connection end
	}
	defer up.Close()
	if !n.keep(up) {
		return
	}
	defer n.drop(up)
	there, back := newWay(), newWay()
	if from := n.memberOf(conn); from != noMember {
		there, back = n.ways[from][to], n.ways[to][from]
	}
	relay(conn, up, there, back)
}

func (n *Network) memberOf(conn net.Conn) int {
	host, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return noMember
	}
	for i := range n.ways {
		if host == memberIP(i) {
			return i
		}
	}
	return noMember
}

func (n *Network) keep(conn net.Conn) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.conns[conn] = true
	return true
}

func (n *Network) drop(conn net.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, conn)
}

// Hold keeps back what one member sends another: the one-way fault.
func (n *Network) Hold(from, to int) { n.ways[from][to].set(true, 0) }

// Delay makes all that one member sends another late.
func (n *Network) Delay(from, to int, by time.Duration) { n.ways[from][to].set(false, by) }

// Isolate holds back all between a member and the others.
func (n *Network) Isolate(member int) {
	for other := range n.ways {
		if other != member {
			n.Hold(member, other)
			n.Hold(other, member)
		}
	}
}

// Heal ends all disturbance.
func (n *Network) Heal() {
	for _, row := range n.ways {
		for _, w := range row {
			w.set(false, 0)
		}
	}
}

func (n *Network) close() {
	n.Heal()
	n.mu.Lock()
	n.closed = true
	for _, l := range n.listeners {
		_ = l.Close()
	}
	for conn := range n.conns {
		_ = conn.Close()
	}
	n.mu.Unlock()
	n.serving.Wait()
}
