// Command bench measures admit beside systems that people know, and writes its part
// of docs/benchmarks.md from the figures. It sets all of them up itself, on loopback,
// in directories of its own. It wants an idle machine.
//
//	go run .                          all of it
//	go run . -only echo,etcd          some groups, in the place of what was measured of them
//	go run . -only echo/unary-64 -results /tmp/r -page /tmp/r.md    one row, kept apart
//	go run . -report                  the page alone, from the results that there are
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/admitd/admit/bench/echo"
	"github.com/admitd/admit/bench/machine"
	"github.com/admitd/admit/bench/rawraft"
	"github.com/admitd/admit/bench/report"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/internal/pagepart"
)

// servers are what this program also is, in processes of their own.
var servers = map[string]func(args []string) error{
	echo.Server:    echo.Serve,
	rawraft.Server: rawraft.Serve,
}

func main() {
	if err := mainError(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func mainError() error {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		return servers[os.Args[2]](os.Args[3:])
	}
	var o options
	flag.StringVar(&o.root, "root", "..", "the checkout of admit")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each figure is measured: odd")
	flag.DurationVar(&o.round, "round", 5*time.Second, "how long a round takes")
	flag.StringVar(&o.only, "only", "", "the groups to measure, or group/row, by commas (all)")
	flag.IntVar(&o.entries, "entries", 1_000_000, "the most due entries, a power of ten; ten million take 6 GB")
	flag.BoolVar(&o.report, "report", false, "measure nothing, write the page from the results")
	flag.StringVar(&o.dir, "dir", "", "where the servers keep their data and logs (a directory that is removed)")
	flag.StringVar(&o.results, "results", results, "the directory of the results")
	flag.StringVar(&o.page, "page", "../docs/benchmarks.md", "the page to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.run(ctx)
}

// results is where figures are kept that are written into the page.
const results = "results"

type options struct {
	root, only, dir, results, page string
	rounds, entries                int
	round                          time.Duration
	report                         bool
}

func (o options) run(ctx context.Context) error {
	if o.rounds < 1 || o.rounds%2 == 0 {
		return fmt.Errorf("%d rounds: an odd number gives a median that was measured", o.rounds)
	}
	if strings.Contains(o.only, "/") && o.results == results {
		return errors.New("one row takes the place of its group: name other -results, and another -page")
	}
	this := machine.This()
	if err := os.MkdirAll(o.results, 0o755); err != nil {
		return fmt.Errorf("make the directory of results: %w", err)
	}
	file := filepath.Join(o.results, this.File())
	kept, err := result.Read(file)
	if err != nil {
		return err
	}
	kept.Machine = this
	var failed error
	if !o.report {
		failed = o.measure(ctx, &kept, file)
	}
	var page bytes.Buffer
	report.Write(&page, kept)
	if err := pagepart.Write(o.page, "peers", page.Bytes()); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, wrong(kept))
}

// measure measures the groups and keeps each as soon as it is there, one that failed as
// far as it came: it does not keep the others from being measured.
func (o options) measure(ctx context.Context, kept *result.File, file string) (err error) {
	dir, remove, err := o.directory()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	all, err := groups(ctx, o.root, dir, o.round, o.entries)
	if err != nil {
		return err
	}
	picked, err := pick(all, o.only)
	if err != nil {
		return err
	}
	plan := &run.Plan{Rounds: o.rounds, For: o.round, Dir: dir, Log: os.Stderr}
	var failed error
	for _, g := range picked {
		res, err := plan.Run(ctx, g)
		if ctx.Err() != nil {
			return errors.Join(failed, err)
		}
		if err != nil {
			failed = errors.Join(failed, err)
			res.Failed = err.Error()
		}
		kept.Put(res)
		order(kept, all)
		if err := kept.Write(file); err != nil {
			return err
		}
	}
	return failed
}

// order puts the results in the order of the groups; of those that are gone, none stays.
func order(kept *result.File, groups []run.Group) {
	at := func(id string) int {
		return slices.IndexFunc(groups, func(g run.Group) bool { return g.ID == id })
	}
	kept.Groups = slices.DeleteFunc(kept.Groups, func(g result.Group) bool { return at(g.ID) < 0 })
	slices.SortFunc(kept.Groups, func(a, b result.Group) int { return at(a.ID) - at(b.ID) })
}

// directory is where data goes, and what removes it: nothing does that was named.
func (o options) directory() (string, func() error, error) {
	if o.dir != "" {
		return o.dir, func() error { return nil }, os.MkdirAll(o.dir, 0o755)
	}
	dir, err := os.MkdirTemp("", "admit-bench-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory: %w", err)
	}
	// Servers that don't run as root go through it.
	return dir, func() error { return os.RemoveAll(dir) }, os.Chmod(dir, 0o755)
}

// pick returns the groups of those names, or of group/row one row.
func pick(groups []run.Group, names string) ([]run.Group, error) {
	if names == "" {
		return groups, nil
	}
	var picked []run.Group
	for _, name := range strings.Split(names, ",") {
		name, row, one := strings.Cut(name, "/")
		i := slices.IndexFunc(groups, func(g run.Group) bool { return g.ID == name })
		if i < 0 {
			return nil, fmt.Errorf("no group is called %q", name)
		}
		g := groups[i]
		if one {
			g.Rows = slices.DeleteFunc(slices.Clone(g.Rows), func(r run.Row) bool { return r.ID != row })
			if len(g.Rows) == 0 {
				return nil, fmt.Errorf("no row of %s is called %q", name, row)
			}
		}
		picked = append(picked, g)
	}
	return picked, nil
}

// wrong says which checks of the results don't hold.
func wrong(f result.File) error {
	var all error
	for _, g := range f.Groups {
		for _, c := range g.Checks {
			if c.Wrong != "" {
				all = errors.Join(all, fmt.Errorf("%s: %s: %s", g.ID, c.What, c.Wrong))
			}
		}
	}
	return all
}
