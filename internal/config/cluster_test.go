package config

import (
	"testing"

	"github.com/spf13/pflag"
)

// What a member of a cluster on three machines, one on this machine alone and a
// lone node that callers reach from elsewhere say is right.
func TestWhatIsSafeIsAccepted(t *testing.T) {
	member := map[string]string{"ADMIT_PEER_CA": "ca", "ADMIT_PEER_CERT": "c", "ADMIT_PEER_KEY": "k"}
	public := map[string]string{"ADMIT_TLS_CERT": "c", "ADMIT_TLS_KEY": "k", "ADMIT_TOKENS_FILE": "t"}
	for name, env := range map[string]map[string]string{
		"on three machines": with(member, public, map[string]string{
			"ADMIT_GRPC_ADDR": "0.0.0.0:7420", "ADMIT_GRPC_ADVERTISE": "10.0.0.1:7420", "ADMIT_HTTP_ADDR": ":7422",
			"ADMIT_PEER_ADDR": "0.0.0.0", "ADMIT_PEER_ADVERTISE": "one.example.org",
			"ADMIT_JOIN": "10.0.0.1,10.0.0.2:7421,three.example.org", "ADMIT_BOOTSTRAP_EXPECT": "3",
		}),
		"on one machine": with(member, map[string]string{"ADMIT_PEER_ADDR": "127.0.0.1:0", "ADMIT_GRPC_ADDR": "localhost:0"}),
		"with client certificates": {
			"ADMIT_GRPC_ADDR": "[::]:7420", "ADMIT_TLS_CERT": "c", "ADMIT_TLS_KEY": "k", "ADMIT_TLS_CLIENT_CA": "ca",
		},
		"encrypted on loopback": {"ADMIT_TLS_CERT": "c", "ADMIT_TLS_KEY": "k"},
	} {
		cfg, err := Load("", func(k string) (string, bool) { v, ok := env[k]; return v, ok }, pflag.NewFlagSet("", pflag.ContinueOnError))
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func with(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

func TestPeerPort(t *testing.T) {
	for addr, want := range map[string]string{
		"":               "",
		"10.0.0.1":       "10.0.0.1:7421",
		"one.example":    "one.example:7421",
		"::1":            "[::1]:7421",
		"10.0.0.1:9":     "10.0.0.1:9",
		"[::1]:9":        "[::1]:9",
		"one.example:0":  "one.example:0",
		"one.example:no": "one.example:no",
	} {
		if got := WithPeerPort(addr); got != want {
			t.Errorf("%q: got %q, want %q", addr, got, want)
		}
	}
}
