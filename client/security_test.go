package client_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// whoCalls answers every Acquire, and keeps what its caller showed.
type whoCalls struct {
	admitv1.UnimplementedAdmissionServiceServer
	shown []string
}

func (s *whoCalls) Acquire(ctx context.Context, _ *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	s.shown = metadata.ValueFromIncomingContext(ctx, "authorization")
	return &admitv1.AcquireResponse{Decision: granted(permit("p", time.Second))}, nil
}

// secured is a server with a certificate, whose authority is in the file.
func secured(t *testing.T) (s *whoCalls, addr, caFile string) {
	t.Helper()
	s = &whoCalls{}
	g := grpc.NewServer()
	admitv1.RegisterAdmissionServiceServer(g, s)
	web := httptest.NewUnstartedServer(http.HandlerFunc(g.ServeHTTP))
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	if err := os.WriteFile(caFile, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	return s, web.Listener.Addr().String(), caFile
}

func TestATokenIsShownOnAnEncryptedConnection(t *testing.T) {
	s, addr, caFile := secured(t)
	cfg, err := client.LoadTLS(caFile, "", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(addr, client.WithTLS(cfg), client.WithToken("secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := c.Admission().Acquire(ctx, &admitv1.AcquireRequest{}); err != nil {
		t.Fatal(err)
	}
	if len(s.shown) != 1 || s.shown[0] != "Bearer secret" {
		t.Errorf("the caller showed %q", s.shown)
	}
}

func TestATokenNeverTravelsInPlainText(t *testing.T) {
	if c, err := client.Dial("127.0.0.1:1", client.WithToken("secret")); err == nil {
		c.Close()
		t.Error("it would")
	}
}

func TestLoadTLSSaysWhichFileIsWrong(t *testing.T) {
	_, _, caFile := secured(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ca, cert, key, want string }{
		{"none", "", "", "read the authorities: open none"},
		{empty, "", "", "empty has no certificate"},
		{caFile, caFile, "none", "open none"},
		{caFile, caFile, "", "read the certificate and its key"},
	} {
		if _, err := client.LoadTLS(c.ca, c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
