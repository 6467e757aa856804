package scrape

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// pods answers for every address, as the proxy of a local cluster does.
func pods(t *testing.T, answer http.HandlerFunc) *Scraper {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	s, err := New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLook(t *testing.T) {
	asked := map[string]int{}
	s := pods(t, func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Host]++
		switch {
		case r.URL.Path != "/metrics" || r.Header.Get("Authorization") != "":
			http.Error(w, "what is this?", http.StatusTeapot)
		case strings.HasPrefix(r.URL.Host, "10.0.0.1:"):
			_, _ = io.WriteString(w, "# TYPE dynamo_frontend_requests_total counter\ndynamo_frontend_requests_total 7\n")
		case strings.HasPrefix(r.URL.Host, "10.0.0.2:"):
			http.Redirect(w, r, "http://10.0.0.9:8000/metrics", http.StatusFound)
		case strings.HasPrefix(r.URL.Host, "10.0.0.3:"):
			for range answerLimit/1024 + 1 {
				_, _ = io.WriteString(w, "# "+strings.Repeat("x", 1021)+"\n")
			}
		default:
			http.Error(w, "who?", http.StatusNotFound)
		}
	})
	for _, x := range []struct{ rule, frontend, failed string }{
		{"counters are read", "10.0.0.1:8000", ""},
		{"no redirect is followed", "10.0.0.2:8000", "302"},
		{"no more is read than a frontend can have to say", "10.0.0.3:8000", "longer than"},
		{"an error is one", "10.0.0.4:8000", "404"},
		{"nobody on this machine is asked", "127.0.0.1:8000", "not the address of a pod"},
		{"nor the metadata of a cloud", "169.254.169.254:80", "not the address of a pod"},
	} {
		look := s.Look(t.Context(), []netip.AddrPort{netip.MustParseAddrPort(x.frontend)})
		failed, why := look.Failed[x.frontend], x.failed
		if (failed != "") != (why != "") || !strings.Contains(failed, why) {
			t.Errorf("%s: %q", x.rule, failed)
		}
	}
	if asked["10.0.0.9:8000"] != 0 || asked["127.0.0.1:8000"] != 0 {
		t.Errorf("asked were %v", asked)
	}
	look := s.Look(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:8000")})
	if got := look.Frontends["10.0.0.1:8000"].Ended; got != 7 {
		t.Errorf("%v requests ended", got)
	}
}

func TestEngines(t *testing.T) {
	gone := make(chan struct{})
	defer close(gone)
	s := pods(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Host, "10.0.0.1:"):
			_, _ = io.WriteString(w, "vllm:num_requests_waiting 7\nvllm:kv_cache_usage_perc 0.5\n")
		case strings.HasPrefix(r.URL.Host, "10.0.0.2:"):
			_, _ = io.WriteString(w, "vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 0.25\n")
		case strings.HasPrefix(r.URL.Host, "10.0.0.3:"):
			http.Error(w, "", http.StatusServiceUnavailable)
		default: // it never answers
			select {
			case <-gone:
			case <-r.Context().Done():
			}
		}
	})
	var all []netip.AddrPort
	for _, address := range []string{"10.0.0.1:9090", "10.0.0.2:9090", "10.0.0.3:9090", "10.0.0.4:9090", "127.0.0.1:9090"} {
		all = append(all, netip.MustParseAddrPort(address))
	}
	began := time.Now()
	e := s.Engines(t.Context(), all)
	if cache, told := e.Cache(); e.Waiting != 8 || e.Told != 2 || cache != 0.375 || !told {
		t.Errorf("%+v", e)
	}
	if took := time.Since(began); took > timeout {
		t.Errorf("who does not answer is waited for: %s", took)
	}
}
