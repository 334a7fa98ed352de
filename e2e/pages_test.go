package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// The pages of recipes, of fairness, of the page and of the sidecar are true: their files are written and their
// commands typed, in their order, into one shell beside one node, and print what the
// pages show.
func TestThePagesAreTrue(t *testing.T) {
	t.Parallel() // with the others that bound no time
	root := harness.Root(t)
	for _, page := range []string{"fairness.md", "page.md", "recipes.md", "sidecar.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		o := newCook(t, page)
		for _, b := range blocks(string(text)) {
			if !t.Run(fmt.Sprintf("%s/line-%d", page, b.line), func(t *testing.T) { o.follow(t, b) }) {
				break // what comes after builds on it
			}
		}
		t.Run(page+"/links lead somewhere", func(t *testing.T) { checkLinks(t, filepath.Join(root, "docs"), string(text)) })
	}
}

// newCook is an operator with a node that runs already. The stores of other queues are
// stand-ins that have 250 jobs each.
func newCook(t *testing.T, page string) *operator {
	t.Helper()
	dir := harness.Folder(t)
	o := &operator{page: page, dir: filepath.Join(dir, "here"), ports: freePorts(t)}
	tools := filepath.Join(dir, "tools")
	for _, d := range []string{o.dir, tools} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"redis-cli", "psql"} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\necho 250\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	node := harness.StartNode(t, filepath.Join(dir, "node"))
	o.grpc, o.http = node.Addr(), node.HTTPAddr()
	path := []string{tools, filepath.Dir(harness.Binary(t, "admitctl")), filepath.Dir(harness.Binary(t, "admitd")), os.Getenv("PATH")}
	o.shell = openTerminal(t, o.dir, "ADMIT_ADDR="+node.Addr(), "PATH="+strings.Join(path, ":"))
	return o
}
