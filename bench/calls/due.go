package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Backlog is due entries, of which some are claimed and more are scheduled.
type Backlog struct {
	at      Target
	pool    string
	tenants int
	// scheduled is how many there were ever, queued how many are not claimed.
	scheduled, queued int64
	// claimed are the tokens of those that are.
	claimed []string
}

// NewBacklog returns an empty one of so many tenants.
func NewBacklog(at Target, pool string, tenants int) *Backlog {
	return &Backlog{at: at, pool: pool, tenants: tenants}
}

// Queued is how many entries are not claimed.
func (b *Backlog) Queued() int64 { return b.queued }

// IDBytes is how long the tenants' and keys' names of those are, together.
func (b *Backlog) IDBytes() int64 {
	e := b.entry(b.scheduled)
	return b.queued * int64(len(e.GetTenant())+len(e.GetKey()))
}

// entry is the one of that number.
func (b *Backlog) entry(i int64) *admitv1.EntrySpec {
	return &admitv1.EntrySpec{Tenant: fmt.Sprintf("tenant-%06d", i%int64(b.tenants)), Key: fmt.Sprintf("entry-%09d", i)}
}

// schedulers is how many callers fill a backlog.
const schedulers = 4

// Fill has so many entries due and unclaimed: those that are claimed are done, and
// others come.
func (b *Backlog) Fill(entries int) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := dial(b.at())
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.giveBack(ctx, b.claimed); err != nil {
			return err
		}
		b.claimed = nil
		return b.Schedule(ctx, int64(entries)-b.queued)
	}
}

// Schedule makes so many entries that are due at once.
func (b *Backlog) Schedule(ctx context.Context, entries int64) error {
	conn, err := system.Dial(b.at(), grpc.WithDefaultServiceConfig(againWithoutLeader))
	if err != nil {
		return err
	}
	defer conn.Close()
	api := admitv1.NewDueWorkServiceClient(conn)
	var next atomic.Int64
	next.Store(b.scheduled)
	end := b.scheduled + entries
	failed := make([]error, schedulers)
	var all sync.WaitGroup
	for i := range schedulers {
		all.Go(func() {
			for failed[i] == nil {
				from := next.Add(mostInCall) - mostInCall
				if from >= end {
					return
				}
				failed[i] = b.schedule(ctx, api, from, min(from+mostInCall, end))
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	b.scheduled, b.queued = end, b.queued+entries
	return nil
}

func (b *Backlog) schedule(ctx context.Context, api admitv1.DueWorkServiceClient, from, to int64) error {
	req := &admitv1.ScheduleRequest{Pool: b.pool}
	for i := from; i < to; i++ {
		req.Entries = append(req.Entries, b.entry(i))
	}
	resp, err := api.Schedule(ctx, req)
	if err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	for _, r := range resp.GetResults() {
		switch r.GetStatus() {
		case admitv1.ScheduleResult_STATUS_SCHEDULED, admitv1.ScheduleResult_STATUS_UNCHANGED:
		default:
			return fmt.Errorf("an entry was not scheduled: %v", r)
		}
	}
	return nil
}

// againWithoutLeader has gRPC send a call again that finds no leader: over ten seconds
// or so, longer than it takes to elect one. To schedule the same entries twice is
// harmless.
const againWithoutLeader = `{"methodConfig": [{
	"name": [{"service": "admit.v1.DueWorkService", "method": "Schedule"}],
	"retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "2s", "maxBackoff": "4s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["UNAVAILABLE"]
	}
}]}`

// Claims opens callers that claim up to n entries at a time, each a request.
func (b *Backlog) Claims(n int32) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		c, err := dial(b.at())
		return &claims{clients: c, backlog: b, n: n, claimed: make([][]string, callers)}, err
	}
}

type claims struct {
	*clients
	backlog *Backlog
	n       int32
	claimed [][]string // each caller's tokens
}

func (o *claims) Do(ctx context.Context, caller int) (int, error) {
	resp, err := o.of(caller).NextDue(ctx, &admitv1.NextDueRequest{Pool: o.backlog.pool, MaxItems: o.n})
	if err != nil {
		return 0, err
	}
	for _, c := range resp.GetClaims() {
		o.claimed[caller] = append(o.claimed[caller], c.GetPermit().GetToken())
	}
	if len(resp.GetClaims()) == 0 {
		return 0, system.ErrDrained
	}
	return len(resp.GetClaims()), nil
}

// Close tells the backlog what is claimed.
func (o *claims) Close() error {
	for _, tokens := range o.claimed {
		o.backlog.claimed = append(o.backlog.claimed, tokens...)
		o.backlog.queued -= int64(len(tokens))
	}
	return o.clients.Close()
}
