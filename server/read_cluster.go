package server

import (
	"net"
	"strconv"
	"strings"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// maxAddr holds the longest name of a host, a port and brackets.
const maxAddr = 300

func readJoin(in *admitv1.JoinRequest) (addr string, err error) {
	c := newChecker()
	return c.address("peer_addr", in.GetPeerAddr()), c.err()
}

func readMember(in interface{ GetNodeId() string }) (id string, err error) {
	c := newChecker()
	return c.identity("node_id", in.GetNodeId()), c.err()
}

func readTransfer(in *admitv1.TransferRequest) (id string, err error) {
	c := newChecker()
	return c.optional(c.identity, "node_id", in.GetNodeId()), c.err()
}

// address is a host:port that can be called.
func (c checker) address(field, v string) string {
	if len(v) > maxAddr {
		c.fail(field, "has %d bytes, at most %d are allowed", len(v), maxAddr)
		return ""
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil || host == "" || strings.ContainsFunc(host, notInHost) {
		c.fail(field, "is not host:port")
		return ""
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		c.fail(field, "has no port from 1 to 65535")
	}
	return v
}

// notInHost says which characters neither a name nor an address has.
func notInHost(r rune) bool { return !isAlphanumeric(r) && !contains("._-:%", r) }
