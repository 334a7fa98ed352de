package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// violation is one place where a source breaks a rule of purity.
type violation struct {
	pos  token.Position
	rule string
	why  string
}

func (v violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", filepath.Base(v.pos.Filename), v.pos.Line, v.rule, v.why)
}

// rules are those that make a package pure: the same calls in the same order
// give the same results, byte for byte, on every machine and in every run.
var rules = []struct {
	name  string
	check func(*pass)
}{
	{"import", checkImports},
	{"time", checkTime},
	{"output", checkOutput},
	{"concurrency", checkConcurrency},
	{"float", checkFloats},
	{"order", checkOrder},
	{"init", checkInit},
	{"state", checkState},
}

// pass is one package under one rule.
type pass struct {
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	pkg   *types.Package

	rule  string
	found map[violation]bool
}

// report notes a violation. A line that breaks a rule for one reason twice is
// told once.
func (p *pass) report(pos token.Pos, format string, args ...any) {
	at := p.fset.Position(pos)
	at.Column, at.Offset = 0, 0
	p.found[violation{at, p.rule, fmt.Sprintf(format, args...)}] = true
}

// each calls f for every node of the package.
func (p *pass) each(f func(ast.Node)) {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(n)
			}
			return true
		})
	}
}

// checkPurity type-checks the files as one package and returns what breaks the
// rules, in order. It fails if the files do not compile: nothing can be said of
// them then.
func checkPurity(path string, files []string, exports exportFiles) ([]violation, error) {
	p := &pass{fset: token.NewFileSet(), found: make(map[violation]bool)}
	for _, name := range files {
		f, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{
		Types:      make(map[ast.Expr]types.TypeAndValue),
		Defs:       make(map[*ast.Ident]types.Object),
		Uses:       make(map[*ast.Ident]types.Object),
		Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", exports.open)}
	var err error
	if p.pkg, err = conf.Check(path, p.fset, p.files, p.info); err != nil {
		return nil, err
	}
	for _, r := range rules {
		p.rule = r.name
		r.check(p)
	}
	var found []violation
	for v := range p.found {
		found = append(found, v)
	}
	slices.SortFunc(found, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Line, b.pos.Line),
			cmp.Compare(a.rule, b.rule), cmp.Compare(a.why, b.why))
	})
	return found, nil
}

// exportFiles are where the compiler left the types of a package, by path.
type exportFiles map[string]string

// listExports returns the export files of the packages and of all they import.
func listExports(root string, pkgs ...string) (exportFiles, error) {
	listed, err := goList(root, append([]string{"-export", "-deps"}, pkgs...)...)
	if err != nil {
		return nil, err
	}
	files := make(exportFiles)
	for _, p := range listed {
		files[p.ImportPath] = p.Export
	}
	return files, nil
}

func (e exportFiles) open(path string) (io.ReadCloser, error) {
	file := e[path]
	if file == "" {
		return nil, fmt.Errorf("no types are at hand for %s", path)
	}
	return os.Open(file)
}
