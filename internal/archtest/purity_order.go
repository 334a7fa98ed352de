package archtest

import (
	"go/ast"
	"go/types"
	"regexp"
)

// unordered is the comment that excuses a loop over a map, on the line above
// it: what the loop does must come out the same in whatever order it runs, and
// the comment says why it does.
var unordered = regexp.MustCompile(`^//unordered: \S`)

// checkOrder refuses loops over maps, which run in an order of their own each
// time, unless a comment says why that does not show. The iterators of package
// maps must go straight into a sort.
func checkOrder(p *pass) {
	excuses := p.excuses()
	excused := func(n ast.Node) bool {
		at := p.fset.Position(n.Pos())
		e := excuses[fileLine{at.Filename, at.Line}]
		if e != nil {
			e.used = true
		}
		return e != nil
	}
	sorted := p.sortedIterators()
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if mayBe(p.info.TypeOf(n.X), isMap) && !excused(n) {
				p.report(n.Pos(), "a loop over a map: sort the keys, or say above it why order does not show (//unordered: ...)")
			}
		case *ast.SelectorExpr:
			if name := p.function("maps", n); unorderedMaps[name] && !sorted[n] && !excused(n) {
				p.report(n.Pos(), "maps.%s has no order: hand it to slices.Sorted, or say above it why order does not show (//unordered: ...)", name)
			}
		}
	})
	for _, e := range excuses {
		if !e.used {
			p.report(e.comment.Pos(), "this comment excuses nothing: no loop over a map follows it")
		}
	}
}

func isMap(t types.Type) bool {
	_, ok := t.(*types.Map)
	return ok
}

// mayBe says whether the type, or one that it may stand for where it is a type
// parameter, is such a type.
func mayBe(t types.Type, such func(types.Type) bool) bool {
	switch u := t.Underlying().(type) {
	case *types.Interface:
		for e := range u.EmbeddedTypes() {
			if mayBe(e, such) {
				return true
			}
		}
	case *types.Union:
		for term := range u.Terms() {
			if mayBe(term.Type(), such) {
				return true
			}
		}
	}
	return such(t.Underlying())
}

// unorderedMaps are the functions of package maps that go through one in an
// order that a caller may see.
var unorderedMaps = map[string]bool{"All": true, "Keys": true, "Values": true, "DeleteFunc": true}

// fileLine is a line of a file.
type fileLine struct {
	file string
	line int
}

// excuse is an unordered comment.
type excuse struct {
	comment *ast.Comment
	used    bool
}

// excuses returns the excuses by the lines that they are for: the one after the
// comments that they stand in.
func (p *pass) excuses() map[fileLine]*excuse {
	found := make(map[fileLine]*excuse)
	for _, f := range p.files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if unordered.MatchString(c.Text) {
					end := p.fset.Position(group.End())
					found[fileLine{end.Filename, end.Line + 1}] = &excuse{comment: c}
				}
			}
		}
	}
	return found
}

// sortedIterators returns the map iterators that are sorted on the spot, as in
// slices.Sorted(maps.Keys(m)).
func (p *pass) sortedIterators() map[*ast.SelectorExpr]bool {
	found := make(map[*ast.SelectorExpr]bool)
	p.each(func(n ast.Node) {
		sort, ok := n.(*ast.CallExpr)
		if !ok || len(sort.Args) == 0 {
			return
		}
		switch p.function("slices", sort.Fun) {
		case "Sorted", "SortedFunc", "SortedStableFunc":
			if iter, ok := sort.Args[0].(*ast.CallExpr); ok {
				if sel, ok := iter.Fun.(*ast.SelectorExpr); ok {
					found[sel] = true
				}
			}
		}
	})
	return found
}

// function returns the name of the package's function that e names, or "".
func (p *pass) function(pkg string, e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	f, ok := p.info.Uses[sel.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != pkg {
		return ""
	}
	return f.Name()
}
