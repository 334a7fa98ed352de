package client

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Client is a connection to admit. It is safe for concurrent use; one is enough
// for a process.
type Client struct {
	conn      *grpc.ClientConn
	admission admitv1.AdmissionServiceClient
	dueWork   admitv1.DueWorkServiceClient
	policy    admitv1.PolicyServiceClient
	status    admitv1.StatusServiceClient
	cluster   admitv1.ClusterServiceClient
	retryFor  time.Duration
	// permits are the stub, or sessions where that is not nil.
	permits  PermitCalls
	sessions *sessions
	keeper   *keeper
}

// Dial returns a client of the nodes at addr: `host:port`, or several of one cluster
// parted by commas. Any will do for a start; calls then go to the one that leads, and
// to another where that is lost. Any other target of gRPC is dialled as it is, such as
// unix:PATH, where a sidecar may be. Dial does not wait for a connection: calls do.
// Close the client when done.
func Dial(addr string, opts ...Option) (*Client, error) {
	cfg := config{retryFor: defaultRetryFor}
	for _, o := range opts {
		o(&cfg)
	}
	dial := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			// A restarted node is back within a second or so; gRPC's own two
			// minutes between tries would be the longest part of an outage.
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		// A node that is silent is left within a quarter of a minute; nodes allow a
		// ping in 10 s.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 12 * time.Second, Timeout: 3 * time.Second}),
	}, cfg.dial...)
	if cfg.traces != nil {
		dial = append(dial, grpc.WithChainUnaryInterceptor(cfg.traces.unary))
	}
	target, nodes := addr, clusterOf(addr)
	if nodes != nil {
		target = scheme + ":///" + addr
		dial = append(dial, nodes.options()...)
	}
	conn, err := grpc.NewClient(target, dial...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	c := &Client{
		conn:      conn,
		admission: admitv1.NewAdmissionServiceClient(conn),
		dueWork:   admitv1.NewDueWorkServiceClient(conn),
		policy:    admitv1.NewPolicyServiceClient(conn),
		status:    admitv1.NewStatusServiceClient(conn),
		cluster:   admitv1.NewClusterServiceClient(conn),
		retryFor:  cfg.retryFor,
	}
	c.permits = c.admission
	if cfg.session {
		c.sessions = newSessions(conn, c.admission, nodes, cfg.traces)
		c.permits = c.sessions
	}
	c.keeper = newKeeper(c.permits)
	return c, nil
}

// Close closes the connection. Permits held at that moment are no longer
// renewed, so let every Do and Worker end before.
func (c *Client) Close() error {
	c.keeper.close()
	if c.sessions != nil {
		c.sessions.close()
	}
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close the connection: %w", err)
	}
	return nil
}

// Admission returns the generated stub. Its calls are sent once, as they are.
func (c *Client) Admission() admitv1.AdmissionServiceClient { return c.admission }

// DueWork returns the generated stub. Its calls are sent once, as they are.
func (c *Client) DueWork() admitv1.DueWorkServiceClient { return c.dueWork }

// Policy returns the generated stub. Its calls are sent once, as they are.
func (c *Client) Policy() admitv1.PolicyServiceClient { return c.policy }

// Status returns the generated stub. Its calls are sent once, as they are.
func (c *Client) Status() admitv1.StatusServiceClient { return c.status }

// Cluster returns the generated stub. Its calls are sent once, as they are.
func (c *Client) Cluster() admitv1.ClusterServiceClient { return c.cluster }

// Conn returns the connection, for the services that have no method here, such
// as gRPC's own health service.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }
