package wire

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// dialError marks a connection that was never made.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// connectTimeout bounds the making of a connection, not its use.
const connectTimeout = 5 * time.Second

// dialer connects directly, or asks a forward proxy for a tunnel. A tunnel,
// rather than proxied requests, keeps streams unbuffered and tells a refused
// connection from a failed request. Loopback needs no proxy.
func dialer(proxy string) (dialFunc, error) {
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
		if err := tunnel(conn, address); err != nil {
			_ = conn.Close()
			return nil, &dialError{err}
		}
		return conn, nil
	}, nil
}

func tunnel(conn net.Conn, address string) error {
	_ = conn.SetDeadline(time.Now().Add(connectTimeout))
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		return fmt.Errorf("ask proxy for %s: %w", address, err)
	}
	// The other side of the tunnel speaks only when spoken to, so nothing past
	// the answer can be lost in this reader.
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return fmt.Errorf("ask proxy for %s: %w", address, err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask proxy for %s: %s", address, response.Status)
	}
	return conn.SetDeadline(time.Time{})
}
