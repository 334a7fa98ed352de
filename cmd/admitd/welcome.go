package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/node"
)

// welcome says where the node is and what to try next, in commands that work on
// its policy.
func welcome(n *node.Node, cfg config.Config) string {
	var b strings.Builder
	p, revision := n.Policy()
	fmt.Fprintf(&b, "\nadmitd is ready: gRPC on %s, metrics on http://%s/metrics\n", n.GRPCAddr(), n.HTTPAddr())
	fmt.Fprintf(&b, "data in %s, policy revision %d. Try next:\n\n", cfg.Data, revision)
	ctl := admitctl(n.GRPCAddr())
	if len(p.Pools) == 0 {
		fmt.Fprintf(&b, "  %s policy apply FILE\n\n", ctl)
		return b.String()
	}
	pool := p.Pools[0].Name
	fmt.Fprintf(&b, "  %s acquire %s --tenant acme\n", ctl, pool)
	fmt.Fprintf(&b, "  %s health %s\n", ctl, pool)
	fmt.Fprintf(&b, "  grpcurl -plaintext -d '{\"pool\":%q,\"tenant\":\"acme\"}' %s admit.v1.AdmissionService/Acquire\n\n", pool, n.GRPCAddr())
	return b.String()
}

// admitctl is how to call it from where this process was started.
func admitctl(addr string) string {
	cmd := "admitctl"
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		cmd = "go run ./cmd/admitctl" // as this process was
	}
	if addr != config.DefaultConfig().GRPCAddr {
		cmd += " --addr " + addr
	}
	return cmd
}
