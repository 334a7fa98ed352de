package admission_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNaiveUsesOnlyWords holds the second implementation to being one: of
// admission it names types and constants, but nothing that decides, and it calls
// no method of theirs but those that add and subtract times.
func TestNaiveUsesOnlyWords(t *testing.T) {
	words, methods := vocabulary(t)
	files, err := filepath.Glob("naive_*test.go")
	if err != nil || len(files) < 8 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, name := range files {
		if name == "naive_uses_test.go" {
			continue
		}
		for _, use := range offences(parse(t, name), words, methods) {
			t.Errorf("%s: %s", name, use)
		}
	}
}

func TestNaiveUsesAreSeen(t *testing.T) {
	const source = `package admission_test
import "github.com/admitd/admit/admission"
func f(p admission.Policy, s *admission.State) {
	_, _ = admission.ParseToken("")
	p.Validate()
	_ = s.Index
	_ = admission.Absent
}`
	f, err := parser.ParseFile(token.NewFileSet(), "f.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	words, methods := vocabulary(t)
	got := offences(f, words, methods)
	want := []string{"admission.State", "admission.ParseToken", "Validate"}
	if !slices.Equal(got, want) {
		t.Errorf("saw %q, want %q", got, want)
	}
}

// vocabulary returns the types and constants that admission exports, State and
// what it hands out aside, and the methods of all of them.
func vocabulary(t *testing.T) (words, methods map[string]bool) {
	t.Helper()
	words, methods = make(map[string]bool), make(map[string]bool)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, decl := range parse(t, name).Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv != nil && decl.Name.IsExported() {
					methods[decl.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, name := range declared(decl) {
					words[name] = true
				}
			}
		}
	}
	for _, name := range []string{"State", "Image", "Header", "Row"} {
		delete(words, name)
	}
	for _, name := range []string{"Add", "Sub"} {
		delete(methods, name)
	}
	return words, methods
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// declared are the types and constants of a declaration.
func declared(decl *ast.GenDecl) []string {
	var names []string
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, spec.Name.Name)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if decl.Tok == token.CONST {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// offences are what a file uses of admission beyond words, in its order.
func offences(f *ast.File, words, methods map[string]bool) []string {
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if from, ok := n.X.(*ast.Ident); ok && from.Name == "admission" && !words[n.Sel.Name] {
				found = append(found, "admission."+n.Sel.Name)
			}
		case *ast.CallExpr:
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && methods[called.Sel.Name] {
				found = append(found, called.Sel.Name)
			}
		}
		return true
	})
	return found
}
