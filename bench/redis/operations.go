package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/admitd/admit/bench/system"
)

//go:embed bucket.lua
var script string

const (
	// tenants have a bucket each.
	tenants  = 100
	capacity = 100_000_000
	refill   = 10
	// waitLimit is how long a call waits for a replica.
	waitLimit = time.Second
)

// Tokens opens callers that each take size tokens with one round trip, and wait for a
// replica where there are any.
func (r *Redis) Tokens(size int) system.Open {
	return func(ctx context.Context, callers int) (system.Operation, error) {
		c := goredis.NewClient(&goredis.Options{
			Addr: r.Addr(), PoolSize: callers, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		})
		sha, err := c.ScriptLoad(ctx, script).Result()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("load the script: %w", err), c.Close())
		}
		if err := connect(ctx, c, callers); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return &tokens{client: c, sha: sha, size: size, wait: r.replicas > 0}, nil
	}
}

// connect opens all connections, so that no call has to.
func connect(ctx context.Context, c *goredis.Client, callers int) error {
	conns := make([]*goredis.Conn, callers)
	failed := make([]error, callers)
	for i := range conns {
		conns[i] = c.Conn() // all at once, else one would do for all
		failed[i] = conns[i].Ping(ctx).Err()
	}
	for i, conn := range conns {
		failed[i] = errors.Join(failed[i], conn.Close())
	}
	return errors.Join(failed...)
}

type tokens struct {
	client *goredis.Client
	sha    string
	size   int
	wait   bool
}

func (o *tokens) Do(ctx context.Context, caller int) (int, error) {
	if o.size == 1 && !o.wait {
		return 1, granted(o.take(ctx, o.client, caller))
	}
	pipe := o.client.Pipeline()
	var taken []*goredis.Cmd
	for i := range o.size {
		taken = append(taken, o.take(ctx, pipe, caller+i))
	}
	var acks *goredis.Cmd
	if o.wait {
		acks = pipe.Do(ctx, "WAIT", 1, waitLimit.Milliseconds())
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}
	for _, t := range taken {
		if err := granted(t); err != nil {
			return 0, err
		}
	}
	if acks != nil {
		if n, err := acks.Int(); err != nil || n < 1 {
			return 0, errors.Join(fmt.Errorf("no replica had it after %v", waitLimit), err)
		}
	}
	return o.size, nil
}

func (o *tokens) take(ctx context.Context, on goredis.Cmdable, i int) *goredis.Cmd {
	return on.EvalSha(ctx, o.sha, []string{fmt.Sprintf("tenant-%03d", i%tenants)}, capacity, refill)
}

func granted(c *goredis.Cmd) error {
	n, err := c.Int()
	if err == nil && n != 1 {
		err = errors.New("no token where there are many")
	}
	return err
}

func (o *tokens) Close() error { return o.client.Close() }
