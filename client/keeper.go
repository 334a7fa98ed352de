package client

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// maxRenew is the most tokens that one Renew takes.
const maxRenew = 1000

// keeper renews the permits that are held. One goroutine, started with the
// client and ended by close, does so for all of them, many in one call.
type keeper struct {
	permits PermitCalls
	stop    context.CancelFunc
	done    chan struct{}
	changed chan struct{} // a token, when a lease was added

	mu     sync.Mutex
	leases map[*lease]struct{}
}

// lease is a held permit. keeper.mu guards it.
type lease struct {
	token   string
	ttl     time.Duration
	renewAt time.Time
	expiry  *time.Timer // cancels at the time by which the holder must stop
	cancel  context.CancelCauseFunc
}

func newKeeper(p PermitCalls) *keeper {
	ctx, stop := context.WithCancel(context.Background())
	k := &keeper{
		permits: p, stop: stop,
		done:    make(chan struct{}),
		changed: make(chan struct{}, 1),
		leases:  make(map[*lease]struct{}),
	}
	go k.run(ctx)
	return k
}

// close ends the renewing and waits for it.
func (k *keeper) close() {
	k.stop()
	<-k.done
}

// hold renews p until letGo is called. The context ends with the permit, with
// ErrPermitLost or ErrCancelled as its cause.
func (k *keeper) hold(ctx context.Context, p *Permit) (held context.Context, letGo func()) {
	held, cancel := context.WithCancelCause(ctx)
	l := &lease{token: p.Token, ttl: p.TTL, renewAt: p.Asked.Add(p.TTL / 3), cancel: cancel}
	k.mu.Lock()
	l.expiry = time.AfterFunc(time.Until(p.StopBy()), func() { cancel(ErrPermitLost) })
	k.leases[l] = struct{}{}
	k.mu.Unlock()
	select {
	case k.changed <- struct{}{}:
	default:
	}
	return held, func() {
		k.mu.Lock()
		k.forgetLocked(l)
		k.mu.Unlock()
		cancel(nil)
	}
}

func (k *keeper) forgetLocked(l *lease) {
	l.expiry.Stop()
	delete(k.leases, l)
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	for {
		batch, wait := k.due(time.Now())
		if len(batch) > 0 {
			k.renew(ctx, batch)
			if ctx.Err() == nil {
				continue
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.changed:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// due returns the leases to renew at now, or how long there is none. Those that
// would follow within a tenth of their time are taken along.
func (k *keeper) due(now time.Time) (batch []*lease, wait time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wait = time.Hour
	var soon []*lease
	for l := range k.leases {
		left := l.renewAt.Sub(now)
		switch {
		case left <= 0:
			batch = append(batch, l)
		case left <= l.ttl/10:
			soon = append(soon, l)
		}
		wait = min(wait, left)
	}
	if len(batch) > 0 {
		batch = append(batch, soon...)
	}
	return batch[:min(len(batch), maxRenew)], wait
}

// renew sends one Renew. If that fails each lease is tried again a little later,
// until its holder has to stop.
func (k *keeper) renew(ctx context.Context, batch []*lease) {
	req := &admitv1.RenewRequest{Tokens: make([]string, len(batch))}
	shortest := time.Hour
	k.mu.Lock()
	for i, l := range batch {
		req.Tokens[i] = l.token
		shortest = min(shortest, l.ttl)
	}
	k.mu.Unlock()

	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, shortest/5)
	defer cancel()
	resp, err := k.permits.Renew(ctx, req)

	k.mu.Lock()
	defer k.mu.Unlock()
	for i, l := range batch {
		switch {
		case err != nil || i >= len(resp.GetResults()):
			pause := l.ttl / 20
			l.renewAt = time.Now().Add(pause/2 + rand.N(pause/2+1))
		default:
			k.settleLocked(l, resp.GetResults()[i], asked)
		}
	}
}

// settleLocked takes in what became of one lease.
func (k *keeper) settleLocked(l *lease, r *admitv1.RenewResult, asked time.Time) {
	if _, held := k.leases[l]; !held {
		return // let go while the Renew was on its way
	}
	switch r.GetResult() {
	case admitv1.LeaseResult_LEASE_RESULT_RENEWED:
		l.ttl = r.GetExpiresIn().AsDuration()
		l.renewAt = asked.Add(l.ttl / 3)
		l.expiry.Reset(time.Until(stopBy(asked, l.ttl)))
	case admitv1.LeaseResult_LEASE_RESULT_CANCELLED:
		k.forgetLocked(l)
		l.cancel(ErrCancelled)
	default:
		k.forgetLocked(l)
		l.cancel(ErrPermitLost)
	}
}
