package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// setting is one key as text, for the environment and for flags.
type setting struct {
	key   string
	usage string
	set   func(*Config, string) error
	get   func(*Config) string
}

// settings are all keys, in the order of Config.
var settings = []setting{
	text("data", "directory of the log and the snapshots", func(c *Config) *string { return &c.Data }),
	text("grpc_addr", "where the gRPC API is served", func(c *Config) *string { return &c.GRPCAddr }),
	text("http_addr", "where the page, /metrics, /healthz and /readyz are served", func(c *Config) *string { return &c.HTTPAddr }),
	choice("profiles", "whether /debug/pprof is served beside /metrics", func(c *Config) *bool { return &c.Profiles }),
	text("policy_file", "policy to apply at the first start (default a sample)", func(c *Config) *string { return &c.PolicyFile }),

	text("tls_cert", "certificate of the gRPC and HTTP ports (default plain text)", func(c *Config) *string { return &c.TLSCert }),
	text("tls_key", "its key", func(c *Config) *string { return &c.TLSKey }),
	text("tls_client_ca", "authorities whose certificates callers can show", func(c *Config) *string { return &c.TLSClientCA }),
	text("tokens_file", "hashes of the tokens that callers can send", func(c *Config) *string { return &c.TokensFile }),

	text("peer_addr", "where other members reach this node (default a node that is alone)", func(c *Config) *string { return &c.PeerAddr }),
	text("peer_advertise", "peer address to tell other members (default peer_addr)", func(c *Config) *string { return &c.PeerAdvertise }),
	text("grpc_advertise", "API address to tell other members (default grpc_addr)", func(c *Config) *string { return &c.GRPCAdvertise }),
	list("join", "peer addresses at which to look for a cluster, parted by commas", func(c *Config) *[]string { return &c.Join }),
	number("bootstrap_expect", "found a cluster once so many nodes see each other", func(c *Config) *int { return &c.BootstrapExpect }),
	text("peer_ca", "authority of the members' certificates", func(c *Config) *string { return &c.PeerCA }),
	text("peer_cert", "this node's certificate", func(c *Config) *string { return &c.PeerCert }),
	text("peer_key", "its key", func(c *Config) *string { return &c.PeerKey }),
	span("election_timeout", "how long a leader may be silent", func(c *Config) *time.Duration { return &c.ElectionTimeout }),

	text("log_level", "debug, info, warn or error", func(c *Config) *string { return &c.LogLevel }),
	text("log_format", "text or json", func(c *Config) *string { return &c.LogFormat }),
	text("traces_endpoint", "collector of traces, http://host:port or https:// (default none)", func(c *Config) *string { return &c.TracesEndpoint }),
	ratio("traces_ratio", "how many of the calls are traced whose callers did not decide, 0 to 1", func(c *Config) *float64 { return &c.TracesRatio }),
	span("drain_delay", "time between turning unhealthy and refusing calls", func(c *Config) *time.Duration { return &c.DrainDelay }),
	span("shutdown_timeout", "time that calls under way get to end", func(c *Config) *time.Duration { return &c.ShutdownTimeout }),
}

func text(key, usage string, at func(*Config) *string) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) error { *at(c) = v; return nil },
		get: func(c *Config) string { return *at(c) },
	}
}

func span(key, usage string, at func(*Config) *time.Duration) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) (err error) { *at(c), err = time.ParseDuration(v); return err },
		get: func(c *Config) string { return at(c).String() },
	}
}

func number(key, usage string, at func(*Config) *int) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) (err error) { *at(c), err = strconv.Atoi(v); return err },
		get: func(c *Config) string { return strconv.Itoa(*at(c)) },
	}
}

func ratio(key, usage string, at func(*Config) *float64) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) (err error) { *at(c), err = strconv.ParseFloat(v, 64); return err },
		get: func(c *Config) string { return strconv.FormatFloat(*at(c), 'g', -1, 64) },
	}
}

func choice(key, usage string, at func(*Config) *bool) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) (err error) { *at(c), err = strconv.ParseBool(v); return err },
		get: func(c *Config) string { return strconv.FormatBool(*at(c)) },
	}
}

func list(key, usage string, at func(*Config) *[]string) setting {
	return setting{
		key: key, usage: usage,
		set: func(c *Config, v string) error {
			*at(c) = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		},
		get: func(c *Config) string { return strings.Join(*at(c), ",") },
	}
}

func (s setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }
func (s setting) env() string  { return "ADMIT_" + strings.ToUpper(s.key) }

// AddFlags defines one flag for each setting.
func AddFlags(flags *pflag.FlagSet) {
	defaults := DefaultConfig()
	for _, s := range settings {
		flags.String(s.flag(), s.get(&defaults), s.usage+" ["+s.env()+"]")
	}
}

// Load fills a Config: defaults, the file (none if empty), the environment as
// lookup tells it, the flags that were given. It does not validate.
func Load(file string, lookup func(string) (string, bool), flags *pflag.FlagSet) (Config, error) {
	cfg := DefaultConfig()
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return cfg, fmt.Errorf("read the configuration: %w", err)
		}
		if err := decode(data, &cfg); err != nil {
			return cfg, fmt.Errorf("read the configuration %s: %w", file, err)
		}
	}
	var wrong []error
	for _, s := range settings {
		if v, ok := lookup(s.env()); ok {
			wrong = append(wrong, explain(s.env(), s.set(&cfg, v)))
		}
		if f := flags.Lookup(s.flag()); f != nil && f.Changed {
			wrong = append(wrong, explain("--"+s.flag(), s.set(&cfg, f.Value.String())))
		}
	}
	return cfg, errors.Join(wrong...)
}

func explain(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// decode reads a file over what cfg holds. Keys that nobody knows are errors,
// and so is a second document, which would be ignored.
func decode(data []byte, cfg *Config) error {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	switch err := dec.Decode(cfg); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return readableYAML(err)
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("has more than one document")
	}
	return nil
}

// readableYAML puts what yaml says about a file into one line.
func readableYAML(err error) error {
	var types *yaml.TypeError
	if !errors.As(err, &types) {
		return err
	}
	lines := make([]string, len(types.Errors))
	for i, line := range types.Errors {
		lines[i] = strings.ReplaceAll(line, "field ", "unknown key ")
		lines[i] = strings.ReplaceAll(lines[i], " not found in type config.Config", "")
	}
	return errors.New(strings.Join(lines, "; "))
}
