package peer

import (
	"crypto/x509"
	"net/url"
	"testing"
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
		name, err := NodeName(cert)
		if name != want || (err == nil) != (want != "") {
			t.Errorf("%s names %q (%v), want %q", uri, name, err, want)
		}
	}
}

func TestAnIDBelongsToItsCertificate(t *testing.T) {
	cert := &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/admit/node/n1"}}}
	for id, ok := range map[string]bool{
		"n1": false, "n1-7f3a": true, "n10-7f3a": false, "n1-1-7f3a": false, "n2": false, "": false,
	} {
		if err := checkName(cert, id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}
