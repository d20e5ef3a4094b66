package cuzk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// MessageBytesMax is the largest message in bytes, each way.
const MessageBytesMax = 256 << 20

const (
	// connectPauseMax is short, because a daemon that starts again is needed at once.
	connectPauseMax = 5 * time.Second
	// A connection whose other end went away without a word ends after both times.
	keepaliveAfter = time.Minute
	keepaliveWait  = 20 * time.Second
)

// Option changes how a client connects and calls.
type Option func(*options) error

type options struct {
	tls        *tls.Config
	token      string
	firstPause time.Duration
	maxPause   time.Duration
	dial       []grpc.DialOption
}

// WithTLS encrypts the connection.
func WithTLS(config *tls.Config) Option {
	return func(o *options) error {
		if config == nil {
			return errors.New("cuzk: WithTLS needs a configuration")
		}
		o.tls = config.Clone()
		return nil
	}
}

// WithCertificates encrypts the connection. The paths are of PEM files: the authority that
// signed the daemon's certificate, and this client's certificate and key. Without an
// authority those of the system count. Without a certificate the client sends none.
func WithCertificates(authority, certificate, key string) Option {
	return func(o *options) error {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if authority != "" {
			pem, err := os.ReadFile(authority)
			if err != nil {
				return fmt.Errorf("cuzk: authority: %w", err)
			}
			config.RootCAs = x509.NewCertPool()
			if !config.RootCAs.AppendCertsFromPEM(pem) {
				return fmt.Errorf("cuzk: authority: %s has no certificate in PEM", authority)
			}
		}
		if (certificate == "") != (key == "") {
			return errors.New("cuzk: a certificate and its key are given together")
		}
		if certificate != "" {
			pair, err := tls.LoadX509KeyPair(certificate, key)
			if err != nil {
				return fmt.Errorf("cuzk: certificate: %w", err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		o.tls = config
		return nil
	}
}

// WithToken sends a token with each call. It needs [WithTLS] or [WithCertificates], except
// to a unix socket or to this machine.
func WithToken(token string) Option {
	return func(o *options) error {
		if token == "" {
			return errors.New("cuzk: the token is empty")
		}
		o.token = token
		return nil
	}
}

// WithPauses sets the pauses between repeated calls. The first pause is doubled after each
// call until it is max. Each pause is shortened by a random part. The default is 500 ms to
// 30 s.
func WithPauses(first, max time.Duration) Option {
	return func(o *options) error {
		if first <= 0 || max < first {
			return fmt.Errorf("cuzk: pauses of %v to %v: the first is above 0 and not above the last", first, max)
		}
		o.firstPause, o.maxPause = first, max
		return nil
	}
}

// WithDialOptions adds options of gRPC. They count over those of this package.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) error {
		o.dial = append(o.dial, dial...)
		return nil
	}
}

// Dial returns a client of the daemon at an address: `unix:///PATH`, `tcp://HOST:PORT` or
// `HOST:PORT`. It connects at the first call, and again whenever the connection is lost.
func Dial(address string, opts ...Option) (*Client, error) {
	o := options{firstPause: 500 * time.Millisecond, maxPause: 30 * time.Second}
	for _, option := range opts {
		if err := option(&o); err != nil {
			return nil, err
		}
	}
	target, isLocal, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if o.token != "" && o.tls == nil && !isLocal {
		return nil, fmt.Errorf("cuzk: a token to %s needs TLS: it would be sent in the clear", address)
	}
	connection, err := grpc.NewClient(target, o.grpc()...)
	if err != nil {
		return nil, fmt.Errorf("cuzk: %s: %w", address, err)
	}
	return newClient(address, connection, &o), nil
}

func (o *options) grpc() []grpc.DialOption {
	transport := insecure.NewCredentials()
	if o.tls != nil {
		transport = credentials.NewTLS(o.tls)
	}
	pauses := backoff.DefaultConfig
	pauses.MaxDelay = connectPauseMax
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallSendMsgSize(MessageBytesMax),
			grpc.MaxCallRecvMsgSize(MessageBytesMax),
		),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           pauses,
			MinConnectTimeout: keepaliveWait,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:    keepaliveAfter,
			Timeout: keepaliveWait,
		}),
		grpc.WithDisableServiceConfig(),
		// A call that takes half an hour is no idle connection.
		grpc.WithIdleTimeout(0),
	}
	if o.token != "" {
		dial = append(dial, grpc.WithPerRPCCredentials(bearer(o.token)))
	}
	return append(dial, o.dial...)
}

// parseAddress returns the target of gRPC, and true if no other machine sees the bytes.
func parseAddress(address string) (target string, isLocal bool, err error) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		path = strings.TrimPrefix(path, "//")
		if !strings.HasPrefix(path, "/") {
			return "", false, addressError(address)
		}
		return "unix://" + path, true, nil
	}
	rest := strings.TrimPrefix(address, "tcp://")
	host, port, err := net.SplitHostPort(rest)
	if err != nil || host == "" || port == "" || strings.Contains(rest, "/") {
		return "", false, addressError(address)
	}
	ip := net.ParseIP(host)
	return "dns:///" + rest, host == "localhost" || ip != nil && ip.IsLoopback(), nil
}

func addressError(address string) error {
	return fmt.Errorf("cuzk: address %q: write unix:///PATH, tcp://HOST:PORT or HOST:PORT", address)
}

// bearer is a token as the credentials of a call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity returns false, because [Dial] has checked the address.
func (b bearer) RequireTransportSecurity() bool { return false }

// String hides the token from logs.
func (b bearer) String() string { return "a token" }
