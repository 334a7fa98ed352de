package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tokens"
	"github.com/admitd/admit/server"
)

// security is how a node's ports are protected.
type security struct {
	// peers is how members of the cluster talk; nil for a node that is alone.
	peers *tls.Config
	// callers is how others reach the API and the HTTP side; nil is plain text.
	callers *tls.Config
	// guard says who calls the API, and watchers who calls the HTTP side, which
	// members don't; nil where everybody may.
	guard, watchers server.Guard
}

// loadSecurity reads the files that cfg names, and returns all that is wrong with
// them.
func loadSecurity(cfg config.Config) (s security, err error) {
	var wrong []error
	note := func(key string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", key, err))
		}
	}
	if cfg.Clustered() {
		s.peers, err = certs.Peers(cfg.PeerCA, cfg.PeerCert, cfg.PeerKey)
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
		s.callers = callerTLS(own, authorities)
	}
	g := &guard{certificates: authorities != nil, members: cfg.Clustered()}
	if cfg.TokensFile != "" {
		g.tokens, err = tokens.Load(cfg.TokensFile)
		note("tokens_file", err)
	}
	if g.certificates || g.tokens != nil {
		watchers := *g
		watchers.members = false
		s.guard, s.watchers = g, &watchers
	}
	return s, errors.Join(wrong...)
}

// callerTLS is for callers: a certificate of theirs is looked at if they show one.
func callerTLS(own tls.Certificate, authorities *x509.CertPool) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own}}
	if authorities != nil {
		cfg.ClientCAs, cfg.ClientAuth = authorities, tls.VerifyClientCertIfGiven
	}
	return cfg
}

// grpcTLS is how the API is served: to callers as callers, to members that ask for
// a node as members. What the one side trusts means nothing on the other.
func (s security) grpcTLS() *tls.Config {
	if s.callers == nil || s.peers == nil {
		return s.callers
	}
	members := s.peers.Clone()
	members.NextProtos = []string{"h2"}
	both := s.callers.Clone()
	both.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == certs.NodeServerName {
			return members, nil
		}
		return nil, nil // as callers
	}
	return both
}

// nodeCredentials is how this node calls the API of another.
func (s security) nodeCredentials() credentials.TransportCredentials {
	if s.callers == nil || s.peers == nil {
		return insecure.NewCredentials()
	}
	cfg := s.peers.Clone()
	cfg.ServerName = certs.NodeServerName
	return credentials.NewTLS(cfg)
}

// guard knows callers by their token or their certificate.
type guard struct {
	tokens *tokens.Set
	// certificates says that a verified certificate is enough.
	certificates bool
	// members says that other nodes call here, with the handshake of grpcTLS.
	members bool
}

// Identify returns who is behind a connection. A token that is sent is what counts:
// one that is unknown is not made good by a certificate.
func (g *guard) Identify(conn *tls.ConnectionState, token string) (server.Identity, bool) {
	switch {
	case g.members && conn != nil && conn.ServerName == certs.NodeServerName:
		// The handshake was that of members: see grpcTLS.
		name, ok := certs.NodeName(conn.PeerCertificates[0])
		return server.Identity{Name: name, Node: true}, ok
	case g.tokens != nil && token != "":
		name, ok := g.tokens.Holder(token)
		return server.Identity{Name: name}, ok
	case g.certificates && conn != nil && len(conn.VerifiedChains) > 0:
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
