// Package postgres is PostgreSQL with a table of due work, as teams build it: rows are
// claimed with SKIP LOCKED, and each tenant has a cap on what is claimed at once. One
// server, which flushes each commit; memory and write-ahead log are set as its
// documentation advises, and the tables as those who run queues in it do: room in the
// pages for updates in place, a partial index of what is due, eager vacuum.
package postgres

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/admitd/admit/bench/system"
)

//go:embed schema.sql
var schema string

// settings are those that differ from the defaults, or that all hangs on.
var settings = []string{
	"shared_buffers=2GB", "max_wal_size=8GB", "checkpoint_timeout=15min", "wal_compression=on",
	"max_connections=300", "synchronous_commit=on", "fsync=on",
}

// Postgres is the system.
type Postgres struct {
	version   string
	url       string
	processes system.Processes
}

func (p *Postgres) Name() string     { return "PostgreSQL, alone" }
func (p *Postgres) Version() string  { return p.version }
func (p *Postgres) Processes() []int { return p.processes.IDs() }
func (p *Postgres) Stop() error      { return p.processes.Stop() }

func (p *Postgres) Start(ctx context.Context, dir string) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	as, err := notRoot(dir)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	command := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	if out, err := command(ctx, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("make a database: %w\n%s", err, out)
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(addrs[0])
	p.url = fmt.Sprintf("postgres://postgres@%s/postgres", addrs[0])
	args := []string{"-D", data, "-h", host, "-p", port, "-k", ""}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	server, err := system.StartProcess(filepath.Join(dir, "postgres.log"), command(context.WithoutCancel(ctx), "postgres", args...))
	if err != nil {
		return err
	}
	p.processes = append(p.processes, server)
	if err := server.Await(ctx, p.ask); err != nil {
		return err
	}
	return p.do(ctx, schema)
}

// programs is where the newest of Debian's versions is.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errors.Join(errors.New("find PostgreSQL (Debian's package postgresql)"), err)
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })), nil
}

func major(initdb string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb)))) // 0 is older than all
	return n
}

// notRoot gives dir to the user as whom the server runs where this is root, which it
// refuses to be.
func notRoot(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("find whom to run PostgreSQL as: %w", err)
	}
	uid, errUser := strconv.Atoi(u.Uid)
	gid, errGroup := strconv.Atoi(u.Gid)
	if err := errors.Join(errUser, errGroup, os.Chown(dir, uid, gid)); err != nil {
		return nil, fmt.Errorf("give %s to PostgreSQL: %w", dir, err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (p *Postgres) ask(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, "show server_version").Scan(&p.version)
}

// do runs statements, one after the other.
func (p *Postgres) do(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(ctx)
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("run %.40q: %w", s, err)
		}
	}
	return nil
}
