package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/admitd/admit/internal/certs"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"admitd": main})
}

// Each script runs admitd as a user would.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"occupy":  occupy,
			"await":   await,
			"crowd":   crowd,
			"fetch":   fetch,
			"certify": certify,
		},
	})
}

// occupy takes a free port and puts its address into a variable: `occupy NAME`.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: occupy NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

// certify issues a node a certificate, in a folder: `certify DIR NAME`.
func certify(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certify DIR NAME")
	}
	_, err := certs.Init(ts.MkAbs(args[0]), []certs.Subject{{Name: args[1]}}, time.Now())
	ts.Check(err)
}

// crowd connects to an address in a file, many times: `crowd FILE REGEXP N`.
func crowd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: crowd FILE REGEXP N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	addr := find(ts, args[0], args[1])
	for range n {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		ts.Check(err)
		ts.Defer(func() { _ = conn.Close() })
	}
}

// fetch prints what is at a URL in a file: `fetch FILE REGEXP`.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fetch FILE REGEXP")
	}
	c := http.Client{Timeout: 8 * time.Second} // less than a server lets a caller take to speak
	defer c.CloseIdleConnections()
	resp, err := c.Get(find(ts, args[0], args[1]))
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
}

// find returns the group of a regular expression in a file.
func find(ts *testscript.TestScript, file, expr string) string {
	found := regexp.MustCompile(expr).FindStringSubmatch(ts.ReadFile(file))
	if len(found) != 2 {
		ts.Fatalf("%s has no %s", file, expr)
	}
	return found[1]
}

// await waits until a file has a text: `await FILE TEXT`.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE TEXT")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if data, err := os.ReadFile(filepath.Clean(ts.MkAbs(args[0]))); err == nil && strings.Contains(string(data), args[1]) {
			return
		}
	}
	ts.Fatalf("%s never had %q", args[0], args[1])
}
