package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// dialError marks a connection that was never made.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// TunnelError is a forward proxy's refusal to connect.
type TunnelError struct {
	Address, Status, Reason string
	// Found is true where the address leads somewhere, but nothing answers there.
	Found bool
}

func (e *TunnelError) Error() string {
	return fmt.Sprintf("ask proxy for %s: %s: %s", e.Address, e.Status, e.Reason)
}

// NameUnknown reports whether a dial failed because its host has no address,
// rather than because nobody listens there.
func NameUnknown(err error) bool {
	if refusal, ok := errors.AsType[*TunnelError](err); ok {
		return !refusal.Found
	}
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// DialFunc makes a connection, like net.Dialer's DialContext.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// connectTimeout bounds the making of a connection, not its use.
const connectTimeout = 5 * time.Second

// NewDialer connects directly, or asks a forward proxy for a tunnel. A tunnel,
// rather than proxied requests, keeps streams unbuffered and tells a refused
// connection from a failed request. Loopback needs no proxy.
func NewDialer(proxy string) (DialFunc, error) {
	direct := &net.Dialer{Timeout: connectTimeout}
	plain := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := direct.DialContext(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	if proxy == "" {
		return plain, nil
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("forward proxy %q is not a URL", proxy)
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsLoopback() {
			return plain(ctx, network, address)
		}
		conn, err := plain(ctx, network, u.Host)
		if err != nil {
			return nil, err
		}
		through, err := tunnel(ctx, conn, address)
		if err != nil {
			_ = conn.Close()
			return nil, &dialError{err}
		}
		return through, nil
	}, nil
}

func tunnel(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	_ = conn.SetDeadline(time.Now().Add(connectTimeout))
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer unhook()
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return nil, fmt.Errorf("ask proxy for %s: %w", address, err)
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, fmt.Errorf("ask proxy for %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		defer func() { _ = response.Body.Close() }()
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, &TunnelError{
			Address: address, Status: response.Status, Reason: strings.TrimSpace(string(reason)),
			Found: strings.Contains(response.Header.Get("Proxy-Status"), "error=connection_"),
		}
	}
	if !unhook() {
		return nil, ctx.Err()
	}
	return &tunnelled{Conn: conn, reader: reader}, conn.SetDeadline(time.Time{})
}

// tunnelled reads what the other side sent right behind the proxy's answer, as
// an SSH server does, before the rest.
type tunnelled struct {
	net.Conn
	reader *bufio.Reader
}

func (t *tunnelled) Read(p []byte) (int, error) { return t.reader.Read(p) }
