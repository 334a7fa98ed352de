package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tokens"
	"github.com/admitd/admit/server"
)

// security is how a node's ports are protected: by files, which may be replaced while it
// runs (see followFiles). What holds is taken anew for each connection and each call.
type security struct {
	cfg config.Config
	now atomic.Pointer[protection]
	// seen are the files as they were before they were read last.
	seen []os.FileInfo
	// guard says who calls the API, and watchers who calls the HTTP side, which
	// members don't; nil where everybody may.
	guard, watchers server.Guard
}

// protection is what the files say. It does not change.
type protection struct {
	// peers is how members of the cluster talk; nil for a node that is alone.
	peers *tls.Config
	// callers is how others reach the API and the HTTP side; nil is plain text.
	callers *tls.Config
	// tokens are those of callers; nil where there are none.
	tokens *tokens.Set
}

// loadSecurity reads the files that cfg names, and returns all that is wrong with
// them.
func loadSecurity(cfg config.Config) (*security, error) {
	s := &security{cfg: cfg, seen: securityFiles(cfg)}
	first, err := loadProtection(cfg)
	if err != nil {
		return nil, err
	}
	s.now.Store(first)
	if g := (guard{security: s, members: cfg.Clustered()}); cfg.TLSClientCA != "" || cfg.TokensFile != "" {
		watchers := g
		watchers.members = false
		s.guard, s.watchers = &g, &watchers
	}
	return s, nil
}

func loadProtection(cfg config.Config) (*protection, error) {
	p := &protection{}
	var wrong []error
	note := func(key string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", key, err))
		}
	}
	var err error
	if cfg.Clustered() {
		p.peers, err = certs.Peers(cfg.PeerCA, cfg.PeerCert, cfg.PeerKey)
		note("peer_cert", err)
	}
	var authorities *x509.CertPool
	if cfg.TLSClientCA != "" {
		authorities, err = certs.Pool(cfg.TLSClientCA)
		note("tls_client_ca", err)
	}
	if cfg.TLSCert != "" {
		own, err := certs.Pair(cfg.TLSCert, cfg.TLSKey)
		note("tls_cert", err)
		p.callers = callerTLS(own, authorities)
	}
	if cfg.TokensFile != "" {
		p.tokens, err = tokens.Load(cfg.TokensFile)
		note("tokens_file", err)
	}
	return p, errors.Join(wrong...)
}

// callerTLS is for callers: a certificate of theirs is looked at if they show one.
func callerTLS(own tls.Certificate, authorities *x509.CertPool) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if authorities != nil {
		cfg.ClientCAs, cfg.ClientAuth = authorities, tls.VerifyClientCertIfGiven
	}
	return cfg
}

// peerTLS is how members talk at present.
func (s *security) peerTLS() *tls.Config { return s.now.Load().peers }

// httpTLS is how the HTTP side is served; nil for plain text.
func (s *security) httpTLS() *tls.Config {
	return s.served(func(_ *tls.ClientHelloInfo, now *protection) *tls.Config { return now.callers })
}

// grpcTLS is how the API is served: to callers as callers, to members that ask for
// a node as members. What the one side trusts means nothing on the other.
func (s *security) grpcTLS() *tls.Config {
	return s.served(func(hello *tls.ClientHelloInfo, now *protection) *tls.Config {
		cfg := now.callers
		if now.peers != nil && hello.ServerName == certs.NodeServerName {
			cfg = now.peers
		}
		cfg = cfg.Clone()
		cfg.NextProtos = []string{"h2"}
		return cfg
	})
}

// served chooses the configuration of each connection among what holds when it comes;
// nil for plain text.
func (s *security) served(choose func(*tls.ClientHelloInfo, *protection) *tls.Config) *tls.Config {
	if s.now.Load().callers == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			return choose(hello, s.now.Load()), nil
		},
	}
}

// nodeCredentials is how this node calls the API of another.
func (s *security) nodeCredentials() credentials.TransportCredentials {
	first := s.now.Load()
	if first.callers == nil || first.peers == nil {
		return insecure.NewCredentials()
	}
	cfg := first.peers.Clone()
	cfg.ServerName = certs.NodeServerName
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &s.peerTLS().Certificates[0], nil
	}
	cfg.VerifyConnection = func(other tls.ConnectionState) error { return s.peerTLS().VerifyConnection(other) }
	return credentials.NewTLS(cfg)
}

// guard knows callers by their token or their certificate.
type guard struct {
	security *security
	// members says that other nodes call here, with the handshake of grpcTLS.
	members bool
}

// Identify returns who is behind a connection. A token that is sent is what counts:
// one that is unknown is not made good by a certificate.
func (g *guard) Identify(conn *tls.ConnectionState, token string) (server.Identity, bool) {
	known := g.security.now.Load().tokens
	switch {
	case g.members && conn != nil && conn.ServerName == certs.NodeServerName:
		// The handshake was that of members: see grpcTLS.
		name, ok := certs.NodeName(conn.PeerCertificates[0])
		return server.Identity{Name: name, Node: true}, ok
	case known != nil && token != "":
		name, ok := known.Holder(token)
		return server.Identity{Name: name}, ok
	case g.security.cfg.TLSClientCA != "" && conn != nil && len(conn.VerifiedChains) > 0:
		return server.Identity{Name: holder(conn.PeerCertificates[0])}, true
	}
	return server.Identity{}, false
}

// holder is the name of a certificate's holder.
func holder(cert *x509.Certificate) string {
	if name, ok := certs.ClientName(cert); ok {
		return name
	}
	return cert.Subject.CommonName
}
