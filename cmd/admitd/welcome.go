package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/node"
)

// welcome says where the node is and what to try next, in commands that work on
// its policy.
func welcome(ctx context.Context, n *node.Node, cfg config.Config) string {
	var b strings.Builder
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	p, revision := n.Policy()
	fmt.Fprintf(&b, "\nadmitd is ready: gRPC on %s, metrics on %s://%s/metrics\n", n.GRPCAddr(), scheme, n.HTTPAddr())
	if cfg.Clustered() {
		b.WriteString(standing(ctx, n))
	}
	fmt.Fprintf(&b, "data in %s, policy revision %d. Try next%s:\n\n", cfg.Data, revision, credentials(cfg))
	ctl := admitctl(n.GRPCAddr())
	if cfg.Clustered() {
		fmt.Fprintf(&b, "  %s cluster status\n", ctl)
	}
	if len(p.Pools) == 0 {
		fmt.Fprintf(&b, "  %s policy apply FILE\n\n", ctl)
		return b.String()
	}
	pool := p.Pools[0].Name
	fmt.Fprintf(&b, "  %s acquire %s --tenant acme\n", ctl, pool)
	fmt.Fprintf(&b, "  %s health %s\n", ctl, pool)
	fmt.Fprintf(&b, "  %s explain %s --tenant acme\n", ctl, pool)
	fmt.Fprintf(&b, "  %s shed %s\n", ctl, pool)
	fmt.Fprintf(&b, "  %s top %s --once\n", ctl, pool)
	if cfg.TLSCert == "" {
		fmt.Fprintf(&b, "  grpcurl -plaintext -d '{\"pool\":%q,\"tenant\":\"acme\"}' %s admit.v1.AdmissionService/Acquire\n", pool, n.GRPCAddr())
	}
	fmt.Fprintf(&b, "\nWho is held, why, and what frees it: %s://%s/\n\n", scheme, n.HTTPAddr())
	return b.String()
}

// standing says what the node is in its cluster.
func standing(ctx context.Context, n *node.Node) string {
	members, err := n.Members(ctx)
	if err != nil {
		return fmt.Sprintf("member %s of a cluster\n", n.NodeID())
	}
	leader := "nobody"
	for _, m := range members {
		if m.Leader {
			leader = m.NodeID
		}
	}
	return fmt.Sprintf("member %s of a cluster of %d, led by %s\n", n.NodeID(), len(members), leader)
}

// credentials says what the commands need beside what is shown.
func credentials(cfg config.Config) string {
	switch {
	case cfg.TLSCert == "":
		return ""
	case cfg.TokensFile != "":
		return ", with --ca-cert and --token-file"
	case cfg.TLSClientCA != "":
		return ", with --ca-cert, --cert and --cert-key"
	}
	return ", with --ca-cert"
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
