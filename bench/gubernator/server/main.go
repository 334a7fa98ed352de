// Command server is a gubernator node that is told who the others are: those of one
// machine can't find each other by gossip, which takes the machine's name for the
// node's. The rest of its settings come from the environment, as gubernator's own
// command has them; its arguments are the addresses of all nodes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	conf, err := gubernator.SetupDaemonConfig(logrus.StandardLogger(), nil)
	if err != nil {
		logrus.Fatal(err)
	}
	daemon, err := gubernator.SpawnDaemon(ctx, conf)
	if err != nil {
		logrus.Fatal(err)
	}
	var peers []gubernator.PeerInfo
	for _, addr := range os.Args[1:] {
		peers = append(peers, gubernator.PeerInfo{GRPCAddress: addr})
	}
	daemon.SetPeers(peers)
	<-ctx.Done()
	daemon.Close()
}
