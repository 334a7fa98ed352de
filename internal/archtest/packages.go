package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// modulePath begins the import path of every package that is ours.
const modulePath = "github.com/admitd/admit"

// goPackage is what the go command knows of a package.
type goPackage struct {
	ImportPath     string
	Dir            string
	Export         string
	GoFiles        []string
	IgnoredGoFiles []string
	Imports        []string
	TestImports    []string
	XTestImports   []string
	Deps           []string

	// testDeps is what the package's test binary is linked from.
	testDeps []string
}

// ours returns an import path as the tables write it, "./server" for a package
// of this module, and whether it is one.
func ours(importPath string) (string, bool) {
	if below, ok := strings.CutPrefix(importPath, modulePath+"/"); ok {
		return "./" + below, true
	}
	return importPath, false
}

// listModule returns every package of the module at root, with what their tests
// are linked from.
func listModule(root string) ([]goPackage, error) {
	listed, err := goList(root, "-test", "./...")
	if err != nil {
		return nil, err
	}
	binaries := make(map[string][]string)
	var pkgs []goPackage
	for _, p := range listed {
		if tested, ok := strings.CutSuffix(p.ImportPath, ".test"); ok {
			binaries[tested] = plainPaths(p.Deps)
		} else if !strings.Contains(p.ImportPath, " [") {
			pkgs = append(pkgs, p)
		}
	}
	for i, p := range pkgs {
		pkgs[i].testDeps = binaries[p.ImportPath]
	}
	return pkgs, nil
}

// plainPaths takes the mark off packages that were rebuilt for a test:
// "p [q.test]" is p.
func plainPaths(paths []string) []string {
	plain := make([]string, 0, len(paths))
	for _, p := range paths {
		p, _, _ = strings.Cut(p, " [")
		plain = append(plain, p)
	}
	slices.Sort(plain)
	return slices.Compact(plain)
}

// goList runs go list in dir and returns the packages that it names.
func goList(dir string, args ...string) ([]goPackage, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles," +
		"Imports,TestImports,XTestImports,Deps"}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	var pkgs []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading what go list said: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}
