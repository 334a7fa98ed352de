package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net/url"
	"testing"
	"time"
)

func TestACertificateNamesANode(t *testing.T) {
	for uri, want := range map[string]string{
		"spiffe://example.org/admit/node/n1":   "n1",
		"spiffe://example.org/admit/node/n1/x": "",
		"spiffe://example.org/admit/node/":     "",
		"spiffe://example.org/n1":              "",
		"https://example.org/admit/node/n1":    "",
	} {
		u, err := url.Parse(uri)
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "other", Path: "/db"}, u}}
		if name, ok := NodeName(cert); name != want || ok != (want != "") {
			t.Errorf("%s names %q (%t), want %q", uri, name, ok, want)
		}
	}
}

// Members call one another: a certificate for one side alone is not enough.
func TestANodesCertificateIsForBothSides(t *testing.T) {
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for name, c := range map[string]struct {
		usage []x509.ExtKeyUsage
		ok    bool
	}{
		"both": {[]x509.ExtKeyUsage{server, client}, true}, "all": {nil, true},
		"servers": {[]x509.ExtKeyUsage{server}, false}, "clients": {[]x509.ExtKeyUsage{client}, false},
	} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		// It vouches for itself.
		now := time.Now()
		made, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
			ExtKeyUsage: c.usage, URIs: []*url.URL{uriOf(nodePath, "n1")},
		}, &x509.Certificate{}, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(made)
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(cert)
		if err := CheckNode(roots, []*x509.Certificate{cert}); (err == nil) != c.ok {
			t.Errorf("for %s: %v", name, err)
		}
	}
}
