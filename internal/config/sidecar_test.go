package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// Each file of testdata/invalid-sidecar says on its first line what is said about it.
func TestInvalidSidecarFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid-sidecar/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			want := strings.TrimPrefix(first, "# ")
			cfg, err := LoadSidecar(file, noEnv, pflag.NewFlagSet("", pflag.ContinueOnError))
			if err == nil {
				err = cfg.Validate()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestSidecarDefaultsAreValid(t *testing.T) {
	if err := DefaultSidecar().Validate(); err != nil {
		t.Error(err)
	}
}

// Everything may be on a Unix socket, and nothing beside it.
func TestASocketAlone(t *testing.T) {
	cfg := DefaultSidecar()
	cfg.HTTPAddr = ""
	for _, listen := range []string{"unix:sock", "unix:/run/sock", "unix:///run/sock"} {
		if cfg.Listen = listen; cfg.Validate() != nil {
			t.Errorf("%s: %v", listen, cfg.Validate())
		}
	}
}

// Every key of Sidecar can be set in all three places, and the nearer one wins.
func TestSidecarSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sidecar.yaml")
	text := "listen: file\nsocket_mode: 0600\nhttp_addr: file\ngrace: 1s\nmax_permits: 7\nupstream: [a, b]\n" +
		"max_shares: 8\nnode: n\nnode_owned: 2\nnode_total: 3\nca_cert: ca\ncert: c\nkey: k\ntoken_file: t\nlog_format: json\nshutdown_timeout: 1m\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ADMIT_SIDECAR_HTTP_ADDR": "env", "ADMIT_SIDECAR_GRACE": "2s", "ADMIT_GRACE": "of a node"}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddSidecarFlags(flags)
	if err := flags.Parse([]string{"--grace=3s", "--max-lifetime", "1h", "--log-level=warn"}); err != nil {
		t.Fatal(err)
	}
	got, err := LoadSidecar(file, func(k string) (string, bool) { v, ok := env[k]; return v, ok }, flags)
	if err != nil {
		t.Fatal(err)
	}
	want := Sidecar{
		Listen: "file", SocketMode: "0600", Upstream: []string{"a", "b"}, CACert: "ca", Cert: "c", Key: "k", TokenFile: "t",
		HTTPAddr: "env", Grace: 3 * time.Second, MaxLifetime: time.Hour, MaxPermits: 7,
		MaxShares: 8, Node: "n", NodeOwned: 2, NodeTotal: 3,
		LogLevel: "warn", LogFormat: "json", ShutdownTimeout: time.Minute,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if mode, ok := got.Mode(); !ok || mode != 0o600 {
		t.Errorf("the mode is %v", mode)
	}
	all := reflect.ValueOf(want)
	if all.NumField() != len(sidecarForm.settings) {
		t.Errorf("%d fields, %d settings", all.NumField(), len(sidecarForm.settings))
	}
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("%s has not been tried", all.Type().Field(i).Name)
		}
	}
}
