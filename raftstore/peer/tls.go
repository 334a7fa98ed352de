package peer

import (
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/admitd/admit/internal/certs"
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
	case len(c.Certificates) == 0 || len(c.Certificates[0].Certificate) == 0:
		return errors.New("the members' TLS configuration has no certificate")
	}
	return nil
}

// serverTLS takes only who shows a node's certificate of the members' authorities.
func serverTLS(base *tls.Config) *tls.Config {
	c := bothTLS(base)
	c.ClientAuth = tls.RequireAnyClientCert
	return c
}

// clientTLS takes only such a server. Its host does not matter: a node is who its
// certificate names, wherever it is, and the greeting checks that.
func clientTLS(base *tls.Config) *tls.Config {
	c := bothTLS(base)
	c.InsecureSkipVerify = true
	return c
}

// bothTLS leaves the check of the other's certificate to one place, in both directions.
func bothTLS(base *tls.Config) *tls.Config {
	c := base.Clone()
	c.MinVersion = tls.VersionTLS13
	c.NextProtos = []string{alpn}
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if err := certs.CheckNode(base.ClientCAs, s.PeerCertificates); err != nil {
			return fmt.Errorf("verify the node's certificate: %w", err)
		}
		return nil
	}
	return c
}
