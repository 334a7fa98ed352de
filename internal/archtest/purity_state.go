package archtest

import (
	"go/ast"
	"go/token"
	"go/types"
)

// checkInit refuses init functions: what they would set up is state, and state
// belongs to a State.
func checkInit(p *pass) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				p.report(fn.Pos(), "an init function: what lives on from call to call belongs to a State")
			}
		}
	}
}

// checkState refuses package variables that could change. Two kinds cannot:
// errors made once, and plain values (tables in arrays, say) that nothing in
// the package writes to or takes the address of.
func checkState(p *pass) {
	vars := p.packageVars()
	for v := range vars {
		switch {
		case types.Identical(v.Type(), types.Universe.Lookup("error").Type()):
		case v.Exported():
			p.report(v.Pos(), "the variable %s can be set by whoever imports it", v.Name())
		case !isPlain(v.Type()):
			p.report(v.Pos(), "the variable %s can change through another name for it: make it an array, a constant or a function", v.Name())
		}
	}
	write := func(e ast.Expr) {
		if v, ok := p.rootVar(e); ok && vars[v] {
			p.report(e.Pos(), "the package variable %s may be changed here", v.Name())
		}
	}
	p.each(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				write(e)
			}
		case *ast.RangeStmt:
			write(n.Key)
			write(n.Value)
		case *ast.IncDecStmt:
			write(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				write(n.X)
			}
		case *ast.SliceExpr:
			if mayBe(p.info.TypeOf(n.X), isArray) {
				write(n.X)
			}
		case *ast.SelectorExpr:
			if s := p.info.Selections[n]; s != nil && s.Kind() == types.MethodVal && takesAddress(s) {
				write(n.X)
			}
		}
	})
}

// packageVars returns the variables that the package declares at its top.
func (p *pass) packageVars() map[*types.Var]bool {
	found := make(map[*types.Var]bool)
	scope := p.pkg.Scope()
	for _, name := range scope.Names() {
		if v, ok := scope.Lookup(name).(*types.Var); ok {
			found[v] = true
		}
	}
	return found
}

// rootVar returns the variable that e is a part of without an indirection.
func (p *pass) rootVar(e ast.Expr) (*types.Var, bool) {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			v, ok := p.info.Uses[x].(*types.Var)
			return v, ok
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		default:
			return nil, false
		}
	}
}

// isPlain says whether values of the type are wholly their own: a copy shares
// nothing with what it was copied from.
func isPlain(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Array:
		return isPlain(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if !isPlain(f.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

func isArray(t types.Type) bool {
	_, ok := t.(*types.Array)
	return ok
}

// takesAddress says whether calling the method takes the address of what it is
// called on.
func takesAddress(s *types.Selection) bool {
	sig, ok := s.Obj().Type().(*types.Signature)
	if !ok || sig.Recv() == nil {
		return false
	}
	_, byPointer := sig.Recv().Type().(*types.Pointer)
	_, isPointer := s.Recv().(*types.Pointer)
	return byPointer && !isPointer
}
