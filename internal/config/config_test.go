package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func noEnv(string) (string, bool) { return "", false }

func loadAndValidate(file string) error {
	cfg, err := Load(file, noEnv, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil {
		return err
	}
	return cfg.Validate()
}

// Each file of testdata/invalid says on its first line what is said about it.
func TestInvalidFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
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
			if got := loadAndValidate(file); got == nil || !strings.Contains(got.Error(), want) {
				t.Errorf("got  %v\nwant %s", got, want)
			}
		})
	}
}

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateReturnsEveryProblem(t *testing.T) {
	err := Config{GRPCAddr: "x", HTTPAddr: "y"}.Validate()
	for _, key := range []string{"data: ", "grpc_addr: ", "http_addr: ", "log_level: ", "log_format: ", "shutdown_timeout: "} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%q is missing in %v", key, err)
		}
	}
}

func TestFlagsWinOverEnvironmentOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admitd.yaml")
	text := "data: file\ngrpc_addr: file\nlog_level: file\nshutdown_timeout: 1m30s\njoin: [a]\nbootstrap_expect: 3\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ADMIT_GRPC_ADDR": "env", "ADMIT_LOG_LEVEL": "env", "ADMIT_JOIN": "b, c:1", "ADMIT_PROFILES": "true", "ADMIT_ADDR": "of another program"}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--log-level=flag", "--drain-delay", "3s"}); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file, func(k string) (string, bool) { v, ok := env[k]; return v, ok }, flags)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.Data, want.GRPCAddr, want.LogLevel = "file", "env", "flag"
	want.ShutdownTimeout, want.DrainDelay = 90*time.Second, 3*time.Second
	want.Profiles = true
	want.Join, want.BootstrapExpect = []string{"b", "c:1"}, 3
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBadValuesOutsideOfTheFileAreNamed(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags)
	if err := flags.Parse([]string{"--drain-delay=never"}); err != nil {
		t.Fatal(err)
	}
	env := func(k string) (string, bool) { return "soon", k == "ADMIT_SHUTDOWN_TIMEOUT" }
	_, err := Load("", env, flags)
	for _, name := range []string{"--drain-delay: ", "ADMIT_SHUTDOWN_TIMEOUT: "} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is missing in %v", name, err)
		}
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	if err := loadAndValidate(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestDefaultData(t *testing.T) {
	home := func() (string, error) { return "/home/ann", nil }
	homeless := func() (string, error) { return "", errors.New("no home") }
	for _, c := range []struct {
		state string
		home  func() (string, error)
		want  string
	}{
		{"/var/state", home, "/var/state/admit"},
		{"relative", home, "/home/ann/.local/state/admit"},
		{"", home, "/home/ann/.local/state/admit"},
		{"", homeless, "admit-data"},
	} {
		if got := defaultData(func(string) string { return c.state }, c.home); got != c.want {
			t.Errorf("state %q: got %s, want %s", c.state, got, c.want)
		}
	}
}

// Every key of Config can be set in all three places.
func TestSettingsCoverConfig(t *testing.T) {
	var cfg Config
	for _, s := range settings {
		v := "x"
		switch {
		case strings.HasSuffix(s.key, "_delay") || strings.HasSuffix(s.key, "_timeout"):
			v = "7s"
		case s.key == "bootstrap_expect":
			v = "7"
		case s.key == "traces_ratio":
			v = "0.25"
		case s.key == "profiles":
			v = "true"
		}
		if err := s.set(&cfg, v); err != nil {
			t.Fatal(err)
		}
		if got := s.get(&cfg); got != v {
			t.Errorf("%s: got %s, want %s", s.key, got, v)
		}
	}
	all := reflect.ValueOf(cfg)
	if all.NumField() != len(settings) {
		t.Errorf("%d fields, %d settings", all.NumField(), len(settings))
	}
	for i := range all.NumField() {
		if all.Field(i).IsZero() {
			t.Errorf("%s has no setting", all.Type().Field(i).Name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("data: x\ndrain_delay: 3s\n"))
	f.Add([]byte("data: &a [*a]"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		cfg := DefaultConfig()
		if decode(data, &cfg) == nil {
			_ = cfg.Validate()
		}
	})
}
