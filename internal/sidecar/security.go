package sidecar

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/admitd/admit/client"
)

// security is how the nodes are reached: the options of a client. A certificate and a
// token are read anew where they are others; the authorities are those of the start.
func (cfg Config) security() ([]client.Option, error) {
	if cfg.CACert == "" {
		return nil, nil
	}
	secured, err := client.LoadTLS(cfg.CACert, cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("ca_cert: %w", err)
	}
	if cfg.Cert != "" {
		secured.Certificates = nil
		secured.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			own, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
			return &own, err
		}
	}
	opts := []client.Option{client.WithTLS(secured)}
	if cfg.TokenFile == "" {
		return opts, nil
	}
	t := &token{path: cfg.TokenFile}
	if _, err := t.GetRequestMetadata(context.Background()); err != nil {
		return nil, fmt.Errorf("token_file: %w", err)
	}
	return append(opts, client.WithDialOptions(grpc.WithPerRPCCredentials(t))), nil
}

// token is the one in a file, as gRPC wants it. Where the file is bad it is the one from
// before.
type token struct {
	path string

	mu     sync.Mutex
	read   os.FileInfo
	header map[string]string
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t *token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, err := os.Stat(t.path)
	if err == nil && (t.read == nil || !os.SameFile(found, t.read) || !found.ModTime().Equal(t.read.ModTime())) {
		err = t.load(found)
	}
	if t.header == nil {
		return nil, err
	}
	return t.header, nil
}

func (t *token) load(found os.FileInfo) error {
	data, err := os.ReadFile(t.path)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(string(data))
	if text == "" || strings.ContainsAny(text, " \t\r\n") {
		return fmt.Errorf("%s does not hold one token", t.path)
	}
	t.read, t.header = found, map[string]string{"authorization": "Bearer " + text}
	return nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (t *token) RequireTransportSecurity() bool { return true }
