package client

import (
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/attributes"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

// A client has a connection to each node that it was told of, and to those that
// answers named as the leader. A call goes to the node that was last said to lead;
// any other would do, and has the leader decide, so where that one can't be reached
// the call goes to the next.

const (
	// leaderTrailer is what a node that had the leader answer says of where it is.
	leaderTrailer = "admit-leader"
	// maxHinted is how many addresses may be known from answers alone.
	maxHinted = 8

	scheme = "admit"
	policy = "admit_leader"
)

func init() {
	balancer.Register(base.NewBalancerBuilder(policy, pickers{}, base.Config{}))
}

// cluster are the nodes that a client knows. It is the resolver of its connection,
// and where its pickers look up who leads.
type cluster struct {
	addrs []string
	// ready are those connected at present. A connection says so while mu is held.
	ready atomic.Pointer[map[string]balancer.SubConn]

	mu sync.Mutex
	// hinted are those that answers named beside, the latest last.
	hinted []string
	// leader is the address to prefer, or "".
	leader string
	// turn is where in the list of all to begin while none is preferred.
	turn int
	cc   resolver.ClientConn
}

// clusterOf returns the cluster that an address names, as `host:port` or several
// parted by commas; nil for any other target of gRPC, such as a Unix socket's.
func clusterOf(addr string) *cluster {
	if strings.HasPrefix(addr, "unix:") {
		return nil
	}
	c := &cluster{}
	for a := range strings.SplitSeq(addr, ",") {
		a = strings.TrimSpace(a)
		if _, port, err := net.SplitHostPort(a); err != nil || port == "" || strings.Contains(a, "/") {
			return nil
		}
		c.addrs = append(c.addrs, a)
	}
	return c
}

// options are how to dial the cluster.
func (c *cluster) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithResolvers(c),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + policy + `": {}}]}`),
	}
}

// Scheme implements resolver.Builder.
func (c *cluster) Scheme() string { return scheme }

// OverrideAuthority names the first node: the list is no name of a host.
func (c *cluster) OverrideAuthority(resolver.Target) string { return c.addrs[0] }

// Build implements resolver.Builder.
func (c *cluster) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cc = cc
	return c, c.updateLocked()
}

// ResolveNow implements resolver.Resolver: there is nothing to look up.
func (c *cluster) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements resolver.Resolver.
func (c *cluster) Close() {}

type clusterKey struct{}

// updateLocked tells the connection which nodes there are.
func (c *cluster) updateLocked() error {
	var state resolver.State
	for _, a := range slices.Concat(c.addrs, c.hinted) {
		host, _, _ := net.SplitHostPort(a) // checked when it came in
		state.Addresses = append(state.Addresses, resolver.Address{
			Addr: a, ServerName: host, Attributes: attributes.New(clusterKey{}, c),
		})
	}
	return c.cc.UpdateState(state)
}

// prefer notes that the node at addr leads.
func (c *cluster) prefer(addr string) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = addr
	if slices.Contains(c.addrs, addr) || slices.Contains(c.hinted, addr) {
		return
	}
	c.hinted = append(c.hinted, addr)
	c.hinted = c.hinted[max(0, len(c.hinted)-maxHinted):]
	_ = c.updateLocked() // if it is refused the node is not called, which is all it was for
}

// avoid notes that a call to the node at addr came to nothing: others may know more.
func (c *cluster) avoid(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == addr {
		c.leader = ""
	}
	all := slices.Concat(c.addrs, c.hinted)
	c.turn = (slices.Index(all, addr) + 1) % len(all)
}

// choose returns the address to call of those that are connected.
func (c *cluster) choose(ready map[string]balancer.SubConn) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ready[c.leader] != nil {
		return c.leader
	}
	all := slices.Concat(c.addrs, c.hinted)
	for i := range all {
		if a := all[(c.turn+i)%len(all)]; ready[a] != nil {
			return a
		}
	}
	return ""
}

// next returns the address that the next call goes to, or "".
func (c *cluster) next() string {
	ready := c.ready.Load()
	if ready == nil {
		return ""
	}
	return c.choose(*ready)
}

// pickers makes the picker of the nodes that are connected at a time.
type pickers struct{}

// Build implements base.PickerBuilder.
func (pickers) Build(info base.PickerBuildInfo) balancer.Picker {
	p := &picker{ready: make(map[string]balancer.SubConn, len(info.ReadySCs))}
	for conn, at := range info.ReadySCs {
		p.ready[at.Address.Addr] = conn
		p.cluster, _ = at.Address.Attributes.Value(clusterKey{}).(*cluster)
	}
	if p.cluster == nil {
		return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	p.cluster.ready.Store(&p.ready)
	return p
}

type picker struct {
	cluster *cluster
	ready   map[string]balancer.SubConn
}

// Pick implements balancer.Picker.
func (p *picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	addr := p.cluster.choose(p.ready)
	if addr == "" {
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	}
	if picked, ok := info.Ctx.Value(pickedKey{}).(*atomic.Pointer[string]); ok {
		picked.Store(&addr)
	}
	return balancer.PickResult{SubConn: p.ready[addr], Done: func(end balancer.DoneInfo) { p.cluster.learn(addr, end) }}, nil
}

// learn takes from the end of a call who leads.
func (c *cluster) learn(addr string, end balancer.DoneInfo) {
	if hint := end.Trailer.Get(leaderTrailer); len(hint) == 1 && end.Err == nil {
		c.prefer(hint[0])
		return
	}
	st := status.Convert(end.Err)
	if st.Code() != codes.Unavailable && st.Code() != codes.DeadlineExceeded {
		return
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetReason() == "NOT_LEADER" {
			if leader := info.GetMetadata()["leader_addr"]; leader != "" && leader != addr {
				c.prefer(leader)
				return
			}
		}
	}
	c.avoid(addr)
}
