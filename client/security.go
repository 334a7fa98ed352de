package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// WithTLS encrypts the connection. Without it, and without credentials in
// WithDialOptions, it is in plain text.
func WithTLS(cfg *tls.Config) Option {
	return WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
}

// WithToken sends a bearer token with every call. Dial refuses it on a connection
// in plain text.
func WithToken(token string) Option {
	return WithDialOptions(grpc.WithPerRPCCredentials(bearer(token)))
}

// LoadTLS returns how to reach a cluster whose authorities are in caFile, in PEM.
// With certFile and keyFile it shows a certificate of its own; both may be empty.
func LoadTLS(caFile, certFile, keyFile string) (*tls.Config, error) {
	authorities, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authorities: %w", err)
	}
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	if !cfg.RootCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("%s has no certificate in PEM", caFile)
	}
	if certFile == "" && keyFile == "" {
		return cfg, nil
	}
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate and its key: %w", err)
	}
	cfg.Certificates = []tls.Certificate{own}
	return cfg, nil
}

// bearer is a token as gRPC wants it.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }
