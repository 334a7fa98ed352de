package peer

import (
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

// checkName refuses a node id that is not the certificate's to use. A node's id is
// its name and something random, so that with a new disk it is another node, under
// the same certificate.
func checkName(cert *x509.Certificate, nodeID string) error {
	name, err := NodeName(cert)
	if err != nil {
		return err
	}
	if nodeID != name && !strings.HasPrefix(nodeID, name+"-") {
		return fmt.Errorf("the certificate of node %s is not one of %s", name, nodeID)
	}
	return nil
}
