// Package calls is what is asked of admit, and in the same messages of a bare
// echo: with the plain generated clients, as any program would.
package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// The pools of the policy that admit runs with: Wide has room for all, Narrow for
// next to none, and Due is for due work.
const (
	Wide   = "wide"
	Narrow = "narrow"
	Due    = "due"
)

// tenants is how many tenants the callers stand for, dealt out in turn.
const tenants = 100

func tenant(i int) string { return fmt.Sprintf("tenant-%03d", i%tenants) }

// connections is how many the callers share.
const connections = 2

// clients are the connections of an operation.
type clients struct {
	conns []*grpc.ClientConn
	stubs []admitv1.AdmissionServiceClient
}

func dial(addr string) (*clients, error) {
	c := &clients{}
	for range connections {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("dial %s: %w", addr, err), c.Close())
		}
		c.conns = append(c.conns, conn)
		c.stubs = append(c.stubs, admitv1.NewAdmissionServiceClient(conn))
	}
	return c, nil
}

func (c *clients) of(caller int) admitv1.AdmissionServiceClient { return c.stubs[caller%len(c.stubs)] }

func (c *clients) Close() error {
	var all error
	for _, conn := range c.conns {
		all = errors.Join(all, conn.Close())
	}
	return all
}

// Target says where a system takes calls, once it runs.
type Target func() string

// granted returns the permit of an answer. The pools have room, so that it is wrong
// to be shed.
func granted(resp *admitv1.AcquireResponse) (*admitv1.Permit, error) {
	if p := resp.GetDecision().GetPermit(); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("shed where there is room: %v", resp.GetDecision().GetShed())
}

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
	failed := make([]error, len(o.held)+1)
	var all sync.WaitGroup
	for caller, token := range o.held {
		if token == "" {
			continue
		}
		all.Go(func() {
			_, failed[caller] = o.of(caller).Release(context.Background(), &admitv1.ReleaseRequest{Token: token})
		})
	}
	all.Wait()
	failed[len(o.held)] = o.clients.Close()
	return errors.Join(failed...)
}

// Tokens opens callers that take a token of the pool's and of the tenant's bucket,
// and no slot.
func Tokens(at Target) system.Open {
	return func(context.Context, int) (system.Operation, error) {
		c, err := dial(at())
		return &tokens{c}, err
	}
}

type tokens struct{ *clients }

func (o *tokens) Do(ctx context.Context, caller int) (int, error) {
	resp, err := o.of(caller).Acquire(ctx, tokenRequest(caller))
	if err != nil {
		return 0, err
	}
	if _, err := granted(resp); err != nil {
		return 0, err
	}
	return 1, nil
}

func tokenRequest(i int) *admitv1.AcquireRequest {
	return &admitv1.AcquireRequest{Pool: Wide, Tenant: tenant(i), RateOnly: true}
}

// TokenBatches opens callers that take size tokens at a time, each a request.
func TokenBatches(at Target, size int) system.Open {
	return func(context.Context, int) (system.Operation, error) {
		c, err := dial(at())
		o := &tokenBatches{clients: c, req: &admitv1.BatchAcquireRequest{}}
		for i := range size {
			o.req.Requests = append(o.req.Requests, tokenRequest(i))
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
