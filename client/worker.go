package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	// pollFor is how long a poll is held open; an idle one costs nothing.
	pollFor = 30 * time.Second
	// pollPause keeps a poll that comes back empty before its time from being
	// repeated at once.
	pollPause = 200 * time.Millisecond
	// maxClaims is the most that one NextDue gives.
	maxClaims = 1000
)

// Claim is a due entry and the permit to work on it.
type Claim struct {
	*Permit
	// Key names the entry within its pool and tenant.
	Key string
	// Category, Route and Group are as scheduled.
	Category, Route, Group string
	// DueAt is when the entry, or this occurrence of it, first came due.
	DueAt time.Time
	// Attempt is which attempt this is, from 1.
	Attempt int
	// CatchUp says that later boundaries of the entry's grid are due as well.
	CatchUp bool
}

// Worker claims due entries of one pool and handles them. Set the exported
// fields, then call Run once.
type Worker struct {
	// Client is the connection. Required.
	Client *Client
	// Pool is whose entries to claim. Required.
	Pool string
	// Handler does the work on one claim; its error is the outcome. It must stop
	// when its context ends: context.Cause says why. Required; called
	// concurrently.
	Handler func(ctx context.Context, c *Claim) error
	// Concurrency is the most claims held at a time. 0 means 1.
	Concurrency int
	// Lanes restricts the worker to these lanes. None means all.
	Lanes []string
	// TTL is how long a claim lives unless renewed, 1 s to 24 h. 0 means the
	// pool's permit_ttl.
	TTL time.Duration
	// ID is shown to operators beside the claims; optional.
	ID string
	// DrainTimeout is how long handlers may go on once Run's context has ended;
	// then theirs end as well, with ErrDrained. 0 means as long as they take.
	DrainTimeout time.Duration
	// Log is told what went wrong. nil means nobody.
	Log *slog.Logger
}

// Run works until ctx ends, then drains: it claims nothing more, gives back as
// NOT_STARTED what it has claimed but not begun, and returns nil when the last
// handler has ended and its claim is released. Before that it returns only with
// an error that asking again can't mend, such as an unknown pool.
func (w *Worker) Run(ctx context.Context) error {
	handlers, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	if w.DrainTimeout > 0 {
		defer context.AfterFunc(ctx, func() {
			if sleep(handlers, w.DrainTimeout) == nil {
				stop(ErrDrained)
			}
		})()
	}
	r := &run{Worker: w, log: w.Log, handlers: handlers, slots: make(chan struct{}, max(w.Concurrency, 1))}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	defer r.working.Wait()
	return r.poll(ctx)
}

// run is one run of a worker.
type run struct {
	*Worker
	log      *slog.Logger
	handlers context.Context
	slots    chan struct{} // one token for each claim asked for or in hand
	working  sync.WaitGroup
}

// poll claims as much as there are free slots, again and again.
func (r *run) poll(ctx context.Context) error {
	for {
		n := r.reserve(ctx)
		if n == 0 {
			return nil
		}
		asked := time.Now()
		claims, err := r.claim(ctx, n)
		for range n - len(claims) {
			<-r.slots
		}
		for _, c := range claims {
			r.working.Go(func() { r.work(ctx, c) })
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !passing(err):
			return err
		case err != nil:
			r.log.Warn("claiming due work failed, trying again", "pool", r.Pool, "error", err)
			_ = sleep(ctx, withJitter(pollPause))
		case len(claims) == 0 && time.Since(asked) < pollFor/2:
			_ = sleep(ctx, withJitter(pollPause))
		}
	}
}

// reserve waits for a free slot and takes as many as are free. It takes none
// when ctx has ended.
func (r *run) reserve(ctx context.Context) (n int) {
	if ctx.Err() != nil {
		return 0
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n = 1; n < maxClaims; n++ {
		select {
		case r.slots <- struct{}{}:
		default:
			return n
		}
	}
	return n
}

// claim asks for up to n claims and waits for the first.
func (r *run) claim(ctx context.Context, n int) ([]*Claim, error) {
	req := &admitv1.NextDueRequest{
		Pool: r.Pool, MaxItems: int32(n), Lanes: r.Lanes, WorkerId: r.ID,
		Ttl: optionalDuration(r.TTL), RequestId: rand.Text(),
		MaxWait: optionalDuration(pollFor),
	}
	claims, err := r.ask(ctx, req)
	if err == nil || ctx.Err() == nil {
		return claims, err
	}
	// The call was given up in mid-flight: what it may have claimed would be
	// held until it expires. The same request_id finds it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	req.MaxWait = nil
	return r.ask(ctx, req)
}

// ask sends one NextDue, again while its outcome is not known.
func (r *run) ask(ctx context.Context, req *admitv1.NextDueRequest) ([]*Claim, error) {
	var (
		resp  *admitv1.NextDueResponse
		asked time.Time
	)
	// A poll that breaks off goes on for what is left of its time.
	until := time.Now().Add(req.GetMaxWait().AsDuration())
	err := r.Client.retryFrom(ctx, until, func(ctx context.Context) (err error) {
		asked = time.Now()
		req.MaxWait = optionalDuration(max(until.Sub(asked), 0))
		resp, err = r.Client.admission.NextDue(ctx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim due work of pool %q: %w", r.Pool, err)
	}
	claims := make([]*Claim, 0, len(resp.GetClaims()))
	for _, c := range resp.GetClaims() {
		claims = append(claims, &Claim{
			Permit: newPermit(c.GetPermit(), asked), Key: c.GetKey(),
			Category: c.GetCategory(), Route: c.GetRoute(), Group: c.GetGroup(),
			DueAt: c.GetDueAt().AsTime(), Attempt: int(c.GetAttempt()), CatchUp: c.GetCatchUp(),
		})
	}
	return claims, nil
}

// work handles one claim and releases it.
func (r *run) work(ctx context.Context, c *Claim) {
	defer func() { <-r.slots }()
	err := error(NotStarted{})
	if ctx.Err() == nil {
		err = r.handle(c)
	}
	if o := releaseOf(err).Outcome; o == admitv1.Outcome_OUTCOME_FAILED || o == admitv1.Outcome_OUTCOME_DEAD {
		r.log.Warn("work failed", "pool", r.Pool, "attempt", c.Attempt, "error", err)
	}
	if err := r.Client.finish(ctx, c.Permit, err); err != nil {
		r.log.Warn("releasing a claim failed", "pool", r.Pool, "attempt", c.Attempt, "error", err)
	}
}

func (r *run) handle(c *Claim) error {
	held, letGo := r.Client.keeper.hold(r.handlers, c.Permit)
	defer letGo()
	return r.Handler(held, c)
}

// passing says whether asking again later may help where a call failed for good.
func passing(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Canceled, codes.Internal, codes.Unknown:
		return true
	default:
		return false
	}
}
