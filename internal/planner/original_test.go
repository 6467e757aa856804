package planner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// newOriginalWorld has a planner of the original's policy, by a profile in which a prompt's
// token takes 0.02 ms and any decode replica makes 3000 tokens a second.
func newOriginalWorld(t *testing.T, words ...string) *world {
	t.Helper()
	folder := t.TempDir()
	prompts := []float64{1000, 2000, 3000, 4000}
	for name, data := range map[string]map[string]any{
		"prefill": {"prefill_isl": prompts, "prefill_ttft": []float64{20, 40, 60, 80}, "prefill_thpt_per_gpu": []float64{50000, 50000, 50000, 50000}},
		"decode": {
			"x_kv_usage": []float64{0, 1, 0, 1}, "y_context_length": []float64{1000, 1000, 4000, 4000},
			"z_itl": []float64{5, 8, 5, 8}, "z_thpt_per_gpu": []float64{3000, 3000, 3000, 3000}, "max_kv_tokens": 100000,
		},
	} {
		body, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name+"_raw_data.json"), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, append([]string{"--policy=original", "--load-predictor=constant", "--profile-results-dir=" + folder}, words...)...)
	w.firstToken, w.token = 0.04, 0.005
	return w
}

func (w *world) ready(is bool) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	w.graph.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status}}
}

// TestTheOriginalsPolicyDecidesAboutAGraphThatIsReady: its first interval begins once the graph
// is, and what is decided about one that is not any more is dropped.
func TestTheOriginalsPolicyDecidesAboutAGraphThatIsReady(t *testing.T) {
	w := newOriginalWorld(t)
	w.minutes(10, 40)
	if all := w.decisions(); len(all) > 0 {
		t.Errorf("before the graph is ready: %v", words(all))
	}
	w.ready(true)
	w.minutes(3, 40)
	if len(w.writes) > 0 {
		t.Errorf("before an interval is over: %v", w.writes)
	}
	w.ready(false)
	w.minutes(1, 40)
	if all := w.decisions(); len(w.writes) > 0 || len(all) == 0 || all[len(all)-1].Limited != "NotReady" {
		t.Errorf("of a graph that is not ready any more: %v, %v", w.writes, words(all))
	}
	w.ready(true)
	w.minutes(3, 40)
	if diff := cmp.Diff([]map[string]int{{"p": 2, "d": 3}}, w.writes); diff != "" {
		t.Error(diff)
	}
}

// TestTheOriginalsPolicyCountsForAnInterval, however late it looks.
func TestTheOriginalsPolicyCountsForAnInterval(t *testing.T) {
	w := newOriginalWorld(t, "--adjustment-interval=62")
	w.ready(true)
	w.minutes(1, 0)
	w.minutes(3, 25) // 50,000 tokens a second: one replica's throughput, and 1.05 in what 65 s count for 62
	if diff := cmp.Diff(map[string]int{"front": 1, "p": 1, "d": 2}, w.graph.Wanted); diff != "" {
		t.Error(diff)
	}
}

// TestTheOriginalsPolicyDoesNotLookForHalfAMinute: it sleeps.
func TestTheOriginalsPolicyDoesNotLookForHalfAMinute(t *testing.T) {
	w := newOriginalWorld(t, "--adjustment-interval=60")
	w.ready(true)
	began := w.now
	for len(w.writes) == 0 && w.now.Sub(began) < 5*time.Minute {
		w.minutes(1.0/12, 40)
	}
	if after := w.now.Sub(began); after < 90*time.Second || after > 100*time.Second {
		t.Errorf("it decides after %s", after)
	}
}
