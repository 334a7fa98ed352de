package harness

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// foundLimit is how long members may take to found a cluster.
const foundLimit = 60 * time.Second

// Cluster is admitd several times, as members of one cluster with a Network
// between them.
type Cluster struct {
	t     testing.TB
	Nodes []*Node
	Net   *Network
	// advertised are the addresses of the members' APIs, behind their proxies.
	advertised []string
}

// ClusterOption changes how StartCluster sets the members up.
type ClusterOption func(*Node)

// With starts the members with settings beside those that all have.
func With(settings ...string) ClusterOption {
	return func(n *Node) { n.settings = append(n.settings, settings...) }
}

// StartCluster starts so many members, whose data and logs are in dir, and waits
// until all of them serve.
func StartCluster(t testing.TB, dir string, members int, opts ...ClusterOption) *Cluster {
	t.Helper()
	c := &Cluster{t: t, Net: newNetwork(t, members)}
	certs := c.certificates(dir, members)
	peers := make([]string, members)
	for i := range peers {
		n := NewNode(t, filepath.Join(dir, memberName(i)))
		n.grpcAddr = freeAddr(t, memberIP(i))
		n.addr = n.grpcAddr
		peer := freeAddr(t, memberIP(i))
		peers[i] = c.Net.proxy(i, peer)
		api := c.Net.proxy(i, n.grpcAddr)
		c.advertised = append(c.advertised, api)
		name := filepath.Join(certs, memberName(i))
		n.settings = []string{
			"--peer-addr", peer, "--peer-advertise", peers[i], "--grpc-advertise", api,
			"--bootstrap-expect", strconv.Itoa(members),
			"--peer-ca", filepath.Join(certs, "ca.crt"), "--peer-cert", name + ".crt", "--peer-key", name + ".key",
		}
		for _, o := range opts {
			o(n)
		}
		c.Nodes = append(c.Nodes, n)
	}
	for _, n := range c.Nodes {
		n.settings = append(n.settings, "--join", strings.Join(peers, ","))
		n.Launch()
	}
	for _, n := range c.Nodes {
		n.AwaitReady(foundLimit)
	}
	return c
}

func memberName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// certificates makes those of the members, as an operator does.
func (c *Cluster) certificates(dir string, members int) string {
	c.t.Helper()
	certs := filepath.Join(dir, "certs")
	args := []string{"certs", "init", "--dir", certs}
	for i := range members {
		args = append(args, memberName(i))
	}
	if out, err := exec.Command(Binary(c.t, "admitctl"), args...).CombinedOutput(); err != nil {
		c.t.Fatalf("make certificates: %v\n%s", err, out)
	}
	return certs
}

// freeAddr returns an address on which nobody listens now.
func freeAddr(t testing.TB, ip string) string {
	t.Helper()
	l, err := net.Listen("tcp", ip+":0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Leader returns the member that most members which run take for the leader,
// itself included; it waits until there is one.
func (c *Cluster) Leader() int {
	c.t.Helper()
	leader := -1
	WaitFor(c.t, foundLimit, "a leader", func() bool {
		votes := make([]int, len(c.Nodes))
		for i, n := range c.Nodes {
			if !n.Running() {
				continue
			}
			seen := c.leaderSeenBy(i)
			for j := range c.Nodes {
				if strings.HasPrefix(seen, memberName(j)+"-") {
					votes[j]++
				}
			}
		}
		for i, v := range votes {
			if v > len(c.Nodes)/2 {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

// leaderSeenBy asks a member, who asks the others before it answers and waits for
// those that it can't reach.
func (c *Cluster) leaderSeenBy(i int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	conn, err := client.Dial(c.Nodes[i].Addr())
	if err != nil {
		return ""
	}
	defer conn.Close()
	resp, err := conn.Cluster().ListMembers(ctx, &admitv1.ListMembersRequest{})
	if err != nil {
		return ""
	}
	return resp.GetLeaderId()
}

// Follower returns a member that does not lead, while all is well.
func (c *Cluster) Follower() int { return (c.Leader() + 1) % len(c.Nodes) }

// Dial returns a client that knows where all members tell clients to go, and follows
// the leader. It is closed at the test's end.
func (c *Cluster) Dial(opts ...client.Option) *client.Client {
	c.t.Helper()
	api, err := client.Dial(strings.Join(c.advertised, ","), opts...)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = api.Close() })
	return api
}
