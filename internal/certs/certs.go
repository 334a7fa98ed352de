// Package certs makes the certificates of a cluster and says what they are worth.
//
// A cluster has an authority of its own. A certificate that it issued names, in a
// URI, a node or a client:
//
//	spiffe://admit/node/NAME     a member of the cluster
//	spiffe://admit/client/NAME   somebody who calls its API
//
// A node's certificate makes its holder a member: members trust one another
// fully, as a log has to be taken from whoever leads. So what two nodes check of
// each other is that the authority issued the certificate to a node, and that it
// has the name that the other goes by; not the host, which may change. The NAME
// is the operator's word for a machine. The id that a node gives to its data is
// made up at its first start, when the certificate is there already, and goes
// with the data if the disk is wiped.
package certs

import (
	"crypto/x509"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const (
	nodeURI   = "spiffe://admit/node/"
	clientURI = "spiffe://admit/client/"

	// authorityLife is how long an authority holds, leafLife what it issues: a
	// year, so that renewing is practised before it is forgotten.
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour
	// clockSlack is by how much another machine's clock may be behind.
	clockSlack = time.Hour
)

// validName are names that are part of a URI and of a file's name.
var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// CheckName says what is wrong with the name of a node or client, if anything.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is no name: lower-case letters, digits, dots and dashes, 63 at most", name)
	}
	if name == authorityName {
		return fmt.Errorf("%q names the authority", name)
	}
	return nil
}

// NodeName returns the name of the node that a certificate was issued to; ok is
// false if it was issued to somebody else. Whether to believe the certificate is
// another question.
func NodeName(cert *x509.Certificate) (name string, ok bool) { return uriName(cert, nodeURI) }

// ClientName is NodeName for clients.
func ClientName(cert *x509.Certificate) (name string, ok bool) { return uriName(cert, clientURI) }

func uriName(cert *x509.Certificate, prefix string) (string, bool) {
	if len(cert.URIs) != 1 {
		return "", false
	}
	name, ok := strings.CutPrefix(cert.URIs[0].String(), prefix)
	return name, ok && CheckName(name) == nil
}
