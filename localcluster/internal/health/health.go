// Package health asks the programs of a cluster whether they are well. A check is one request; patience is in Wait alone.
package health

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/localcluster/internal/pki"
)

// Check is one question.
type Check func(context.Context) error

const timeout = 2 * time.Second

// HTTP expects 200 from a URL.
func HTTP(url string) Check {
	return get(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: timeout}, url)
}

// Unix expects 200 from a path served over a Unix socket.
func Unix(socket, path string) Check {
	var dialer net.Dialer
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}
	return get(&http.Client{Transport: transport, Timeout: timeout}, "http://unix"+path)
}

// TLS expects 200 from a URL, trusting the authority and authenticating with the pair.
func TLS(url, caFile string, client pki.Pair) (Check, error) {
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read certificate authority %s: no certificate in it", caFile)
	}
	cert, err := tls.LoadX509KeyPair(client.Cert, client.Key)
	if err != nil {
		return nil, fmt.Errorf("load client certificate: %w", err)
	}
	transport := &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
	}
	return get(&http.Client{Transport: transport, Timeout: timeout}, url), nil
}

func get(client *http.Client, url string) Check {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
			return fmt.Errorf("GET %s: %s %s", url, response.Status, strings.TrimSpace(string(body)))
		}
		return nil
	}
}

// Wait asks until the answer is good, and returns the last bad one if the context ends first.
func Wait(ctx context.Context, check Check) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last answer: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
