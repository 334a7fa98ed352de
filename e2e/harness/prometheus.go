package harness

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Prometheus is a Prometheus that watches one target, each second.
type Prometheus struct {
	t       testing.TB
	addr    string
	process *Process
}

// FindProm returns the path of one of Prometheus's programs. It ends the test if there
// is none.
func FindProm(t testing.TB, name string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "%s of Debian's package prometheus", name)
	}
	return program
}

// StartPrometheus starts a Prometheus in dir that scrapes the target and has the rules,
// and waits until it serves.
func StartPrometheus(t testing.TB, dir, target string, rules []byte) *Prometheus {
	t.Helper()
	program := FindProm(t, "prometheus")
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n" +
		"scrape_configs: [{job_name: admit, static_configs: [{targets: ['" + target + "']}]}]\n"
	for name, text := range map[string]string{"prometheus.yaml": config, "rules.yaml": string(rules)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatalf("configure Prometheus: %v", err)
		}
	}
	p := &Prometheus{t: t, addr: freeAddr(t, "127.0.0.1")}
	p.process = start(t, filepath.Join(dir, "prometheus.log"), exec.Command(program,
		"--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "tsdb"),
		"--web.listen-address="+p.addr))
	t.Cleanup(p.process.Kill)
	if err := p.process.waitReady(20*time.Second, func() bool { return p.get("/-/ready", nil) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// Firing says whether an alert fires.
func (p *Prometheus) Firing(alert string) bool {
	var found struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	if !p.get("/api/v1/alerts", &found) {
		return false
	}
	for _, a := range found.Data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == alert {
			return true
		}
	}
	return false
}

// get asks for a page and reads what it says, and says whether it could.
func (p *Prometheus) get(path string, into any) bool {
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	resp, err := once.Get("http://" + p.addr + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && (into == nil || json.NewDecoder(resp.Body).Decode(into) == nil)
}
