package node

import (
	"context"

	"github.com/admitd/admit/internal/buildinfo"
	"github.com/admitd/admit/internal/tracing"
)

// sendTraces makes what traces calls, where that is wanted. It ends after the server, so
// that what calls did last is sent, too.
func (n *Node) sendTraces(context.Context) (err error) {
	metrics := tracing.NewMetrics()
	n.reg.MustRegister(metrics.Collector())
	if n.cfg.TracesEndpoint == "" {
		return nil
	}
	n.traces, err = tracing.New(tracing.Options{
		Endpoint: n.cfg.TracesEndpoint, Ratio: n.cfg.TracesRatio, NodeID: n.store.NodeID(), Version: buildinfo.String(),
	}, n.log, metrics)
	if err != nil {
		return err
	}
	n.onStop(func(ctx context.Context) {
		if err := n.traces.Close(ctx); err != nil {
			n.log.Warn("some traces were lost", "error", err)
		}
	})
	return nil
}
