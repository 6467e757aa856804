// Package scrape asks the frontends of a graph what they have counted. What it is
// pointed at cannot make it do anything else: it goes to addresses of pods alone, follows
// no redirect, sends no credentials, reads no more than it needs and keeps nobody
// waiting.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
)

const (
	// answerLimit is far more than a frontend of hundreds of models says.
	answerLimit = 4 << 20
	timeout     = 3 * time.Second
	// most is how many frontends are asked at once.
	most = 16
)

// Scraper asks frontends.
type Scraper struct{ http *http.Client }

// New makes a Scraper. The proxy is the only one that it will use; empty means to go
// straight, whatever the environment says.
func New(proxy string) (*Scraper, error) {
	transport := &http.Transport{
		DialContext: (&net.Dialer{}).DialContext, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
	if proxy != "" {
		to, err := url.Parse(proxy)
		if err != nil {
			return nil, fmt.Errorf("proxy %q: %w", proxy, err)
		}
		transport.Proxy = http.ProxyURL(to)
	}
	return &Scraper{http: &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Look asks all frontends at the same time. When that was the caller knows.
func (s *Scraper) Look(ctx context.Context, frontends []netip.AddrPort) observation.Look {
	look := observation.Look{Frontends: map[string]observation.Counters{}, Failed: map[string]string{}}
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, most)
	for _, frontend := range frontends {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			c, err := s.one(ctx, frontend)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				look.Failed[frontend.String()] = err.Error()
				return
			}
			look.Frontends[frontend.String()] = c
		})
	}
	all.Wait()
	return look
}

func (s *Scraper) one(ctx context.Context, frontend netip.AddrPort) (observation.Counters, error) {
	if address := frontend.Addr(); !address.IsGlobalUnicast() || address.Zone() != "" {
		return observation.Counters{}, errors.New("not the address of a pod")
	}
	target := url.URL{Scheme: "http", Host: frontend.String(), Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return observation.Counters{}, err
	}
	request.Header.Set("User-Agent", "dynamo-planner")
	response, err := s.http.Do(request)
	if err != nil {
		return observation.Counters{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return observation.Counters{}, fmt.Errorf("it answers %s", response.Status)
	}
	body := &io.LimitedReader{R: response.Body, N: answerLimit}
	c, err := observation.Parse(body)
	if body.N <= 0 {
		return observation.Counters{}, fmt.Errorf("the answer is longer than %d bytes", answerLimit)
	}
	return c, err
}
