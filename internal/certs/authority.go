package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"slices"
	"time"
)

// Subject is whom a certificate is for.
type Subject struct {
	// Name is the name of the node or client, see CheckName.
	Name string
	// Hosts are the names and addresses under which clients reach a node.
	// localhost and the loopback addresses come on top.
	Hosts []string
	// Client says that it is a client, who has no hosts.
	Client bool
}

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func newKey() (*ecdsa.PrivateKey, error) {
	// Every TLS library in use knows P-256.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return key, nil
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: "admit authority"},
		NotBefore:    now.Add(-clockSlack),
		NotAfter:     now.Add(authorityLife),
		KeyUsage:     x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:         true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	cert, err := sign(template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	return &authority{cert, key}, nil
}

// issue makes a key and a certificate for it.
func (a *authority) issue(s Subject, now time.Time) (*pair, error) {
	template, err := a.template(s, now)
	if err != nil {
		return nil, err
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	cert, err := sign(template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of %s: %w", s.Name, err)
	}
	return &pair{cert, key}, nil
}

func (a *authority) template(s Subject, now time.Time) (*x509.Certificate, error) {
	if err := CheckName(s.Name); err != nil {
		return nil, err
	}
	if !now.Before(a.cert.NotAfter) {
		return nil, fmt.Errorf("the authority expired on %s", a.cert.NotAfter.Format(time.DateOnly))
	}
	path, usage := nodePath, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if s.Client {
		path, usage = clientPath, usage[1:]
	}
	until := now.Add(leafLife)
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	t := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: s.Name},
		NotBefore:             now.Add(-clockSlack),
		NotAfter:              until,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usage,
		URIs:                  []*url.URL{uriOf(path, s.Name)},
		BasicConstraintsValid: true,
	}
	return t, addHosts(t, s)
}

func addHosts(t *x509.Certificate, s Subject) error {
	if s.Client {
		if len(s.Hosts) > 0 {
			return fmt.Errorf("client %s can't have hosts: nobody calls it", s.Name)
		}
		return nil
	}
	t.DNSNames, t.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, host := range s.Hosts {
		switch ip := net.ParseIP(host); {
		case ip != nil && ip.IsUnspecified():
			return fmt.Errorf("node %s: %s is no address that one can call", s.Name, host)
		case slices.ContainsFunc(t.IPAddresses, ip.Equal) || host == "localhost": // it is there already
		case ip != nil:
			t.IPAddresses = append(t.IPAddresses, ip)
		case validHost.MatchString(host):
			t.DNSNames = append(t.DNSNames, host)
		default:
			return fmt.Errorf("node %s: %q is neither the name of a host nor an address", s.Name, host)
		}
	}
	return nil
}

// serial makes up a number that no other certificate has.
func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[0] &= 0x7f // positive
	return new(big.Int).SetBytes(b)
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// newAuthorityOf puts an authority together from what its files hold.
func newAuthorityOf(cert *x509.Certificate, key crypto.PrivateKey) (*authority, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the authority's key can't sign")
	}
	if !cert.IsCA {
		return nil, errors.New("the certificate is not an authority's")
	}
	public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(signer.Public()) {
		return nil, errors.New("the authority's key is not that of its certificate")
	}
	return &authority{cert, signer}, nil
}
