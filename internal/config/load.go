package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// setting is one key of a configuration as text, for the environment and for flags.
type setting[C any] struct {
	key   string
	usage string
	set   func(*C, string) error
	get   func(*C) string
}

// settings are all keys, in the order of Config.
var settings = []setting[Config]{
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

func text[C any](key, usage string, at func(*C) *string) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) error { *at(c) = v; return nil },
		get: func(c *C) string { return *at(c) },
	}
}

func span[C any](key, usage string, at func(*C) *time.Duration) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) (err error) { *at(c), err = time.ParseDuration(v); return err },
		get: func(c *C) string { return at(c).String() },
	}
}

func number[C any](key, usage string, at func(*C) *int) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) (err error) { *at(c), err = strconv.Atoi(v); return err },
		get: func(c *C) string { return strconv.Itoa(*at(c)) },
	}
}

func ratio[C any](key, usage string, at func(*C) *float64) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) (err error) { *at(c), err = strconv.ParseFloat(v, 64); return err },
		get: func(c *C) string { return strconv.FormatFloat(*at(c), 'g', -1, 64) },
	}
}

func choice[C any](key, usage string, at func(*C) *bool) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) (err error) { *at(c), err = strconv.ParseBool(v); return err },
		get: func(c *C) string { return strconv.FormatBool(*at(c)) },
	}
}

func list[C any](key, usage string, at func(*C) *[]string) setting[C] {
	return setting[C]{
		key: key, usage: usage,
		set: func(c *C, v string) error {
			*at(c) = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
			return nil
		},
		get: func(c *C) string { return strings.Join(*at(c), ",") },
	}
}

func (s setting[C]) flag() string { return strings.ReplaceAll(s.key, "_", "-") }

// form is how a program is configured.
type form[C any] struct {
	settings []setting[C]
	// prefix begins the names of its environment variables.
	prefix   string
	defaults func() C
}

var nodeForm = form[Config]{settings, "ADMIT_", DefaultConfig}

// AddFlags defines one flag for each setting of a node.
func AddFlags(flags *pflag.FlagSet) { nodeForm.addFlags(flags) }

// Load fills a Config: defaults, the file (none if empty), the environment as
// lookup tells it, the flags that were given. It does not validate.
func Load(file string, lookup func(string) (string, bool), flags *pflag.FlagSet) (Config, error) {
	return nodeForm.load(file, lookup, flags)
}

func (f form[C]) env(s setting[C]) string { return f.prefix + strings.ToUpper(s.key) }

func (f form[C]) addFlags(flags *pflag.FlagSet) {
	defaults := f.defaults()
	for _, s := range f.settings {
		flags.String(s.flag(), s.get(&defaults), s.usage+" ["+f.env(s)+"]")
	}
}

func (f form[C]) load(file string, lookup func(string) (string, bool), flags *pflag.FlagSet) (C, error) {
	cfg := f.defaults()
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
	for _, s := range f.settings {
		if v, ok := lookup(f.env(s)); ok {
			wrong = append(wrong, explain(f.env(s), s.set(&cfg, v)))
		}
		if given := flags.Lookup(s.flag()); given != nil && given.Changed {
			wrong = append(wrong, explain("--"+s.flag(), s.set(&cfg, given.Value.String())))
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
func decode(data []byte, cfg any) error {
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

var typeName = regexp.MustCompile(` not found in type config\.\w+`)

// readableYAML puts what yaml says about a file into one line.
func readableYAML(err error) error {
	var types *yaml.TypeError
	if !errors.As(err, &types) {
		return err
	}
	lines := make([]string, len(types.Errors))
	for i, line := range types.Errors {
		lines[i] = strings.ReplaceAll(line, "field ", "unknown key ")
		lines[i] = typeName.ReplaceAllString(lines[i], "")
	}
	return errors.New(strings.Join(lines, "; "))
}
