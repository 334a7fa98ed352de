package sidecar

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	// giveBackWithin bounds one try to give permits back, giveBackAgain the pause before
	// the next.
	giveBackWithin = 5 * time.Second
	giveBackAgain  = time.Second
)

// keeper renews what workers hold, and gives back what they left. A goroutine does the
// one, another the other, each for many permits with one call.
type keeper struct {
	client  *client.Client
	table   *table
	metrics *metrics
	log     *slog.Logger
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func newKeeper(c *client.Client, t *table, m *metrics, log *slog.Logger) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	return &keeper{client: c, table: t, metrics: m, log: log, ctx: ctx, stop: stop}
}

func (k *keeper) start() {
	k.running.Go(func() { k.follow(&k.table.renewals, true, k.renew) })
	k.running.Go(func() { k.follow(&k.table.ends, false, k.end) })
}

// close ends the renewing, and gives back what is left of workers that had gone.
func (k *keeper) close(ctx context.Context) {
	k.stop()
	k.running.Wait()
	for {
		left := k.table.orphans(maxItems)
		if len(left) == 0 {
			return
		}
		if !k.giveBack(ctx, left) {
			k.log.Warn("what gone workers held is left to expire", "permits", len(left))
			return
		}
	}
}

// follow does what an agenda says until the keeper is closed.
func (k *keeper) follow(a *agenda[*hold], ahead bool, act func(batch []*hold)) {
	for k.ctx.Err() == nil {
		k.table.mu.Lock()
		batch, wait := holdsDue(a, time.Now(), maxItems, ahead)
		k.table.mu.Unlock()
		if len(batch) > 0 {
			act(batch)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-a.wake:
		case <-k.ctx.Done():
		}
		timer.Stop()
	}
}

// renew extends permits, those aside that have lived for long enough.
func (k *keeper) renew(batch []*hold) {
	tokens, shortest := k.table.toRenew(&batch)
	if len(batch) == 0 {
		return
	}
	asked := time.Now()
	ctx, cancel := context.WithTimeout(k.ctx, shortest/5)
	defer cancel()
	resp, err := k.client.Permits().Renew(ctx, &admitv1.RenewRequest{Tokens: tokens})
	if err != nil && k.ctx.Err() == nil {
		k.log.Debug("renewing permits failed, trying again", "permits", len(batch), "error", err)
	}
	for i, h := range batch {
		var r *admitv1.RenewResult
		if err == nil && i < len(resp.GetResults()) {
			r = resp.GetResults()[i]
		}
		k.metrics.renewals.WithLabelValues(k.table.settle(h, r, asked)).Inc()
	}
}

// end gives back what was left, and forgets what has expired.
func (k *keeper) end(batch []*hold) {
	if left := k.table.toGiveBack(batch); len(left) > 0 {
		k.giveBack(k.ctx, left)
	}
}

// giveBack releases permits. It says whether that was answered; if not they come up
// again.
func (k *keeper) giveBack(ctx context.Context, left []*hold) bool {
	req := k.table.releases(left)
	ctx, cancel := context.WithTimeout(ctx, giveBackWithin)
	defer cancel()
	resp, err := k.client.Admission().BatchRelease(ctx, req)
	if err != nil && k.ctx.Err() == nil {
		k.log.Debug("giving back what gone workers held failed, trying again", "permits", len(left), "error", err)
	}
	for i, h := range left {
		result := "failed"
		if err == nil && i < len(resp.GetResults()) {
			result = resultOf(resp.GetResults()[i])
		}
		outcome := outcomeName(req.GetRequests()[i].GetOutcome())
		k.metrics.returns.WithLabelValues(outcome, result).Inc()
		k.table.returned(h, err == nil)
	}
	return err == nil
}
