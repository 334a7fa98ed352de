package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// logged are the methods of a logger, with how many arguments come before the keys.
var logged = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// checkLogKeys wants the keys of log lines to be words of the program in snake_case:
// who searches a log must know them.
func checkLogKeys(files sources) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || isGenerated(files[name]) {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, files[name], 0)
		if err != nil {
			continue // checkPackages tells
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, key := range badKeys(call) {
					wrong = append(wrong, fmt.Sprintf("%s:%d: the key %s of a log line is no constant in snake_case",
						name, set.Position(call.Pos()).Line, key))
				}
			}
			return true
		})
	}
	return wrong
}

// badKeys are the keys of a call of a logger that are none.
func badKeys(call *ast.CallExpr) (bad []string) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || call.Ellipsis.IsValid() || !isLogger(method.X) {
		return nil
	}
	first, ok := logged[method.Sel.Name]
	if !ok {
		return nil
	}
	for i := first; i < len(call.Args); i += 2 {
		literal, ok := call.Args[i].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			bad = append(bad, fmt.Sprintf("%d", (i-first)/2+1))
			continue
		}
		if key, err := strconv.Unquote(literal.Value); err != nil || !snakeCase.MatchString(key) {
			bad = append(bad, literal.Value)
		}
	}
	return bad
}

// isLogger says whether an expression is a logger by its name: log, or a field log.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "log"
	case *ast.SelectorExpr:
		return x.Sel.Name == "log"
	}
	return false
}
