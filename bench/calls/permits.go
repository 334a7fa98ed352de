package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Permits opens callers that take a permit and give it back, each a request.
func Permits(at Target) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		c, err := dial(at())
		return &permits{clients: c, held: make([]string, callers)}, err
	}
}

type permits struct {
	*clients
	held []string // each caller's token
}

func (o *permits) Do(ctx context.Context, caller int) (int, error) {
	if token := o.held[caller]; token != "" {
		o.held[caller] = ""
		_, err := o.of(caller).Release(ctx, &admitv1.ReleaseRequest{Token: token})
		return 1, err
	}
	resp, err := o.of(caller).Acquire(ctx, &admitv1.AcquireRequest{Pool: Wide, Tenant: tenant(caller)})
	if err != nil {
		return 0, err
	}
	p, err := granted(resp)
	if err != nil {
		return 0, err
	}
	o.held[caller] = p.GetToken()
	return 1, nil
}

// Close gives back what is held, so that the next round finds all free.
func (o *permits) Close() error {
	return errors.Join(o.giveBack(context.Background(), o.held), o.clients.Close())
}

// PermitBatches opens callers that take size permits with one call and give them back
// with the next.
func PermitBatches(at Target, size int) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		c, err := dial(at())
		o := &permitBatches{clients: c, req: &admitv1.BatchAcquireRequest{}, held: make([][]string, callers)}
		for i := range size {
			o.req.Requests = append(o.req.Requests, &admitv1.AcquireRequest{Pool: Wide, Tenant: tenant(i)})
		}
		return o, err
	}
}

type permitBatches struct {
	*clients
	req  *admitv1.BatchAcquireRequest // the same for all: it is only read
	held [][]string                   // each caller's tokens
}

func (o *permitBatches) Do(ctx context.Context, caller int) (int, error) {
	if tokens := o.held[caller]; len(tokens) > 0 {
		o.held[caller] = nil
		return len(tokens), giveBack(ctx, o.of(caller), tokens)
	}
	resp, err := o.of(caller).BatchAcquire(ctx, o.req)
	if err != nil {
		return 0, err
	}
	for _, r := range resp.GetResults() {
		p, err := granted(r.GetResponse())
		if err != nil {
			return 0, err
		}
		o.held[caller] = append(o.held[caller], p.GetToken())
	}
	return len(resp.GetResults()), nil
}

// Close gives back what is held.
func (o *permitBatches) Close() error {
	err := o.giveBack(context.Background(), slices.Concat(o.held...))
	return errors.Join(err, o.clients.Close())
}

// mostInCall is how much a call takes at most, of whatever it is.
const mostInCall = 1000

// giveBack releases permits, however many; an empty token is none.
func (c *clients) giveBack(ctx context.Context, tokens []string) error {
	held := slices.DeleteFunc(slices.Clone(tokens), func(token string) bool { return token == "" })
	for some := range slices.Chunk(held, mostInCall) {
		if err := giveBack(ctx, c.stubs[0], some); err != nil {
			return err
		}
	}
	return nil
}

func giveBack(ctx context.Context, api admitv1.AdmissionServiceClient, tokens []string) error {
	req := &admitv1.BatchReleaseRequest{}
	for _, token := range tokens {
		req.Requests = append(req.Requests, &admitv1.ReleaseRequest{Token: token})
	}
	resp, err := api.BatchRelease(ctx, req)
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	for _, r := range resp.GetResults() {
		if got := r.GetResponse().GetResult(); got != admitv1.LeaseResult_LEASE_RESULT_RELEASED {
			return fmt.Errorf("a permit that is held was not released: %v", r)
		}
	}
	return nil
}
