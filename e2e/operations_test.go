package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// docs/operations.md is true: its files are written and its commands typed, in
// their order, into one shell, and print what the page shows. Ports are free ones,
// and the machines are folders of this one with an address of their own.
func TestTheOperationsPageIsTrue(t *testing.T) {
	t.Parallel() // with the others that bound no time: it mostly waits
	root := harness.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	o := newOperator(t)
	for _, b := range blocks(string(text)) {
		if !t.Run(fmt.Sprintf("line-%d", b.line), func(t *testing.T) { o.follow(t, b) }) {
			o.showLogs(t)
			return // what comes after builds on it
		}
	}
}

// operator does what the page says.
type operator struct {
	page          string // the file in docs
	dir, machines string
	ports         string // the first two digits of all ports, in place of 74
	grpc, http    string // those of a node that runs already, in place of ports 7420 and 7422
	shell         *terminal
}

func newOperator(t *testing.T) *operator {
	t.Helper()
	dir := harness.Folder(t)
	o := &operator{page: "operations.md", dir: filepath.Join(dir, "here"), machines: filepath.Join(dir, "machines"), ports: freePorts(t)}
	tools := filepath.Join(dir, "tools")
	for _, d := range []string{o.dir, o.machines, tools} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		// A machine is a folder; its users come into it.
		"ssh": `cd "$MACHINES" && mkdir -p "$1" && cd "$1" && shift && exec bash -c "$*"`,
		"scp": `shift; to=${*: -1}; set -- "${@:1:$#-1}"; exec cp "$@" "$MACHINES/${to%%:*}/${to#*:}"`,
	} {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/bash\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	admitd, admitctl := harness.Binary(t, "admitd"), harness.Binary(t, "admitctl")
	o.shell = openTerminal(t, o.dir, "MACHINES="+o.machines, fmt.Sprintf("PATH=%s:%s:%s:%s",
		tools, filepath.Dir(admitd), filepath.Dir(admitctl), os.Getenv("PATH")))
	o.shell.export(t, "ADMIT_ADDR="+o.here("127.0.0.1:7420"))
	return o
}

// freePorts returns the first two digits of ports of which those that the page uses
// are free.
func freePorts(t *testing.T) string {
	t.Helper()
	for prefix := 20; prefix < 32; prefix++ {
		free := true
		for _, last := range []int{20, 21, 22, 24, 30, 31, 32, 40, 41, 42} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d%d", prefix, last))
			if err == nil {
				err = l.Close()
			}
			free = free && err == nil
		}
		if free {
			return fmt.Sprint(prefix)
		}
	}
	t.Fatal("no ports are free")
	return ""
}

var pagePort = regexp.MustCompile(`:74(\d\d|\$)`)

// here turns the page's ports and machines into those of this run.
func (o *operator) here(text string) string {
	if o.http != "" {
		text = strings.NewReplacer("127.0.0.1:7420", o.grpc, "127.0.0.1:7422", o.http).Replace(text)
	}
	return strings.ReplaceAll(pagePort.ReplaceAllString(text, ":"+o.ports+"$1"), "10.0.0.", "127.0.1.")
}

// follow does what a block says. A kind of block that it can't try is an error, so
// that none is added untried.
func (o *operator) follow(t *testing.T, b block) {
	name, isFile := strings.CutPrefix(b.lines[0], "# ")
	switch {
	case (b.lang == "yaml" || b.lang == "sh") && isFile:
		text := o.here(strings.Join(b.lines, "\n") + "\n")
		if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	case b.lang == "console":
		for _, c := range b.commands(t) {
			o.enter(t, c)
		}
	default:
		t.Errorf("%s:%d: nobody knows how to try this block", o.page, b.line)
	}
}

// enter types a command, which must succeed, and compares what is printed.
func (o *operator) enter(t *testing.T, c command) {
	t.Helper()
	o.shell.enter(t, o.here(c.text))
	got, code := o.shell.finish(t)
	want := make([]string, len(c.want))
	for i, line := range c.want {
		want[i] = shape(o.here(line))
	}
	for i := range got {
		got[i] = shape(got[i])
	}
	if code != 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%s:%d: $ %s\nends with %d; want:\n%s\ngot:\n%s", o.page, c.line, c.text, code,
			strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

var (
	madeUp  = regexp.MustCompile(`(node-\d)-[0-9a-f]{12}\b`)
	anyRole = regexp.MustCompile(`\b(leader|voter)\b`)
	columns = regexp.MustCompile(` +`)
	decided = regexp.MustCompile(` up \d+ ([0-9a-f]{16}|-) `)
)

// shape takes from a line what differs from run to run: what is made up, who leads,
// how far the log is, what was decided and how wide that makes a column.
func shape(line string) string {
	line = columns.ReplaceAllString(line, " ")
	line = madeUp.ReplaceAllString(line, "$1-X")
	return decided.ReplaceAllString(anyRole.ReplaceAllString(line, "voter"), " up N D ")
}

// showLogs shows what the nodes said, after a failure.
func (o *operator) showLogs(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{o.dir + "/*.log", o.machines + "/*/admit/log"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Error(err)
			}
			t.Logf("%s:\n%s", file, text[max(0, len(text)-4000):])
		}
	}
}
