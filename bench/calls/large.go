package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Large is what callers do seldom and many at once.
type Large struct {
	at Target
	// puts is how often the tenants were put: each time with another weight, since the
	// same once more would change nothing.
	puts int64
}

// NewLarge returns what happens to a system.
func NewLarge(at Target) *Large { return &Large{at: at} }

// Wait has so many requests wait in line for the one permit of the pool Full, each for
// as long as that.
func (l *Large) Wait(ctx context.Context, requests int, each time.Duration) error {
	c, err := dial(l.at())
	if err != nil {
		return err
	}
	defer c.Close()
	failed := make([]error, requests/mostInCall)
	var all sync.WaitGroup
	for i := range failed {
		all.Go(func() { _, failed[i] = c.of(i).BatchAcquire(ctx, many(Full, durationpb.New(each))) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// many asks for as many permits as a call can, of a hundred tenants.
func many(pool string, wait *durationpb.Duration) *admitv1.BatchAcquireRequest {
	req := &admitv1.BatchAcquireRequest{}
	for i := range mostInCall {
		req.Requests = append(req.Requests, &admitv1.AcquireRequest{
			Pool: pool, Tenant: tenant(i), MaxWait: wait, Ttl: durationpb.New(leastTTL),
		})
	}
	return req
}

// leastTTL is the least that a permit may live.
const leastTTL = time.Second

// Expire takes so many permits and lets them expire, which they do at about the same
// time: it returns before that.
func (l *Large) Expire(ctx context.Context, permits int) error {
	c, err := dial(l.at())
	if err != nil {
		return err
	}
	defer c.Close()
	req := many(Wide, nil)
	for range permits / mostInCall {
		if _, err := c.of(0).BatchAcquire(ctx, req); err != nil {
			return fmt.Errorf("acquire many: %w", err)
		}
	}
	return nil
}

// PutTenants gives so many tenants a row, a thousand with each call.
func (l *Large) PutTenants(ctx context.Context, tenants int) error {
	conn, err := system.Dial(l.at())
	if err != nil {
		return err
	}
	defer conn.Close()
	api := admitv1.NewPolicyServiceClient(conn)
	l.puts++
	for from := 0; from < tenants; from += mostInCall {
		req := &admitv1.PutTenantsRequest{Pool: Rows}
		for i := range mostInCall {
			req.Rows = append(req.Rows, &admitv1.TenantPut{
				Tenant: &admitv1.Tenant{Id: fmt.Sprintf("tenant-%d", from+i), Weight: proto.Int64(l.puts)},
			})
		}
		if _, err := api.PutTenants(ctx, req); err != nil {
			return fmt.Errorf("put tenants: %w", err)
		}
	}
	return nil
}
