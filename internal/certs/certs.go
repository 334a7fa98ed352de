// Package certs makes the certificates of a cluster and says what they are worth.
//
// A cluster has an authority of its own. A certificate that it issued names, in a
// URI, a node or a client:
//
//	spiffe://DOMAIN/admit/node/NAME     a member of the cluster
//	spiffe://DOMAIN/admit/client/NAME   somebody who calls its API
//
// The domain is whatever the authority likes. A node's certificate makes its holder a member: members trust one another
// fully, as a log has to be taken from whoever leads. So what two nodes check of
// each other is that the authority issued the certificate to a node, and not the
// host, which may change. The NAME is the operator's word for a machine. The id of
// a node is its name and something that is made up at its first start and goes
// with its data: a machine with a new disk is another node under the same
// certificate, and no node can take the id of one with another name.
package certs

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	// domain is that of the certificates made here.
	domain     = "admit.internal"
	nodePath   = "/admit/node/"
	clientPath = "/admit/client/"

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
func NodeName(cert *x509.Certificate) (name string, ok bool) { return uriName(cert, nodePath) }

// ClientName is NodeName for clients.
func ClientName(cert *x509.Certificate) (name string, ok bool) { return uriName(cert, clientPath) }

func uriName(cert *x509.Certificate, path string) (string, bool) {
	for _, uri := range cert.URIs {
		name, found := strings.CutPrefix(uri.Path, path)
		if uri.Scheme == "spiffe" && found && CheckName(name) == nil {
			return name, true
		}
	}
	return "", false
}

func uriOf(path, name string) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: domain, Path: path + name}
}
