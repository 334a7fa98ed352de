package calls

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Ledger writes down what the callers of a pool were granted, to compare it with what
// the pool may give.
type Ledger struct {
	began                          time.Time
	asked, granted, held, mostHeld atomic.Int64
}

// NewLedger returns an empty one. The pool was not asked for anything before.
func NewLedger() *Ledger { return &Ledger{began: time.Now()} }

// ShedPart is which part of the requests was shed, releases aside.
func (l *Ledger) ShedPart() float64 { return 1 - float64(l.granted.Load())/float64(l.asked.Load()) }

// Check returns an error if more was granted until now than the bucket gives, or more
// held at once than the cap. What is held is counted from a grant's answer until its
// release is sent, so it is never more than was held in truth.
func (l *Ledger) Check(capacity, perSecond, maxActive int64) error {
	most := capacity + int64(time.Since(l.began).Seconds()*float64(perSecond)) + 1
	var all error
	if got := l.granted.Load(); got > most {
		all = fmt.Errorf("%d were granted, of %d that the bucket gives", got, most)
	}
	if got := l.mostHeld.Load(); got > maxActive {
		all = errors.Join(all, fmt.Errorf("%d were held at once, of %d", got, maxActive))
	}
	return all
}

func (l *Ledger) grant() {
	l.granted.Add(1)
	now := l.held.Add(1)
	for most := l.mostHeld.Load(); now > most && !l.mostHeld.CompareAndSwap(most, now); {
		most = l.mostHeld.Load()
	}
}

// Contended opens callers that ask a pool for more than it has, and give back what they
// are granted. To be shed is an answer like any other.
func Contended(at Target, pool string, ledger *Ledger) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		c, err := dial(at())
		return &contended{permits: permits{clients: c, held: make([]string, callers)}, pool: pool, ledger: ledger}, err
	}
}

type contended struct {
	permits
	pool   string
	ledger *Ledger
}

func (o *contended) Do(ctx context.Context, caller int) (int, error) {
	if token := o.held[caller]; token != "" {
		o.held[caller] = ""
		o.ledger.held.Add(-1)
		_, err := o.of(caller).Release(ctx, &admitv1.ReleaseRequest{Token: token})
		return 1, err
	}
	o.ledger.asked.Add(1)
	resp, err := o.of(caller).Acquire(ctx, &admitv1.AcquireRequest{Pool: o.pool, Tenant: tenant(caller)})
	if err != nil {
		return 0, err
	}
	if p := resp.GetDecision().GetPermit(); p != nil {
		o.ledger.grant()
		o.held[caller] = p.GetToken()
	}
	return 1, nil
}

// Close gives back what is held.
func (o *contended) Close() error {
	for _, token := range o.held {
		if token != "" {
			o.ledger.held.Add(-1)
		}
	}
	return o.permits.Close()
}
