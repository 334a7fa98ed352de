package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxLines is where a file is two ideas.
const maxLines = 500

// vagueNames are package names that say nothing, so that anything gathers
// under them.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}

// sources are the module's own source files by path, slashes between.
type sources map[string][]byte

// readSources reads the .go and .proto files below root, but for testdata and
// what the go command does not look at either.
func readSources(root string) (sources, error) {
	files := make(sources)
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext != ".go" && ext != ".proto" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, file)
		files[filepath.ToSlash(below)] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sources: %w", err)
	}
	return files, nil
}

// checkLayout returns what is wrong with the layout, a line for each.
func checkLayout(files sources) []string {
	var wrong []string
	for _, check := range []func(sources) []string{
		checkLength, checkPackages, checkGenerated, checkStatus, checkLogKeys,
	} {
		wrong = append(wrong, check(files)...)
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// checkLength refuses long files, generated ones aside.
func checkLength(files sources) []string {
	var wrong []string
	for file, text := range files {
		if n := bytes.Count(text, []byte("\n")); n > maxLines && !isGenerated(text) {
			wrong = append(wrong, fmt.Sprintf("%s has %d lines, more than %d: it is probably two ideas", file, n, maxLines))
		}
	}
	return wrong
}

// checkPackages refuses vague names, and packages that do not say what they are
// in one place where a reader looks for it.
func checkPackages(files sources) []string {
	var wrong []string
	for dir, parsed := range parsePackages(files, &wrong) {
		for _, name := range []string{path.Base(dir), parsed[0].file.Name.Name} {
			if slices.Contains(vagueNames, strings.TrimSuffix(name, "_test")) {
				wrong = append(wrong, fmt.Sprintf("%s: a package named %s says nothing; name it after what it does", dir, name))
				break
			}
		}
		wrong = append(wrong, checkComment(dir, parsed)...)
	}
	return wrong
}

// sourceFile is a parsed file of a package.
type sourceFile struct {
	name string
	file *ast.File
}

// parsePackages parses the hand-written files down to their imports, by folder
// and sorted by name. What does not parse is added to wrong.
func parsePackages(files sources, wrong *[]string) map[string][]sourceFile {
	byDir := make(map[string][]sourceFile)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".go" || isGenerated(files[name]) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			*wrong = append(*wrong, err.Error())
			continue
		}
		byDir[path.Dir(name)] = append(byDir[path.Dir(name)], sourceFile{path.Base(name), f})
	}
	return byDir
}

// checkComment wants one package comment, in doc.go or the file of the
// package's name; for a command in main.go too.
func checkComment(dir string, parsed []sourceFile) []string {
	name := strings.TrimSuffix(parsed[0].file.Name.Name, "_test")
	opening, homes := "Package "+name+" ", []string{"doc.go", name + ".go", name + "_test.go", "main_test.go"}
	if name == "main" {
		command := path.Base(dir)
		opening, homes = "Command "+command+" ", []string{"main.go", "doc.go", command + ".go"}
	}
	var found []string
	for _, f := range parsed {
		if f.file.Doc == nil {
			continue
		}
		found = append(found, f.name)
		if !strings.HasPrefix(f.file.Doc.Text(), opening) {
			return []string{fmt.Sprintf("%s/%s: a package comment begins with %q", dir, f.name, opening)}
		}
	}
	if len(found) != 1 || !slices.Contains(homes, found[0]) {
		return []string{fmt.Sprintf("%s has package comments in %q; it needs one, in one of %q", dir, found, homes)}
	}
	return nil
}

var (
	generatedLine = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	sourceLine    = regexp.MustCompile(`(?m)^// (?:- )?source: (\S+)$`)
	serviceLine   = regexp.MustCompile(`(?m)^service \w+ \{`)
)

func isGenerated(text []byte) bool { return generatedLine.Match(text) }

// checkGenerated wants generated Go beside its .proto, for every .proto, and
// nothing else below proto/.
func checkGenerated(files sources) []string {
	var wrong []string
	for name, text := range files {
		switch {
		case path.Ext(name) == ".proto":
			wrong = append(wrong, checkProto(files, name)...)
		case isGenerated(text):
			source := sourceLine.FindSubmatch(text)
			if source == nil || !strings.HasPrefix(name, "proto/") || path.Dir(name) != "proto/"+path.Dir(string(source[1])) {
				wrong = append(wrong, name+" is generated, but does not lie beside its .proto")
			} else if _, ok := files["proto/"+string(source[1])]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s is generated from %s, which is gone", name, source[1]))
			}
		case strings.HasPrefix(name, "proto/"):
			wrong = append(wrong, name+" is written by hand; proto/ holds .proto files and what is generated from them")
		}
	}
	return wrong
}

// checkProto wants what is generated from the .proto beside it.
func checkProto(files sources, name string) []string {
	var wrong []string
	stem := strings.TrimSuffix(name, ".proto")
	wanted := []string{stem + ".pb.go"}
	if serviceLine.Match(files[name]) {
		wanted = append(wanted, stem+"_grpc.pb.go")
	}
	for _, w := range wanted {
		if _, ok := files[w]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s lacks %s beside it: run make generate", name, path.Base(w)))
		}
	}
	return wrong
}

// checkStatus keeps gRPC's codes in one file of the server: who reads it knows
// every error that a caller can get. Package forward passes statuses on, and makes
// none.
func checkStatus(files sources) []string {
	var wrong []string
	for dir, parsed := range parsePackages(files, &wrong) {
		if !matches("server/...", dir) {
			continue
		}
		for _, f := range parsed {
			if strings.HasSuffix(f.name, "_test.go") || dir+"/"+f.name == "server/status.go" {
				continue
			}
			for _, imp := range f.file.Imports {
				p := strings.Trim(imp.Path.Value, `"`)
				if p == "google.golang.org/grpc/codes" || p == "google.golang.org/grpc/status" && dir != "server/forward" {
					wrong = append(wrong, fmt.Sprintf("%s/%s imports %s: errors become statuses in server/status.go alone", dir, f.name, p))
				}
			}
		}
	}
	return wrong
}
