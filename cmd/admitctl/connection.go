package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/admitd/admit/client"
)

// connection is how to reach a node.
type connection struct {
	addr                       string
	caCert, cert, key, tokenAt string
}

// addFlags defines the flags of a connection, which win over the environment.
func (c *connection) addFlags(cmd *cobra.Command) {
	flags := cmd.PersistentFlags()
	for _, f := range []struct {
		at                         *string
		name, env, otherwise, help string
	}{
		{&c.addr, "addr", "ADMIT_ADDR", defaultAddr, "the node's `host:port`, or several of one cluster parted by commas"},
		{&c.caCert, "ca-cert", "ADMIT_CA_CERT", "", "the `file` of the authority of the node's certificate; encrypts"},
		{&c.cert, "cert", "ADMIT_CERT", "", "the `file` of a client's certificate, to show the node"},
		{&c.key, "cert-key", "ADMIT_CERT_KEY", "", "the `file` of the key of --cert"},
		{&c.tokenAt, "token-file", "ADMIT_TOKEN_FILE", "", "the `file` of a token, to show the node; or the token as ADMIT_TOKEN"},
	} {
		value := f.otherwise
		if v := os.Getenv(f.env); v != "" {
			value = v
		}
		help := f.help
		if f.name != "token-file" {
			help += "; also " + f.env
		}
		flags.StringVar(f.at, f.name, value, help)
	}
}

// dial opens the connection.
func (c *connection) dial(opts ...client.Option) (*client.Client, error) {
	security, err := c.security()
	if err != nil {
		return nil, err
	}
	conn, err := client.Dial(c.addr, append(security, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", c.addr, err)
	}
	return conn, nil
}

func (c *connection) security() (opts []client.Option, err error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if c.caCert == "" {
		switch {
		case c.cert != "" || c.key != "":
			return nil, &usageError{"--cert and --cert-key need --ca-cert: without it nothing is encrypted"}
		case token != "":
			return nil, &usageError{"a token needs --ca-cert: without it the token would travel in plain text"}
		}
		return nil, nil
	}
	if (c.cert == "") != (c.key == "") {
		return nil, &usageError{"--cert and --cert-key go together"}
	}
	cfg, err := client.LoadTLS(c.caCert, c.cert, c.key)
	if err != nil {
		return nil, err
	}
	opts = append(opts, client.WithTLS(cfg))
	if token != "" {
		opts = append(opts, client.WithToken(token))
	}
	return opts, nil
}

// token is the one to show, or nothing. A file that is named wins over the
// environment.
func (c *connection) token() (string, error) {
	if c.tokenAt == "" {
		return os.Getenv("ADMIT_TOKEN"), nil
	}
	data, err := os.ReadFile(c.tokenAt)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s does not hold one token", c.tokenAt)
	}
	return token, nil
}
