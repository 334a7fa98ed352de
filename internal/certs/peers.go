package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// NodeServerName is what a node asks for, as the name of the server, when it
// calls another as a node and not as a client. No certificate has it: it chooses
// the configuration of Peers on a port that serves clients too.
const NodeServerName = "node.admit.internal"

// Peers returns how a node speaks with the others, in both directions: TLS 1.3,
// and each side shows that the authority of caFile issued its certificate to a
// node. Whose certificate the other has is in ConnectionState.PeerCertificates,
// see NodeName.
//
// It is an error if the node's own certificate would not pass.
func Peers(caFile, certFile, keyFile string) (*tls.Config, error) {
	roots, err := Pool(caFile)
	if err != nil {
		return nil, err
	}
	own, err := Pair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	if err := CheckNode(roots, []*x509.Certificate{own.Leaf}); err != nil {
		return nil, fmt.Errorf("%s can't be used between nodes with %s: %w", certFile, caFile, err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{own},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots,
		RootCAs:      roots,
		// The library would check the host's name and not who holds the certificate;
		// VerifyConnection does that, and all else.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return CheckNode(roots, s.PeerCertificates)
		},
	}, nil
}

// CheckNode wants a chain from one of the roots to a node's certificate, which comes
// first and is for servers and clients: members are both. Of what a TLS handshake
// checks beside, that the other end has the key, it knows nothing.
func CheckNode(roots *x509.CertPool, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return errors.New("no certificate was shown")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	leaf := chain[0]
	if _, ok := NodeName(leaf); !ok {
		return fmt.Errorf("the certificate of %q is not a node's: it has no URI spiffe://DOMAIN%sNAME", leaf.Subject.CommonName, nodePath)
	}
	for _, side := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if _, err := leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{side},
		}); err != nil {
			return fmt.Errorf("the certificate of %q can't serve members, which are both servers and clients: %w", leaf.Subject.CommonName, err)
		}
	}
	return nil
}

// Pool reads the authorities in a file.
func Pool(caFile string) (*x509.CertPool, error) {
	certs, err := readCerts(caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool, nil
}

// Pair reads a certificate, with those between it and its authority if there are
// any, and its key.
func Pair(certFile, keyFile string) (tls.Certificate, error) {
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate %s and its key: %w", certFile, err)
	}
	return own, nil
}
