package harness

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/admitd/admit/e2e/judge"
)

// NGINX is a provider with a rate limit: nginx with limit_req, which answers 200
// or 429 and notes every request in its access log.
type NGINX struct {
	// Addr is where it serves HTTP.
	Addr string

	t       testing.TB
	access  string
	process *Process
}

// nginxConfig has one process, so that one clock and one counter decide, and
// stores nothing outside its folder. The page is a file because `return` would
// answer before limit_req is asked.
var nginxConfig = template.Must(template.New("nginx.conf").Parse(`
daemon off;
master_process off;
pid {{.Dir}}/nginx.pid;
error_log {{.Dir}}/nginx-error.log warn;
events { worker_connections 256; }
http {
    client_body_temp_path {{.Dir}}/body;
    proxy_temp_path {{.Dir}}/proxy;
    fastcgi_temp_path {{.Dir}}/fastcgi;
    uwsgi_temp_path {{.Dir}}/uwsgi;
    scgi_temp_path {{.Dir}}/scgi;
    keepalive_timeout 1h;
    keepalive_requests 1000000;
    log_format judge '$msec $status $request_uri';
    limit_req_zone $server_name zone=provider:1m rate={{.Rate}}r/s;
    limit_req_log_level info;
    server {
        listen {{.Addr}};
        server_name provider;
        root {{.Dir}};
        location = /up { access_log off; try_files /page =500; }
        location / {
            access_log {{.Dir}}/access.log judge;
            limit_req zone=provider burst={{.Burst}} nodelay;
            limit_req_status 429;
            try_files /page =500;
        }
    }
}
`))

// StartNGINX starts an nginx in dir that lets rate requests a second through and
// burst more at once, and waits until it serves.
func StartNGINX(t testing.TB, dir string, rate, burst int) *NGINX {
	t.Helper()
	program := FindNGINX(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make nginx's folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "page"), []byte("sent\n"), 0o644); err != nil {
		t.Fatalf("write nginx's page: %v", err)
	}
	// nginx can't be told to take a free port, so a port that was free a moment
	// ago may be taken: then the next one is tried.
	var err error
	for range 5 {
		n := &NGINX{t: t, Addr: freeAddr(t, "127.0.0.1"), access: filepath.Join(dir, "access.log")}
		config := filepath.Join(dir, "nginx.conf")
		n.writeConfig(config, dir, rate, burst)
		n.process = start(t, filepath.Join(dir, "nginx.log"), exec.Command(program, "-c", config, "-e", filepath.Join(dir, "nginx-error.log"), "-p", dir))
		t.Cleanup(n.process.Kill)
		if err = n.process.waitReady(5*time.Second, n.serves); err == nil {
			return n
		}
	}
	t.Fatal(err)
	return nil
}

// FindNGINX returns the path of nginx. It ends the test if there is none.
func FindNGINX(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		const debian = "/usr/sbin/nginx" // not on the PATH of ordinary users
		if _, err := os.Stat(debian); err != nil {
			Missing(t, "nginx")
		}
		program = debian
	}
	return program
}

func (n *NGINX) writeConfig(path, dir string, rate, burst int) {
	n.t.Helper()
	f, err := os.Create(path)
	if err != nil {
		n.t.Fatalf("write nginx's configuration: %v", err)
	}
	defer f.Close()
	err = nginxConfig.Execute(f, map[string]any{"Dir": dir, "Addr": n.Addr, "Rate": rate, "Burst": burst})
	if err != nil {
		n.t.Fatalf("write nginx's configuration: %v", err)
	}
}

func (n *NGINX) serves() bool {
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	resp, err := once.Get("http://" + n.Addr + "/up")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Stop ends nginx, after which Requests are complete.
func (n *NGINX) Stop() { n.process.Stop(10 * time.Second) }

// Requests returns the requests that were answered so far, in order.
func (n *NGINX) Requests() []judge.Request {
	n.t.Helper()
	f, err := os.Open(n.access)
	if err != nil {
		n.t.Fatalf("read nginx's access log: %v", err)
	}
	defer f.Close()
	var all []judge.Request
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		r, err := parseRequest(lines.Text())
		if err != nil {
			n.t.Fatalf("read nginx's access log: %v", err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		n.t.Fatalf("read nginx's access log: %v", err)
	}
	return all
}

func parseRequest(line string) (judge.Request, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return judge.Request{}, fmt.Errorf("line %q has not three fields", line)
	}
	seconds, millis, _ := strings.Cut(fields[0], ".")
	sec, err1 := strconv.ParseInt(seconds, 10, 64)
	ms, err2 := strconv.ParseInt(millis, 10, 64)
	status, err3 := strconv.Atoi(fields[1])
	if err1 != nil || err2 != nil || err3 != nil {
		return judge.Request{}, fmt.Errorf("line %q is not a time, a status and a path", line)
	}
	return judge.Request{At: time.Unix(sec, ms*int64(time.Millisecond)), Status: status, Path: fields[2]}, nil
}
