package node

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
)

// reloadInterval is how often a node looks for other certificates and tokens.
const reloadInterval = 5 * time.Second

// followFiles reads the files of certificates and tokens anew whenever they are others,
// until the node stops. New connections and calls go by what they say then.
func (n *Node) followFiles(context.Context) error {
	n.watch("certificates", func() error {
		ticker := time.NewTicker(reloadInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				n.followOnce()
			case <-n.stopping:
				return nil
			}
		}
	})
	return nil
}

// followOnce reads the files if they are others. Files that are bad change nothing: the
// node goes on with what it has, and says so once.
func (n *Node) followOnce() {
	// What changes after this look is found by the next one.
	found := securityFiles(n.cfg)
	if sameFiles(n.security.seen, found) {
		return
	}
	n.security.seen = found
	if err := n.security.reload(); err != nil {
		n.log.Error("certificates or tokens were replaced by bad ones; those from before go on", "error", err)
		return
	}
	n.log.Info("read certificates and tokens anew")
}

// reload takes what the files say from now on, if all of it is good. A member stays who
// it is: its id has the name in its certificate.
func (s *security) reload() error {
	next, err := loadProtection(s.cfg)
	if err != nil {
		return err
	}
	if next.peers != nil {
		was, _ := certs.NodeName(s.peerTLS().Certificates[0].Leaf)
		is, _ := certs.NodeName(next.peers.Certificates[0].Leaf)
		if was != is {
			return fmt.Errorf("peer_cert: it is that of %s, and this node is %s", is, was)
		}
	}
	s.now.Store(next)
	return nil
}

// securityFiles looks at the files that protect a node, through links, as those are by
// which mounted secrets change. nil stands for one that is not there.
func securityFiles(cfg config.Config) []os.FileInfo {
	var all []os.FileInfo
	for _, name := range []string{cfg.PeerCA, cfg.PeerCert, cfg.PeerKey, cfg.TLSCert, cfg.TLSKey, cfg.TLSClientCA, cfg.TokensFile} {
		info, _ := os.Stat(name) // why it can't be read is told when it is read
		all = append(all, info)
	}
	return all
}

func sameFiles(a, b []os.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == b
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	})
}
