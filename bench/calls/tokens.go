package calls

import (
	"context"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Tokens opens callers that take a token of the pool's and of the tenant's bucket,
// and no slot.
func Tokens(at Target) system.Open { return tokensOf(at, Wide) }

// LentTokens opens callers that do so in the pool whose tokens sidecars may hold.
func LentTokens(at Target) system.Open { return tokensOf(at, Lent) }

func tokensOf(at Target, pool string) system.Open {
	return func(context.Context, int) (system.Operation, error) {
		c, err := dial(at())
		return &tokens{c, pool}, err
	}
}

type tokens struct {
	*clients
	pool string
}

func (o *tokens) Do(ctx context.Context, caller int) (int, error) {
	resp, err := o.of(caller).Acquire(ctx, tokenRequest(o.pool, caller))
	if err != nil {
		return 0, err
	}
	if _, err := granted(resp); err != nil {
		return 0, err
	}
	return 1, nil
}

func tokenRequest(pool string, i int) *admitv1.AcquireRequest {
	return &admitv1.AcquireRequest{Pool: pool, Tenant: tenant(i), RateOnly: true}
}

// TokenBatches opens callers that take size tokens at a time, each a request.
func TokenBatches(at Target, size int) system.Open { return tokenBatchesOf(at, Wide, size) }

// LentTokenBatches opens callers that do so where sidecars may hold the tokens.
func LentTokenBatches(at Target, size int) system.Open { return tokenBatchesOf(at, Lent, size) }

func tokenBatchesOf(at Target, pool string, size int) system.Open {
	return func(context.Context, int) (system.Operation, error) {
		c, err := dial(at())
		o := &tokenBatches{clients: c, req: &admitv1.BatchAcquireRequest{}}
		for i := range size {
			o.req.Requests = append(o.req.Requests, tokenRequest(pool, i))
		}
		return o, err
	}
}

type tokenBatches struct {
	*clients
	req *admitv1.BatchAcquireRequest // the same for all: it is only read
}

func (o *tokenBatches) Do(ctx context.Context, caller int) (int, error) {
	resp, err := o.of(caller).BatchAcquire(ctx, o.req)
	if err != nil {
		return 0, err
	}
	for _, r := range resp.GetResults() {
		if _, err := granted(r.GetResponse()); err != nil {
			return 0, err
		}
	}
	return len(resp.GetResults()), nil
}
