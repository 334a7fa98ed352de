package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tokens"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// freeAddrs are addresses that stay free until they are used: members have to know
// one another's before they start. Each has a host of its own, from which nobody
// dials until then, so that no connection takes the port.
func freeAddrs(t *testing.T, n int) []string {
	t.Helper()
	addrs := make([]string, n)
	for i := range addrs {
		pid := os.Getpid()
		l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 43+i, pid>>8&0xff, pid&0xff))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addrs[i] = l.Addr().String()
	}
	return addrs
}

// trio is the settings of three nodes that found a cluster.
type trio struct {
	kit
	cfgs []config.Config
}

func newTrio(t *testing.T) trio {
	t.Helper()
	k := kit{dir: t.TempDir(), token: tokens.New()}
	var subjects []certs.Subject
	for i := range 3 {
		subjects = append(subjects, certs.Subject{Name: fmt.Sprintf("node-%d", i+1)})
	}
	if _, err := certs.Init(k.dir, subjects, time.Now()); err != nil {
		t.Fatal(err)
	}
	write(t, k.file("tokens"), tokens.Line("worker", k.token))
	addrs := freeAddrs(t, 3)
	cluster := trio{kit: k}
	for i, s := range subjects {
		cfg := testConfig(t)
		cfg.PeerAddr, cfg.Join, cfg.BootstrapExpect = addrs[i], addrs, 3
		cfg.PeerCA, cfg.PeerCert, cfg.PeerKey = k.file("ca.crt"), k.file(s.Name+".crt"), k.file(s.Name+".key")
		cfg.TLSCert, cfg.TLSKey, cfg.TokensFile = cfg.PeerCert, cfg.PeerKey, k.file("tokens")
		cfg.Data = filepath.Join(t.TempDir(), s.Name)
		cluster.cfgs = append(cluster.cfgs, cfg)
	}
	return cluster
}

// start starts all nodes at once: none is ready before the others are there.
func (c trio) start(t *testing.T) []*Node {
	t.Helper()
	nodes, errs := make([]*Node, len(c.cfgs)), make([]error, len(c.cfgs))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var starting sync.WaitGroup
	for i, cfg := range c.cfgs {
		starting.Go(func() { nodes[i], errs[i] = Start(ctx, cfg, slog.New(slog.DiscardHandler)) })
	}
	starting.Wait()
	for i, n := range nodes {
		if n != nil {
			t.Cleanup(n.Stop)
		}
		if errs[i] != nil {
			t.Error(errs[i])
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return nodes
}

func leaderOf(nodes []*Node) int {
	for i, n := range nodes {
		if n.leads() {
			return i
		}
	}
	return -1
}

// Any of three nodes is ready, has the policy, shows the same members and takes
// calls, over its own certificate and for the cluster's callers alone.
func TestThreeNodesAreOneCluster(t *testing.T) {
	c := newTrio(t)
	nodes := c.start(t)
	tokens := map[string]bool{}
	for i, n := range nodes {
		conn := dialWith(t, n, credentials.NewTLS(c.caller(t, "")))
		ctx := bearing(soon(t), c.token)
		if got, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("node %d: health is %v, %v", i, got, err)
		}
		if got := fetchMetrics(t, n, c.caller(t, ""), c.token); got != http.StatusOK {
			t.Errorf("node %d: the metrics answer %d", i, got)
		}
		resp, err := admitv1.NewClusterServiceClient(conn).ListMembers(ctx, &admitv1.ListMembersRequest{})
		if err != nil || len(resp.GetMembers()) != 3 || resp.GetLeaderId() == "" || resp.GetNodeId() != n.NodeID() {
			t.Errorf("node %d sees %v, %v", i, resp, err)
		}
		granted, err := admitv1.NewAdmissionServiceClient(conn).Acquire(ctx, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"})
		token := granted.GetDecision().GetPermit().GetToken()
		if err != nil || token == "" || tokens[token] {
			t.Errorf("node %d answers %v, %v", i, granted, err)
		}
		tokens[token] = true
	}
}

// A leader that stops hands its lead over first: the others need no election, and
// go on with what was decided.
func TestALeaderThatStopsHandsItsLeadOver(t *testing.T) {
	c := newTrio(t)
	for i := range c.cfgs {
		c.cfgs[i].ElectionTimeout = 4 * time.Second
	}
	nodes := c.start(t)
	first := leaderOf(nodes)
	if first < 0 {
		t.Fatal("nobody leads")
	}
	nodes[first].Stop()
	rest := append(nodes[:first:first], nodes[first+1:]...)
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; leaderOf(rest) < 0; <-tick.C {
		if time.Since(began) > 3*time.Second { // less than any election takes
			t.Fatal("nobody took over")
		}
	}
}
