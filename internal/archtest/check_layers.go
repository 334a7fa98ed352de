package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// checkLayers returns what is wrong with the imports of pkgs, a line for each.
func checkLayers(table []layer, all []ban, pkgs []goPackage) []string {
	var wrong []string
	for _, p := range pkgs {
		name, _ := ours(p.ImportPath)
		row := rowOf(table, name)
		if row == nil {
			wrong = append(wrong, fmt.Sprintf("%s is in no row of the table in internal/archtest/layers.go: "+
				"give it one that says what it may import", name))
			continue
		}
		c := layerCheck{row: row, name: name, pkg: p}
		c.imports()
		for _, b := range slices.Concat(row.never, all) {
			c.ban(b)
		}
		wrong = append(wrong, c.wrong...)
	}
	return wrong
}

// checkRows returns the rows that name no package any more.
func checkRows(table []layer, pkgs []goPackage) []string {
	var wrong []string
	for i := range table {
		if !slices.ContainsFunc(pkgs, func(p goPackage) bool {
			name, _ := ours(p.ImportPath)
			return rowOf(table, name) == &table[i]
		}) {
			wrong = append(wrong, fmt.Sprintf("the table's row %s is for no package", table[i].pkg))
		}
	}
	return wrong
}

// rowOf returns the first row that names the package, or nil.
func rowOf(table []layer, name string) *layer {
	for i := range table {
		if matches(table[i].pkg, name) {
			return &table[i]
		}
	}
	return nil
}

// matches says whether the pattern takes in the package, both as the tables
// write them.
func matches(pattern, name string) bool {
	root, below := strings.CutSuffix(pattern, "/...")
	return name == root || below && strings.HasPrefix(name, root+"/")
}

// layerCheck checks one package against its row.
type layerCheck struct {
	row   *layer
	name  string
	pkg   goPackage
	wrong []string
}

func (c *layerCheck) report(format string, args ...any) {
	c.wrong = append(c.wrong, c.name+" "+fmt.Sprintf(format, args...))
}

// imports checks the imports of ours against those that the row allows.
func (c *layerCheck) imports() {
	may := append([]string{c.row.pkg}, c.row.may...)
	for _, imp := range c.pkg.Imports {
		if name, our := ours(imp); our && !matchesAny(may, name) {
			c.report("imports %s, which its layer may not: %s", name, c.row.why)
		}
	}
	may = append(may, c.row.tests...)
	for _, imp := range c.testImports() {
		if name, our := ours(imp); our && !matchesAny(may, name) {
			c.report("imports %s in a test, which its layer may not: %s", name, c.row.why)
		}
	}
}

// ban checks that the package does without b.
func (c *layerCheck) ban(b ban) {
	if b.except != "" && matches(b.except, c.name) {
		return
	}
	if i := find(b.pkg, c.pkg.Imports); i != "" {
		c.report("imports %s: %s", i, b.why)
	} else if i := find(b.pkg, c.pkg.Deps); b.deep && i != "" {
		c.report("pulls in %s: %s", i, b.why)
	}
	if b.tests {
		return
	}
	if i := find(b.pkg, c.testImports()); i != "" {
		c.report("imports %s in a test: %s", i, b.why)
	} else if i := find(b.pkg, c.pkg.testDeps); b.deep && i != "" {
		c.report("pulls in %s in a test: %s", i, b.why)
	}
}

func (c *layerCheck) testImports() []string {
	return slices.Concat(c.pkg.TestImports, c.pkg.XTestImports)
}

// find returns the first of the import paths that the pattern takes in, or "".
func find(pattern string, importPaths []string) string {
	for _, path := range importPaths {
		if name, _ := ours(path); matches(pattern, name) {
			return name
		}
	}
	return ""
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
