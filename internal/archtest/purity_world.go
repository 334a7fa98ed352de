package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"
)

// pureImports are the packages that compute and do nothing else. Whoever adds
// one has looked: no clock, no chance, no world, no order of a map.
var pureImports = map[string]bool{
	"bytes": true, "cmp": true, "container/heap": true, "encoding/base64": true, "encoding/binary": true, "encoding/hex": true,
	"errors": true, "fmt": true, "hash": true, "hash/crc32": true, "hash/fnv": true, "io": true,
	"iter": true, "maps": true, "math": true, "math/bits": true, "slices": true, "sort": true, "strconv": true,
	"strings": true, "time": true, "unicode": true, "unicode/utf8": true,
	"github.com/tidwall/btree": true,
}

// impureImports say why not, where it may not be plain.
var impureImports = []ban{
	{pkg: "context", why: "nothing in the core waits, so nothing can be called off"},
	{pkg: "sync/...", why: "one goroutine at a time is in the core; the lock is the store's"},
	{pkg: "os/...", why: "what the core knows of the world came in with an entry"},
	{pkg: "net/...", why: "what the core knows of the world came in with an entry"},
	{pkg: "io/fs", why: "the core hands out rows; the store reads and writes bytes"},
	{pkg: "log/...", why: "the core tells what it did in its results"},
	{pkg: "math/rand/...", why: "chance differs between replicas; random bits come in with an operation"},
	{pkg: "crypto/...", why: "chance differs between replicas; random bits come in with an operation"},
	{pkg: "hash/maphash", why: "its seed differs between replicas"},
	{pkg: "runtime/...", why: "the machine differs between replicas"},
	{pkg: "unsafe", why: "addresses differ between replicas"},
	{pkg: "reflect", why: "it reaches what the other rules could not see"},
	{pkg: "google.golang.org/...", why: "API, storage and core evolve apart; whoever stands between converts"},
	{pkg: modulePath + "/...", why: coreWhy},
}

// checkImports lets in only what is known to be pure.
func checkImports(p *pass) {
	for _, f := range p.files {
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if spec.Name != nil && spec.Name.Name == "." {
				p.report(spec.Pos(), "%s is imported by dot: its names look like the core's own", path)
			}
			if err != nil || pureImports[path] {
				continue
			}
			why := "it is not among the packages known to be pure; pureImports in internal/archtest lists them"
			for _, b := range impureImports {
				if matches(b.pkg, path) {
					why = b.why
				}
			}
			p.report(spec.Pos(), "%s is imported: %s", path, why)
		}
	}
}

// checkTime lets in durations and nothing else of package time: the rest reads
// a clock, waits on one, or asks the machine for its time zone.
func checkTime(p *pass) {
	p.eachUse("time", func(id *ast.Ident, obj types.Object) {
		if _, constant := obj.(*types.Const); !constant && obj.Name() != "Duration" {
			p.report(id.Pos(), "time.%s is used: time comes in with an entry, as an Instant or a Wall", obj.Name())
		}
	})
}

// checkOutput refuses the parts of package fmt, and the builtins, that use the
// standard streams. Those that take a writer get one that the core made, such as
// a hash: no other is to be had.
func checkOutput(p *pass) {
	p.eachUse("fmt", func(id *ast.Ident, obj types.Object) {
		if name := obj.Name(); strings.HasPrefix(name, "Print") || strings.HasPrefix(name, "Scan") {
			p.report(id.Pos(), "fmt.%s is used: the core tells what it did in its results", name)
		}
	})
	for id, obj := range p.info.Uses {
		if b, ok := obj.(*types.Builtin); ok && (b.Name() == "print" || b.Name() == "println") {
			p.report(id.Pos(), "%s is used: the core tells what it did in its results", b.Name())
		}
	}
}

// eachUse calls f for every use of a package-level object of the package.
func (p *pass) eachUse(pkg string, f func(*ast.Ident, types.Object)) {
	for id, obj := range p.info.Uses {
		if obj.Pkg() != nil && obj.Pkg().Path() == pkg && obj.Parent() == obj.Pkg().Scope() {
			f(id, obj)
		}
	}
}

// checkConcurrency refuses goroutines and channels.
func checkConcurrency(p *pass) {
	const why = "the core decides one thing after the other"
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.GoStmt:
			p.report(n.Pos(), "a go statement: %s", why)
		case *ast.SelectStmt:
			p.report(n.Pos(), "a select: %s", why)
		case ast.Expr:
			if t := p.info.TypeOf(n); t != nil && holds(t, isChan) {
				p.report(n.Pos(), "a channel: %s", why)
			}
		}
	})
}

func isChan(t types.Type) bool {
	_, ok := t.(*types.Chan)
	return ok
}

// checkFloats refuses floats, by name, by inference and as what a call returns.
// Constants that end up as integers, like 1e9, are none.
func checkFloats(p *pass) {
	report := func(pos token.Pos, t types.Type) {
		if t != nil && holds(t, isFloat) {
			p.report(pos, "a float: processors may round differently; count in whole units")
		}
	}
	for e, tv := range p.info.Types {
		report(e.Pos(), tv.Type)
	}
	for id, obj := range p.info.Defs {
		if v, ok := obj.(*types.Var); ok {
			report(id.Pos(), v.Type())
		}
	}
}

func isFloat(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Info()&(types.IsFloat|types.IsComplex) != 0 && b.Info()&types.IsUntyped == 0
}

// holds says whether the type, or one of its parts where it is what a call
// returns, is such a type.
func holds(t types.Type, such func(types.Type) bool) bool {
	if tuple, ok := t.(*types.Tuple); ok {
		for v := range tuple.Variables() {
			if such(v.Type().Underlying()) {
				return true
			}
		}
		return false
	}
	return such(t.Underlying())
}
