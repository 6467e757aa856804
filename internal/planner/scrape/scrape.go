// Package scrape asks the frontends of a graph what they have counted, and its engines how
// busy they are. What it is
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
	// most is how many frontends are asked at once, and as many engines.
	most = 16
	// patience is how long all engines of a role have together: what they tell helps, and no
	// decision waits for it.
	patience = 2 * time.Second
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
	ask(ctx, s, frontends, observation.Parse, func(at netip.AddrPort, c observation.Counters, err error) {
		if err != nil {
			look.Failed[at.String()] = err.Error()
			return
		}
		look.Frontends[at.String()] = c
	})
	return look
}

// Engines asks those of a role at the same time, and is what they tell together. Who does not
// answer, or tells nothing, is left out.
func (s *Scraper) Engines(ctx context.Context, engines []netip.AddrPort) observation.Engines {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all observation.Engines
	ask(ctx, s, engines, observation.ParseEngine, func(_ netip.AddrPort, e observation.Engines, err error) {
		if err == nil {
			all = all.Plus(e)
		}
	})
	return all
}

// ask asks pods at the same time, and hands over what each says, one by one.
func ask[T any](ctx context.Context, s *Scraper, pods []netip.AddrPort, read func(io.Reader) (T, error), take func(netip.AddrPort, T, error)) {
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, most)
	for _, pod := range pods {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			answer, err := one(ctx, s, pod, read)
			mu.Lock()
			defer mu.Unlock()
			take(pod, answer, err)
		})
	}
	all.Wait()
}

func one[T any](ctx context.Context, s *Scraper, pod netip.AddrPort, read func(io.Reader) (T, error)) (T, error) {
	var none T
	if address := pod.Addr(); !address.IsGlobalUnicast() || address.Zone() != "" {
		return none, errors.New("not the address of a pod")
	}
	target := url.URL{Scheme: "http", Host: pod.String(), Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return none, err
	}
	request.Header.Set("User-Agent", "dynamo-planner")
	response, err := s.http.Do(request)
	if err != nil {
		return none, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return none, fmt.Errorf("it answers %s", response.Status)
	}
	body := &io.LimitedReader{R: response.Body, N: answerLimit}
	answer, err := read(body)
	if body.N <= 0 {
		return none, fmt.Errorf("the answer is longer than %d bytes", answerLimit)
	}
	return answer, err
}
