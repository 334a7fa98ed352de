package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/admitd/admit/internal/certs"
)

// OwnName returns the name that a node's own certificate gives it.
func OwnName(c *tls.Config) (string, error) {
	if err := checkTLS(c); err != nil {
		return "", err
	}
	leaf, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		return "", fmt.Errorf("read this node's certificate: %w", err)
	}
	name, ok := certs.NodeName(leaf)
	if !ok {
		return "", errors.New("this node's certificate names no node")
	}
	return name, nil
}

// Owns says whether a node id belongs to the name of a certificate: it is the name, a
// dash and something without one, since names have dashes too.
func Owns(name, nodeID string) bool {
	dash := strings.LastIndexByte(nodeID, '-')
	return dash >= 0 && nodeID[:dash] == name
}

// checkName refuses a node id that is not the certificate's to use. A node's id is
// its name and something random, so that with a new disk it is another node, under
// the same certificate.
func checkName(cert *x509.Certificate, nodeID string) error {
	name, ok := certs.NodeName(cert)
	if !ok || !Owns(name, nodeID) {
		return fmt.Errorf("the certificate of node %s is not one of %s", name, nodeID)
	}
	return nil
}
