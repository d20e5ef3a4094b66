package cuzk_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	cuzk "github.com/cuzk/cuzk/clients/go"
)

// guarded is a server over TLS that asks for a token. It returns its address and the file
// of its certificate, which is for example.com.
func guarded(t *testing.T, token string) (address, authority string) {
	t.Helper()
	// It has a certificate at hand.
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	certificate := web.TLS.Certificates[0]
	authority = filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(authority, block, 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(
		ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
	) (any, error) {
		shown := metadata.ValueFromIncomingContext(ctx, "authorization")
		if len(shown) != 1 || shown[0] != "Bearer "+token {
			return nil, status.Error(codes.Unauthenticated, "the token is wrong")
		}
		return next(ctx, request)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.UnaryInterceptor(check))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String(), authority
}

func TestCertificatesAndTokens(t *testing.T) {
	address, authority := guarded(t, "right")
	health := func(options ...cuzk.Option) error {
		client, err := cuzk.Dial(address, options...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		return client.Health(t.Context())
	}
	encrypted := cuzk.WithCertificates(authority, "", "")
	if err := health(encrypted, cuzk.WithToken("right")); err != nil {
		t.Error(err)
	}
	if err := health(encrypted, cuzk.WithToken("wrong")); !is[*cuzk.UnauthenticatedError](err) {
		t.Errorf("a wrong token: %v", err)
	}
	if err := health(encrypted); !is[*cuzk.UnauthenticatedError](err) {
		t.Errorf("no token: %v", err)
	}
	if err := health(cuzk.WithToken("right")); !is[*cuzk.UnavailableError](err) {
		t.Errorf("a plain connection: %v", err)
	}
	if err := health(cuzk.WithTLS(&tls.Config{}), cuzk.WithToken("right")); !is[*cuzk.UnavailableError](err) {
		t.Errorf("an unknown authority: %v", err)
	}
}

func TestBadCredentialsAreTold(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	if err := os.WriteFile(none, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]cuzk.Option{
		"no certificate in it":    cuzk.WithCertificates(none, "", ""),
		"a file that is missing":  cuzk.WithCertificates(none+"x", "", ""),
		"a certificate alone":     cuzk.WithCertificates("", none, ""),
		"a certificate of no use": cuzk.WithCertificates("", none, none),
		"an empty token":          cuzk.WithToken(""),
		"no configuration":        cuzk.WithTLS(nil),
		"pauses that shrink":      cuzk.WithPauses(2, 1),
	} {
		if _, err := cuzk.Dial("127.0.0.1:1", option); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
