// Package localaddr says from where a member dials others.
package localaddr

import "net"

// For returns the address to dial addr from, for who listens at listener: the same,
// where it is a certain one, so that firewalls see members and not only machines. It
// is nil where any will do, and where addr is of the other kind of IP, to which no way
// leads from there. From the loopback interface nobody but those on it can be reached.
func For(listener net.Addr, addr string) net.Addr {
	tcp, ok := listener.(*net.TCPAddr)
	if !ok || tcp.IP.IsUnspecified() {
		return nil
	}
	host, _, _ := net.SplitHostPort(addr) // dialing tells what is wrong with it
	ip := net.ParseIP(host)
	if tcp.IP.IsLoopback() && !ip.IsLoopback() || ip != nil && (ip.To4() == nil) != (tcp.IP.To4() == nil) {
		return nil
	}
	return &net.TCPAddr{IP: tcp.IP, Zone: tcp.Zone}
}
