package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// The README is true: what it says to type is typed, in its order, into two
// shells, and prints what the README shows. Only tokens may differ, each in the
// same way wherever it stands; the ports are free ones.
func TestTheReadmeIsTrue(t *testing.T) {
	t.Parallel() // with the others that bound no time
	root := harness.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	r := newReader(t, root)
	for _, b := range blocks(readme) {
		if !t.Run(fmt.Sprintf("line-%d", b.line), func(t *testing.T) { r.follow(t, b) }) {
			return // what comes after builds on it
		}
	}
	t.Run("what it prints to try next works", r.tryNext)
	t.Run("commands in its prose work", func(t *testing.T) { r.mentioned(t, readme) })
	t.Run("what it leaves is ignored by git", func(t *testing.T) { checkLeftovers(t, r.dir, r.ignore) })
	t.Run("links lead somewhere", func(t *testing.T) { checkLinks(t, root, readme) })
	t.Run("Ctrl-C stops the node", r.stop)
}

// reader is a newcomer who does what the README says.
type reader struct {
	dir    string    // where the module seems to be
	ignore []string  // what git ignores there
	tools  string    // stand-ins for programs
	node   *terminal // where admitd runs
	shell  *terminal // where everything else is typed
	addr   string    // where the node is, in place of readmeAddr
	next   []string  // what the node printed to try next
	tokens tokens
}

// readmeAddr is the default address, which a test can't count on being free.
const readmeAddr = "127.0.0.1:7420"

func newReader(t *testing.T, root string) *reader {
	t.Helper()
	dir := harness.Folder(t)
	r := &reader{dir: filepath.Join(dir, "admit"), tools: filepath.Join(dir, "tools"), tokens: tokens{}}
	r.ignore = ignoredNames(t, root)
	linkModule(t, root, r.dir, r.ignore)
	env := installGo(t, root, r.tools)
	r.shell = openTerminal(t, r.dir, env...)
	r.node = openTerminal(t, r.dir, append(env, "XDG_STATE_HOME="+filepath.Join(dir, "state"),
		"ADMIT_GRPC_ADDR=127.0.0.1:0", "ADMIT_HTTP_ADDR=127.0.0.1:0")...)
	return r
}

// follow does what a block says. A kind of block that it can't try is an error,
// so that none is added untried.
func (r *reader) follow(t *testing.T, b block) {
	text := strings.Join(b.lines, "\n")
	if strings.Contains(text, "python") {
		installPython(t, r.tools, r.shell)
	}
	switch {
	case b.lang == "sh" && text == "go run ./cmd/admitd":
		r.start(t, text)
	case b.lang == "sh" && text == "go test ./...": // which is running this
	case b.lang == "console":
		for _, c := range b.commands(t) {
			r.enter(t, c)
		}
	case b.lang == "python":
		r.save(t, b)
	case b.lang == "text": // a figure
	default:
		t.Errorf("README.md:%d: nobody knows how to try this block", b.line)
	}
}

var ready = regexp.MustCompile(`^admitd is ready: gRPC on (127\.0\.0\.1:\d+), metrics on `)

// start runs the node, and tells the shell where it is.
func (r *reader) start(t *testing.T, text string) {
	r.node.enter(t, text)
	for r.addr == "" {
		if m := ready.FindStringSubmatch(r.node.readLine(t)); m != nil {
			r.addr = m[1]
		}
	}
	for line := r.node.readLine(t); line != "" || r.next == nil; line = r.node.readLine(t) {
		if text, ok := strings.CutPrefix(line, "  "); ok {
			r.next = append(r.next, text)
		}
	}
	r.shell.export(t, "ADMIT_ADDR="+r.addr)
}

// enter types a command and compares what is printed.
func (r *reader) enter(t *testing.T, c command) {
	t.Helper()
	text, err := r.tokens.translate(strings.ReplaceAll(c.text, readmeAddr, r.addr))
	if err != nil {
		t.Fatalf("README.md:%d: %v", c.line, err)
	}
	r.shell.enter(t, text)
	got, code := r.shell.finish(t)
	if err := r.tokens.compare(c.want, got); err != nil {
		t.Fatalf("README.md:%d: $ %s\n%v\nwant:\n%s\ngot:\n%s", c.line, text, err, strings.Join(c.want, "\n"), strings.Join(got, "\n"))
	}
	// A failure that the README shows is one; any other would not be seen there.
	refused := slices.ContainsFunc(c.want, func(line string) bool { return strings.HasPrefix(line, "admitctl: ") })
	if refused != (code != 0) {
		t.Fatalf("README.md:%d: $ %s\nended with code %d", c.line, text, code)
	}
}

var pythonFile = regexp.MustCompile(`^# (\S+\.py)\b`)

// save writes a program into the file that its first line names.
func (r *reader) save(t *testing.T, b block) {
	m := pythonFile.FindStringSubmatch(b.lines[0])
	if m == nil {
		t.Fatalf("README.md:%d: the first line doesn't name a file", b.line)
	}
	text := strings.Join(b.lines, "\n") + "\n"
	if !strings.Contains(text, readmeAddr) {
		t.Fatalf("README.md:%d: the program doesn't call %s", b.line, readmeAddr)
	}
	text = strings.ReplaceAll(text, readmeAddr, r.addr)
	if err := os.WriteFile(filepath.Join(r.dir, m[1]), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tryNext enters what the node printed. grpcurl is not something to require.
func (r *reader) tryNext(t *testing.T) {
	tried := 0
	for _, text := range r.next {
		if strings.HasPrefix(text, "grpcurl ") {
			continue
		}
		r.shell.enter(t, text)
		if got, code := r.shell.finish(t); code != 0 {
			t.Errorf("%s\nended with code %d:\n%s", text, code, strings.Join(got, "\n"))
		}
		tried++
	}
	if tried == 0 {
		t.Errorf("nothing to try among %q", r.next)
	}
}

var mention = regexp.MustCompile("`(admit(?:d|ctl) [^`]+)`")

// mentioned enters the commands that stand in the text between the blocks.
func (r *reader) mentioned(t *testing.T, readme string) {
	all := mention.FindAllStringSubmatch(readme, -1)
	if len(all) == 0 {
		t.Error("found none")
	}
	for _, m := range all {
		r.shell.enter(t, m[1])
		if got, code := r.shell.finish(t); code != 0 || len(got) == 0 {
			t.Errorf("%s\nended with code %d:\n%s", m[1], code, strings.Join(got, "\n"))
		}
	}
}

// stop ends the node as whoever started it would. The code is that of the go
// command, which was interrupted as well.
func (r *reader) stop(t *testing.T) {
	r.node.interrupt(t)
	got, _ := r.node.finish(t)
	if !strings.Contains(strings.Join(got, "\n"), "msg=stopped") {
		t.Errorf("the node did not stop in order:\n%s", strings.Join(got, "\n"))
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)\)`)

func checkLinks(t *testing.T, root, readme string) {
	for _, m := range link.FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Error(err)
		}
	}
}
