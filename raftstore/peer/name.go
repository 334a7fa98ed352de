package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// namePath is what stands before the name in the path of a certificate's URI.
const namePath = "/admit/node/"

// NodeName returns the name that a node's certificate gives it: the last part of
// its URI spiffe://DOMAIN/admit/node/NAME, whatever the domain.
func NodeName(cert *x509.Certificate) (string, error) {
	for _, uri := range cert.URIs {
		name, found := strings.CutPrefix(uri.Path, namePath)
		if uri.Scheme == "spiffe" && found && name != "" && !strings.Contains(name, "/") {
			return name, nil
		}
	}
	return "", errors.New("the certificate names no node: it has no URI spiffe://DOMAIN" + namePath + "NAME")
}

// OwnName returns the name that a node's own certificate gives it.
func OwnName(c *tls.Config) (string, error) {
	if err := checkTLS(c); err != nil {
		return "", err
	}
	own := &tls.Certificate{}
	if len(c.Certificates) > 0 {
		own = &c.Certificates[0]
	} else {
		var err error
		if own, err = c.GetClientCertificate(&tls.CertificateRequestInfo{Version: tls.VersionTLS13}); err != nil {
			return "", fmt.Errorf("read this node's certificate: %w", err)
		}
	}
	leaf := own.Leaf
	if leaf == nil {
		if len(own.Certificate) == 0 {
			return "", errors.New("this node has no certificate")
		}
		var err error
		if leaf, err = x509.ParseCertificate(own.Certificate[0]); err != nil {
			return "", fmt.Errorf("read this node's certificate: %w", err)
		}
	}
	return NodeName(leaf)
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
	name, err := NodeName(cert)
	if err != nil {
		return err
	}
	if !Owns(name, nodeID) {
		return fmt.Errorf("the certificate of node %s is not one of %s", name, nodeID)
	}
	return nil
}
