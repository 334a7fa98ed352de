// Package calls is what is asked of admit, and in the same messages of a bare
// echo: with the plain generated clients, as any program would.
package calls

import (
	"errors"
	"fmt"

	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// The pools of the policy that admit runs with: Wide has room for all, Narrow for
// next to none and Full for one, Due is for due work, Rows for tenants with rows, and Lent
// for tokens that sidecars may hold.
const (
	Wide   = "wide"
	Narrow = "narrow"
	Full   = "full"
	Due    = "due"
	Rows   = "rows"
	Lent   = "lent"
)

// What Narrow has: permits at once, and tokens of its bucket, which come back so many
// in a second.
const (
	NarrowActive   = 8
	NarrowCapacity = 50
	NarrowRefill   = 50
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

func dial(addr string) (*clients, error) { return dialOften(addr, connections) }

// dialOften opens so many connections.
func dialOften(addr string, connections int) (*clients, error) {
	c := &clients{}
	for range connections {
		conn, err := system.Dial(addr)
		if err != nil {
			return nil, errors.Join(err, c.Close())
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
