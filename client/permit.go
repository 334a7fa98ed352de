package client

import (
	"sync/atomic"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Permit is the right to work for some time.
type Permit struct {
	// Token names the permit in Renew and Release. It is secret.
	Token string
	// Fence only grows from grant to grant. Pass it to the resource that you
	// work on and let it refuse lower ones.
	Fence int64
	// Pool, Tenant and Lane are what the permit counts in.
	Pool, Tenant, Lane string
	// State is PERMIT_STATE_LIVE, but on a replay what has become of the permit.
	State admitv1.PermitState
	// TTL is the time to live that was granted, counted from Asked.
	TTL time.Duration
	// Asked is the moment before the request was sent; where it waited in line,
	// that at which the answer came.
	Asked time.Time

	actualCost atomic.Pointer[int64]
}

// newPermit reads a permit that was asked for at the given moment.
func newPermit(p *admitv1.Permit, asked time.Time) *Permit {
	return &Permit{
		Token: p.GetToken(), Fence: p.GetFence(),
		Pool: p.GetPool(), Tenant: p.GetTenant(), Lane: p.GetLane(),
		State: p.GetState(), TTL: p.GetExpiresIn().AsDuration(), Asked: asked,
	}
}

// StopBy is when the holder must have stopped, unless it renewed the permit.
func (p *Permit) StopBy() time.Time { return stopBy(p.Asked, p.TTL) }

// SetActualCost states what the work really cost, where the cost that was asked
// for was an estimate: 0 to 2^53. Do and Worker pass it on with the release.
func (p *Permit) SetActualCost(tokens int64) { p.actualCost.Store(&tokens) }

// stopBy leaves the last 15 % of a lease unused, so that its holder has stopped
// before the cluster, whose clock started later, gives the slot away.
func stopBy(asked time.Time, ttl time.Duration) time.Time { return asked.Add(ttl / 100 * 85) }
