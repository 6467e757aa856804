// Package podhttp reads from pods. What it is pointed at cannot make it do anything else:
// it goes to addresses of pods alone, follows no redirect, sends no credentials, and reads
// no more than it is told to.
package podhttp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
)

// Client asks pods.
type Client struct{ http *http.Client }

// New makes a Client. The proxy is the only one that it will use; nil means to go
// straight, whatever the environment says.
func New(proxy *url.URL) *Client {
	transport := &http.Transport{
		DialContext: (&net.Dialer{}).DialContext, DisableKeepAlives: true,
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
	}
	if proxy != nil {
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &Client{&http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Get reads a path of a pod, up to a number of bytes.
func (c *Client) Get(ctx context.Context, pod netip.Addr, port uint16, path string, limit int64) (status int, text []byte, err error) {
	pod = pod.Unmap()
	if !pod.IsValid() || !pod.IsGlobalUnicast() || pod.Zone() != "" {
		return 0, nil, fmt.Errorf("%s is not the address of a pod", pod)
	}
	target := url.URL{Scheme: "http", Host: net.JoinHostPort(pod.String(), strconv.Itoa(int(port))), Path: path}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("User-Agent", "dynamo-operator")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return response.StatusCode, nil, err
	case int64(len(text)) > limit:
		return response.StatusCode, nil, fmt.Errorf("the answer is longer than %d bytes", limit)
	}
	return response.StatusCode, text, nil
}
