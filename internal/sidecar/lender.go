package sidecar

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

const (
	// lenders is how many shares are leased at a time, leaseWithin bounds each.
	lenders     = 16
	leaseWithin = 3 * time.Second
)

// lender leases what the book wants, and gives back what it has ended with: each of so
// many goroutines one share at a time, another the returns, many with one call.
type lender struct {
	admission admitv1.AdmissionServiceClient
	shares    admitv1alpha1.ShareServiceClient
	node      *admitv1.NodeShare
	book      *shareBook
	metrics   *metrics
	log       *slog.Logger
	ctx       context.Context
	stop      context.CancelFunc
	running   sync.WaitGroup
}

func newLender(c *client.Client, node *admitv1.NodeShare, b *shareBook, m *metrics, log *slog.Logger) *lender {
	ctx, stop := context.WithCancel(context.Background())
	return &lender{
		admission: c.Admission(), shares: admitv1alpha1.NewShareServiceClient(c.Conn()), node: node,
		book: b, metrics: m, log: log, ctx: ctx, stop: stop,
	}
}

func (l *lender) start() {
	for range lenders {
		l.running.Go(func() {
			for {
				select {
				case a := <-l.book.toLease:
					l.lease(a)
				case <-l.ctx.Done():
					return
				}
			}
		})
	}
	l.running.Go(l.giveBack)
}

// lease asks the cluster for tokens. It is not sent again: what a lost answer gave counts
// as spent.
func (l *lender) lease(a *account) {
	req := &admitv1alpha1.LeaseShareRequest{
		Pool: a.key.pool, Tenant: a.key.tenant, Category: a.key.category, Tokens: l.book.wanted(a), Node: l.node,
	}
	ctx, cancel := context.WithTimeout(l.ctx, leaseWithin)
	defer cancel()
	asked := l.book.now()
	resp, err := l.shares.LeaseShare(ctx, req)
	if err != nil && l.ctx.Err() == nil {
		l.log.Debug("leasing a share failed", "pool", req.GetPool(), "error", err)
	}
	l.metrics.leases.WithLabelValues(l.book.leased(a, asked, resp, err)).Inc()
}

// giveBack gives back what has ended until the lender is closed.
func (l *lender) giveBack() {
	for l.ctx.Err() == nil {
		wait := l.book.due()
		batch := l.book.toReturn(maxItems)
		switch {
		case len(batch) > 0 && l.release(l.ctx, batch):
			continue
		case len(batch) > 0:
			l.book.notReturned(batch)
			l.pause(giveBackAgain, nil)
		default:
			l.pause(wait, l.book.agenda.wake)
		}
	}
}

// pause waits for a time, or less where it is woken or the lender closed.
func (l *lender) pause(wait time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-l.ctx.Done():
	}
}

// release gives back shares. It says whether that was answered.
func (l *lender) release(ctx context.Context, batch []*share) bool {
	req := &admitv1.BatchReleaseRequest{}
	for _, s := range batch {
		req.Requests = append(req.Requests, &admitv1.ReleaseRequest{Token: s.token, ActualCost: &s.spent})
	}
	ctx, cancel := context.WithTimeout(ctx, giveBackWithin)
	defer cancel()
	resp, err := l.admission.BatchRelease(ctx, req)
	if err != nil && l.ctx.Err() == nil {
		l.log.Debug("giving back shares failed, trying again", "shares", len(batch), "error", err)
	}
	for i, s := range batch {
		result := "failed"
		if err == nil && i < len(resp.GetResults()) {
			result = resultOf(resp.GetResults()[i])
		}
		l.metrics.shareReturns.WithLabelValues(s.cause, result).Inc()
	}
	return err == nil
}

// close ends the leasing, and gives back all that is held.
func (l *lender) close(ctx context.Context) {
	l.stop()
	l.running.Wait()
	l.book.close()
	for {
		left := l.book.toReturn(maxItems)
		if len(left) == 0 {
			return
		}
		if !l.release(ctx, left) {
			l.log.Warn("what is held of shares is left to expire as spent", "shares", len(left))
			return
		}
	}
}
