package scrape

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

// pods answers for pods behind a proxy: those of 10.0.0.2 fail one request in ten, and
// every look finds a thousand more.
func pods(t *testing.T) (*url.URL, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	counts := map[string]*atomic.Int64{"10.0.0.1:9090": {}, "10.0.0.2:9090": {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		count := counts[r.Host]
		switch {
		case count == nil:
			http.Redirect(w, r, "http://10.0.0.1:9090/metrics", http.StatusFound)
		case r.Header.Get("Authorization") != "" || r.URL.Path != path:
			t.Errorf("asked for %s with %v", r.URL.Path, r.Header)
		default:
			n := count.Add(1000)
			fmt.Fprintf(w, "dynamo_component_requests_total %d\n", n)
			if strings.HasPrefix(r.Host, "10.0.0.2") {
				fmt.Fprintf(w, "dynamo_component_errors_total %d\n", n/10)
			}
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at, asked
}

func pod(uid, address string, candidate bool) analysis.Pod {
	return analysis.Pod{UID: uid, Address: netip.MustParseAddr(address), Port: 9090, Candidate: candidate, Duty: analysis.Duty{Entry: true, FirstToken: true}}
}

// looked waits until a look is over.
func (s *Scraper) looked(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		looking := false
		for _, of := range s.seen {
			looking = looking || of.looking
		}
		s.mu.Unlock()
		if !looking {
			return
		}
	}
	t.Fatal("no end of looking")
}

func TestACandidateIsComparedWithWhatServesBesideIt(t *testing.T) {
	proxy, asked := pods(t)
	s := New(t.Context(), proxy)
	graph := types.NamespacedName{Namespace: "ns", Name: "chat"}
	compared := []analysis.Comparison{{Cell: "decode", Candidate: "b", Stable: "a", Pods: []analysis.Pod{pod("1", "10.0.0.1", false), pod("2", "10.0.0.2", true)}}}
	now := time.Now()
	if first := s.Ask(graph, compared, now)["decode"].Judge(policy.SLO{}); first.Samples != 0 {
		t.Errorf("before anybody was asked it says %+v", first)
	}
	s.looked(t)
	s.Ask(graph, compared, time.Now())
	s.looked(t)
	if n := asked.Load(); n != 2 {
		t.Errorf("two pods were asked %d times within one interval", n)
	}
	s.Ask(graph, compared, now.Add(2*interval))
	s.looked(t)
	got := s.Ask(graph, compared, time.Now())["decode"].Judge(policy.SLO{})
	if got.Verdict != policy.VerdictFail || got.Samples != 1000 || got.Errors != [2]float64{.1, 0} {
		t.Errorf("judged %+v", got)
	}
	compared[0].Revision++
	if again := s.Ask(graph, compared, time.Now())["decode"].Judge(policy.SLO{}); again.Samples != 0 {
		t.Errorf("a retry is judged by %d requests of the rollout before", again.Samples)
	}
	compared[0].Candidate = "c"
	if other := s.Ask(graph, compared, time.Now())["decode"].Judge(policy.SLO{}); other.Samples != 0 {
		t.Errorf("another candidate is judged by %d requests of the one before", other.Samples)
	}
	s.looked(t)
	s.Ask(graph, compared, time.Now().Add(2*kept))
	if len(s.seen) != 1 {
		t.Errorf("%d series are kept that nobody asks for", len(s.seen)-1)
	}
	s.looked(t)
}

func TestWhoIsNotAskedCountsNothing(t *testing.T) {
	proxy, asked := pods(t)
	s := New(t.Context(), proxy)
	graph := types.NamespacedName{Namespace: "ns", Name: "chat"}
	for name, address := range map[string]string{"an address that is no pod's": "127.0.0.1", "one that sends elsewhere": "10.0.0.9"} {
		compared := []analysis.Comparison{{Cell: name, Candidate: "b", Stable: "a", Pods: []analysis.Pod{pod("1", address, true)}}}
		for look := range 3 {
			s.Ask(graph, compared, time.Now().Add(time.Duration(look)*2*interval))
			s.looked(t)
		}
		if got := s.Ask(graph, compared, time.Now())[name].Judge(policy.SLO{}); got.Samples != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d requests were sent, 3 to the pod that sends elsewhere", n)
	}
}

func TestOfManyPodsSomeOfEachSideAreAsked(t *testing.T) {
	var many []analysis.Pod
	for i := range 200 {
		many = append(many, pod(fmt.Sprint(i), "10.0.0.1", i < 150))
	}
	candidates := 0
	some := sample(many)
	for _, p := range some {
		if p.Candidate {
			candidates++
		}
	}
	if len(some) != podLimit || candidates != podLimit/2 {
		t.Errorf("%d are asked, %d of the candidate", len(some), candidates)
	}
}
