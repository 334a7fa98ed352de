package certs

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// The files of a directory: NAME.crt and NAME.key for each certificate.
const (
	authorityName = "ca"
	certSuffix    = ".crt"
	keySuffix     = ".key"
)

// validHost are the names of hosts, a wildcard for the first label allowed.
var validHost = regexp.MustCompile(`^(\*\.)?([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// Init makes an authority in dir and the certificates that it issues to the
// subjects. It returns the files that it wrote. Where one of them is there
// already it writes none: what a cluster trusts is never replaced by accident.
func Init(dir string, subjects []Subject, now time.Time) (written []string, err error) {
	a, err := newAuthority(now)
	if err != nil {
		return nil, err
	}
	files, err := a.issueAll(subjects, now)
	if err != nil {
		return nil, err
	}
	own, err := encode(authorityName, &pair{a.cert, a.key})
	if err != nil {
		return nil, err
	}
	return writeFiles(dir, append(own, files...))
}

// Issue is Init for the authority that dir has.
func Issue(dir string, subjects []Subject, now time.Time) (written []string, err error) {
	a, err := loadAuthority(dir)
	if err != nil {
		return nil, err
	}
	files, err := a.issueAll(subjects, now)
	if err != nil {
		return nil, err
	}
	return writeFiles(dir, files)
}

// file is one to be written.
type file struct {
	name string
	data []byte
	mode fs.FileMode
}

func (a *authority) issueAll(subjects []Subject, now time.Time) ([]file, error) {
	var files []file
	seen := map[string]bool{}
	for _, s := range subjects {
		if seen[s.Name] {
			return nil, fmt.Errorf("%s is named twice", s.Name)
		}
		seen[s.Name] = true
		p, err := a.issue(s, now)
		if err != nil {
			return nil, err
		}
		both, err := encode(s.Name, p)
		if err != nil {
			return nil, err
		}
		files = append(files, both...)
	}
	return files, nil
}

func encode(name string, p *pair) ([]file, error) {
	key, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return []file{
		{name + certSuffix, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}), 0o644},
		{name + keySuffix, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600},
	}, nil
}

func writeFiles(dir string, files []file) (written []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory: %w", err)
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is there already, nothing was written", filepath.Join(dir, f.name))
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := writeNew(path, f.data, f.mode); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}

// writeNew writes a file that must not be there.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write a new file: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func loadAuthority(dir string) (*authority, error) {
	path := filepath.Join(dir, authorityName)
	certs, err := readCerts(path + certSuffix)
	if err != nil {
		return nil, err
	}
	key, err := readKey(path + keySuffix)
	if err != nil {
		return nil, err
	}
	a, err := newAuthorityOf(certs[0], key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", path+certSuffix, path+keySuffix, err)
	}
	return a, nil
}

// readCerts reads a file of at least one certificate.
func readCerts(path string) ([]*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificates: %w", err)
	}
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return certs, nil
}

func readKey(path string) (crypto.PrivateKey, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%s is not one private key in PEM (PKCS #8)", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}
