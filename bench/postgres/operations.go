package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/admitd/admit/bench/system"
)

var (
	//go:embed claim.sql
	claim string
	//go:embed deal.sql
	deal string
)

const tenants = 100

// Fill makes so many due entries, dealt out to the tenants, and nothing else.
func (p *Postgres) Fill(entries int) func(context.Context) error {
	return func(ctx context.Context) error {
		return p.do(ctx,
			"truncate entries, tenants",
			fmt.Sprintf("insert into tenants (id, cap) select format('tenant-%%s', i), 1000000 from generate_series(0, %d) i", tenants-1),
			fmt.Sprintf("insert into entries (tenant, key, due_at) select format('tenant-%%s', i %% %d), format('entry-%%s', i), now() "+
				"from generate_series(1, %d) i", tenants, entries),
			"vacuum analyze entries", "vacuum analyze tenants", "checkpoint")
	}
}

// Claims opens callers that claim up to n entries at a time, each a request, of one
// tenant after the other.
func (p *Postgres) Claims(n int) system.Open {
	return func(ctx context.Context, callers int) (system.Operation, error) {
		cs, err := p.connect(ctx, callers, claim, "nobody", n)
		o := &claims{connections: cs, n: n, next: make([]int, callers)}
		for i := range callers {
			o.next[i] = i * tenants / callers // not all at the same tenant
		}
		return o, err
	}
}

type claims struct {
	connections
	n    int
	next []int // each caller's next tenant
}

func (o *claims) Do(ctx context.Context, caller int) (int, error) {
	for range tenants {
		tenant := fmt.Sprintf("tenant-%d", o.next[caller])
		o.next[caller] = (o.next[caller] + 1) % tenants
		if got, err := o.rows(ctx, caller, claim, tenant, o.n); err != nil || got > 0 {
			return got, err
		}
	}
	return 0, system.ErrDrained
}

// Deals opens callers that claim up to n entries at a time, each a request, of so many
// tenants.
func (p *Postgres) Deals(n int) system.Open {
	return func(ctx context.Context, callers int) (system.Operation, error) {
		cs, err := p.connect(ctx, callers, deal, 0)
		return &deals{cs, n}, err
	}
}

type deals struct {
	connections
	n int
}

// allBusy is how often in a row a caller finds every tenant claimed from by others
// before it takes it that nothing is left.
const allBusy = 1000

func (o *deals) Do(ctx context.Context, caller int) (int, error) {
	for range allBusy {
		if got, err := o.rows(ctx, caller, deal, o.n); err != nil || got > 0 {
			return got, err
		}
	}
	return 0, system.ErrDrained
}

// connections are one for each caller.
type connections []*pgx.Conn

// connect makes them and has each prepare the statement, with arguments for which it
// changes nothing.
func (p *Postgres) connect(ctx context.Context, callers int, statement string, args ...any) (connections, error) {
	var cs connections
	for i := range callers {
		c, err := pgx.Connect(ctx, p.url)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to PostgreSQL: %w", err), cs.Close())
		}
		cs = append(cs, c)
		if _, err := cs.rows(ctx, i, statement, args...); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare a statement: %w", err), cs.Close())
		}
	}
	return cs, nil
}

// rows counts what a statement returns.
func (cs connections) rows(ctx context.Context, caller int, statement string, args ...any) (int, error) {
	rows, err := cs[caller].Query(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	n := 0
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

func (cs connections) Close() error {
	var all error
	for _, c := range cs {
		all = errors.Join(all, c.Close(context.Background()))
	}
	return all
}
