package peer

import (
	"crypto/x509"
	"net/url"
	"testing"
)

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
