package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every test of the core that runs random histories is in the table.
func TestEveryPropertyRunsNightly(t *testing.T) {
	files, err := filepath.Glob("../../admission/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	var found []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			if test, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(test.Name.Name, "Test") && isRandom(test) {
				found = append(found, test.Name.Name)
			}
		}
	}
	var listed []string
	shares := 0
	for _, p := range properties {
		listed = append(listed, p.test)
		shares += p.share
	}
	slices.Sort(found)
	slices.Sort(listed)
	if !slices.Equal(found, listed) {
		t.Errorf("the table has\n%q\nbut the random tests are\n%q", listed, found)
	}
	if shares != 1000 {
		t.Errorf("the shares add up to %d thousandths", shares)
	}
}

// isRandom says whether a test checks random histories, itself or by probe.
func isRandom(test *ast.FuncDecl) (random bool) {
	ast.Inspect(test, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			from, ok := n.X.(*ast.Ident)
			random = random || ok && from.Name == "rapid" && n.Sel.Name == "Check"
		case *ast.Ident:
			random = random || n.Name == "probe"
		}
		return true
	})
	return random
}

func TestSplitDealsOutAll(t *testing.T) {
	got := map[string]int{}
	for _, j := range split(100_000) {
		if j.histories > chunk {
			t.Errorf("a job of %d", j.histories)
		}
		got[j.test] += j.histories
	}
	for _, p := range properties {
		if want := p.share * 100; got[p.test] != want {
			t.Errorf("%s gets %d, want %d", p.test, got[p.test], want)
		}
	}
}

func TestSeldomIsSeen(t *testing.T) {
	r := &runner{tallies: map[string]map[string]int{}}
	const out = "    tally_test.go:123: tally      999  op Acquire\n    tally_test.go:123: tally  1  claims\n"
	r.addTally(byLaws, out)
	r.addTally(byNaive, out)
	if got := r.report(io.Discard, 1000); got != 2 {
		t.Errorf("%d are seldom, want one of each generator", got)
	}
	r.addTally(byLaws, out)
	if got := r.report(io.Discard, 1000); got != 1 {
		t.Errorf("%d are seldom, want 1", got)
	}
}
