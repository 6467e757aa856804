package server

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
)

// counters play what workers have counted, behind a proxy on the way to them: every time
// that somebody looks, a thousand requests more, of which some have failed where the
// generation is not the first.
type counters struct {
	mu     sync.Mutex
	counts map[string]int
	pods   *kubelet
	first  string
	// failed are how many of a thousand requests of others fail.
	failed int
}

func (c *counters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || port != "9090" || r.URL.Path != "/metrics" || c.pods == nil {
		http.NotFound(w, r)
		return
	}
	c.counts[host]++
	fmt.Fprintf(w, "dynamo_component_requests_total %d\n", 1000*c.counts[host])
	if id, known := c.pods.generations.Load(host); known && id != c.first {
		fmt.Fprintf(w, "dynamo_component_errors_total %d\n", c.failed*c.counts[host])
	}
}

// TestACandidateIsJudgedByItsRequests: with a step of ten minutes, a candidate of whose
// requests 5 % fail is aborted long before, and the pods that served before it stay.
func TestACandidateIsJudgedByItsRequests(t *testing.T) {
	w := newWorld(t)
	seen := &counters{counts: map[string]int{}, failed: 50}
	proxy := httptest.NewServer(seen)
	t.Cleanup(proxy.Close)
	w.operate(generational + "network: {forwardProxy: " + proxy.URL + "}\n")
	w.rollOut()
	dgd := w.pair(4)
	dgd.Annotations = map[string]string{v1alpha1.AnnotationRolloutSteps: "25% 10m"}
	k := w.runPods()
	w.create(dgd)
	w.says("chat", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	k.promise(4, 3)

	seen.mu.Lock()
	k.generations.Range(func(_, id any) bool { seen.first = id.(string); return true })
	seen.pods = k
	seen.mu.Unlock()
	before := w.podsOf(seen.first)
	w.image(dgd, "1.1.0")
	now := w.phase("Aborted", nil)
	st := now.Status.Rollout
	if st.Reason != string(analysis.AbortRegression) || st.Stable != seen.first {
		t.Errorf("it says %s: %s", st.Reason, st.Message)
	}
	if st.Analysis == nil || st.Analysis.Verdict != "fail" || st.Analysis.Samples < 100 || len(st.Analysis.Errors) != 2 {
		t.Errorf("the analysis says %+v", st.Analysis)
	}
	after := w.podsOf(seen.first)
	kept := maps.Clone(before)
	maps.DeleteFunc(kept, func(uid types.UID, _ bool) bool { return !after[uid] })
	// The step takes as many from the stable generation as it gives to the candidate.
	if len(kept) < 6 {
		t.Errorf("of %d stable pods %d are left", len(before), len(kept))
	}
	w.says("chat", v1alpha1.ConditionServing, v1alpha1.ReasonAtFloor)
	t.Logf("%s (%d samples); at least %d of 4 pairs served", st.Message, st.Analysis.Samples, k.lowest.Load())
}
