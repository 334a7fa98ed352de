package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// alpn keeps what is meant for another port from being taken for a member.
const alpn = "admit-peer"

// checkTLS says what a member's TLS configuration lacks.
func checkTLS(c *tls.Config) error {
	switch {
	case c == nil:
		return errors.New("members talk over TLS only, and there is no configuration for it")
	case c.ClientCAs == nil:
		return errors.New("the members' TLS configuration has no authorities")
	case len(c.Certificates) == 0 && (c.GetCertificate == nil || c.GetClientCertificate == nil):
		return errors.New("the members' TLS configuration has no certificate")
	}
	return nil
}

// serverTLS takes only who shows a certificate of the members' authorities.
func serverTLS(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = []string{alpn}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c
}

// clientTLS checks the authorities, but not the host: a node is who its
// certificate names, wherever it is, and the greeting checks that.
func clientTLS(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = []string{alpn}
	c.InsecureSkipVerify = true // of the host; what follows verifies the rest
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if err := verifyChain(base.ClientCAs, s); err != nil || base.VerifyConnection == nil {
			return err
		}
		return base.VerifyConnection(s)
	}
	return c
}

func verifyChain(roots *x509.CertPool, s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the node shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("verify the node's certificate: %w", err)
	}
	return nil
}
