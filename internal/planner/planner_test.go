package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/journal"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/observation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/trace"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/config"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/kube"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/role"
	"github.com/dynamo-operator/dynamo-operator/internal/planner/scrape"
)

// world is a cluster with one graph whose frontend counts, on a clock of its own.
type world struct {
	t       *testing.T
	planner *Planner
	now     time.Time
	graph   *kube.Graph
	writes  []map[string]int
	refuse  error
	// What the frontend has counted, of requests of 2000 and 200 tokens.
	began, ended float64
	// firstToken and token are the seconds that they got; 0 where nobody says.
	firstToken, token float64
	deaf              bool
	// slow is how long the API server takes before frontends are asked, and at what rate
	// requests come meanwhile.
	slow time.Duration
	rate float64
	// full is what a status says of replicas that no node has room for; empty if one has.
	// With flips it says something else for a look now and then, as while replicas change.
	full  string
	flips bool
	looks int
	// placed are the pods that have a node, by service.
	placed map[string]int
	kind   v1alpha1.ComponentKind
	// frontend is where it is.
	frontend string
	// queued are what the frontend says wait, if it tells, and engines what prefill and decode
	// engines say of themselves.
	queued  *float64
	engines map[string]string
	// silent is until when engines do not answer, if it is there.
	silent chan struct{}
}

func (w *world) Graph(context.Context, string) (*kube.Graph, error) {
	g := *w.graph
	g.Wanted = maps.Clone(w.graph.Wanted)
	w.looks++
	if w.flips && w.looks%5 == 0 {
		g.Status.Services = maps.Clone(g.Status.Services)
		for name, s := range g.Status.Services {
			s.Message = "not observed yet"
			g.Status.Services[name] = s
		}
	}
	return &g, nil
}

func (w *world) Places(context.Context, []graph.Component) (kube.Places, error) {
	w.now = w.now.Add(w.slow)
	w.began += w.slow.Seconds() * w.rate
	w.ended += w.slow.Seconds() * w.rate
	return kube.Places{Frontends: []netip.AddrPort{netip.MustParseAddrPort(w.frontend)}, Placed: w.placed, Workers: map[string][]netip.AddrPort{
		"p": {netip.MustParseAddrPort("10.0.0.2:9090")}, "d": {netip.MustParseAddrPort("10.0.0.3:9090")},
	}}, nil
}

// Scale makes replicas ready at once.
func (w *world) Scale(_ context.Context, _ *kube.Graph, replicas map[string]int, plan string) error {
	w.writes = append(w.writes, replicas)
	if w.refuse != nil {
		return w.refuse
	}
	w.graph.Plan = plan
	for service, n := range replicas {
		w.graph.Wanted[service] = n
		w.graph.Status.Services[service] = v1alpha1.ServiceReplicaStatus{ReadyReplicas: new(int32(n))}
		if w.full != "" && n > 1 {
			w.graph.Status.Services[service] = v1alpha1.ServiceReplicaStatus{ComponentKind: w.kind, ReadyReplicas: new(int32(1)), Message: w.full}
		}
	}
	return nil
}

func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	if r.URL.Host != w.frontend {
		if w.silent != nil {
			<-w.silent
		}
		_, _ = io.WriteString(out, w.engines[r.URL.Host])
		return
	}
	if w.deaf {
		http.Error(out, "", http.StatusServiceUnavailable)
		return
	}
	if w.queued != nil {
		fmt.Fprintf(out, "# TYPE dynamo_frontend_queued_requests gauge\ndynamo_frontend_queued_requests %v\n", *w.queued)
	}
	fmt.Fprintf(out, "# TYPE dynamo_frontend_requests_started_total counter\ndynamo_frontend_requests_started_total %v\n", w.began)
	fmt.Fprintf(out, "# TYPE dynamo_frontend_requests_total counter\ndynamo_frontend_requests_total %v\n", w.ended)
	for name, each := range map[string]float64{
		"input_sequence_tokens": 2000, "output_sequence_tokens": 200, "time_to_first_token_seconds": w.firstToken, "inter_token_latency_seconds": w.token,
	} {
		if each <= 0 {
			continue
		}
		fmt.Fprintf(out, "# TYPE dynamo_frontend_%[1]s histogram\ndynamo_frontend_%[1]s_bucket{le=\"+Inf\"} %[2]v\ndynamo_frontend_%[1]s_sum %[3]v\ndynamo_frontend_%[1]s_count %[2]v\n", name, w.ended, w.ended*each)
	}
}

func newWorld(t *testing.T, words ...string) *world {
	t.Helper()
	w := &world{t: t, now: time.Unix(1000, 0), frontend: "10.0.0.1:8000"}
	worker := func(name, role string) graph.Component {
		return graph.Component{
			Name: name, Role: graph.RoleWorker, SubType: role, Nodes: 1, Resources: graph.Resources{GPUs: 1},
			Main: &corev1.Container{Args: []string{"-m", "dynamo.vllm", "--model", "nobody/knows"}},
		}
	}
	w.graph = &kube.Graph{
		Graph: &graph.Graph{Name: "chat", Namespace: "lab", Components: []graph.Component{
			{Name: "front", Role: graph.RoleFrontend}, worker("p", "prefill"), worker("d", "decode"),
		}},
		Wanted: map[string]int{"front": 1, "p": 1, "d": 1},
		Status: v1alpha1.DynamoGraphDeploymentStatus{Services: map[string]v1alpha1.ServiceReplicaStatus{
			"p": {ReadyReplicas: new(int32(1))}, "d": {ReadyReplicas: new(int32(1))},
		}},
	}
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	scraper, err := scrape.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.New(append([]string{"--ttft=200", "--itl=10", "--max-gpu-budget=16"}, words...), config.Machine{Env: map[string]string{"DYN_PARENT_DGD_K8S_NAME": "chat"}})
	if err != nil {
		t.Fatal(err)
	}
	w.planner = New(c, w, scraper, slog.New(slog.NewTextHandler(io.Discard, nil)))
	w.planner.Now = func() time.Time { return w.now }
	return w
}

// minutes pass at a rate of requests.
func (w *world) minutes(n, rate float64) {
	w.t.Helper()
	for range int(n * 12) {
		w.now = w.now.Add(5 * time.Second)
		w.began += 5 * rate
		w.ended += 5 * rate
		if err := w.planner.Tick(w.t.Context()); err != nil && w.refuse == nil {
			w.t.Fatal(err)
		}
		w.heard()
	}
}

// heard waits until engines have told what they were asked.
func (w *world) heard() {
	defer w.planner.engines.asking.Unlock()
	w.planner.engines.asking.Lock()
}

func (w *world) decisions() []journal.Record {
	w.t.Helper()
	answer := httptest.NewRecorder()
	w.planner.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/decisions", http.NoBody))
	var all []journal.Record
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestAGraphGrowsWithItsTrafficAndShrinksAfterIt(t *testing.T) {
	w := newWorld(t)
	w.minutes(2, 2)
	if len(w.writes) > 0 {
		t.Errorf("light traffic led to %v", w.writes)
	}
	w.minutes(5, 40)
	grown := maps.Clone(w.graph.Wanted)
	if grown["p"] < 3 || grown["d"] < 2 || grown["p"]+grown["d"] > 16 || grown["front"] != 1 {
		t.Errorf("40 requests a second led to %v", grown)
	}
	w.minutes(45, 0)
	if w.graph.Wanted["p"] != 1 || w.graph.Wanted["d"] != 1 {
		t.Errorf("without traffic there are %v", w.graph.Wanted)
	}
	all := w.decisions()
	told := strings.Join(slices.Concat(words(all)...), "\n")
	for _, part := range []string{"NeedGrew", "NeedFell", "arrivals 40.0/s", "prefill needs", "the published profile of 8 billion"} {
		if !strings.Contains(told, part) {
			t.Errorf("%q is not told:\n%s", part, told)
		}
	}
	metrics := httptest.NewRecorder()
	w.planner.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for _, series := range []string{"planner:num_p_workers 1", "dynamo_planner_num_d_workers 1", `dynamo_planner_decisions_total{reason="NeedGrew"}`} {
		if !strings.Contains(metrics.Body.String(), series) {
			t.Errorf("%s is not among\n%s", series, metrics.Body)
		}
	}
}

func words(all []journal.Record) [][]string {
	var out [][]string
	for _, r := range all {
		out = append(out, r.Words)
	}
	return out
}

func TestADecisionSaysWhatItCostsOrThatNobodyKnows(t *testing.T) {
	for _, x := range []struct {
		rule  string
		words []string
		bare  bool // replicas ask for no GPU
		// prefill and decode are what a replica costs; both 0 where nobody knows.
		prefill, decode float64
	}{
		{"by the GPU that is named", []string{"--gpu=h100_sxm"}, false, 4, 4},
		{"by the price that is given", []string{"--gpu=h100_sxm", "--price-per-gpu-hour=3.2"}, false, 3.2, 3.2},
		{"not by the GPU that replicas are timed by where none is named", nil, false, 0, 0},
		{"nor by one that has no price", []string{"--gpu=abacus"}, false, 0, 0},
		{"each role by its own GPU", []string{"--prefill-gpu=l40s", "--decode-gpu=h100_sxm"}, false, 1.9, 4},
		{"or its own price", []string{"--gpu=h100_sxm", "--decode-price-per-gpu-hour=2"}, false, 4, 2},
		{"not where one role's is not known", []string{"--prefill-gpu=l40s"}, false, 0, 0},
		{"nor of replicas that ask for none", []string{"--gpu=h100_sxm"}, true, 0, 0},
		{"a role that asks for none costs nothing", []string{"--gpu=h100_sxm", "--prefill-engine-num-gpu=1"}, true, 4, 0},
		{"and the other what its own GPU does", []string{"--prefill-gpu=h100_sxm", "--prefill-engine-num-gpu=1"}, true, 4, 0},
		{"unless it is given how many they have", []string{"--gpu=h100_sxm", "--prefill-engine-num-gpu=1", "--decode-engine-num-gpu=1"}, true, 4, 4},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t, x.words...)
			for i := range w.graph.Components {
				if x.bare {
					w.graph.Components[i].Resources.GPUs = 0
				}
			}
			w.minutes(5, 40)
			all := w.decisions()
			grown := slices.IndexFunc(all, func(r journal.Record) bool { return r.Reason == decision.Grow })
			if grown < 0 {
				t.Fatalf("%+v", all)
			}
			r := all[grown]
			if x.prefill+x.decode == 0 {
				if r.Cost != nil || r.Unpriced == "" || !strings.Contains(strings.Join(r.Words, "\n"), "what it costs is not known") {
					t.Errorf("%+v", r)
				}
				return
			}
			hour := func(n journal.Replicas) float64 { return float64(n.Prefill)*x.prefill + float64(n.Decode)*x.decode }
			before, after := hour(r.From), hour(r.To)
			if r.Cost == nil || r.Cost.From != before || r.Cost.To != after || r.Cost.Headroom == nil || *r.Cost.Headroom < 0 || *r.Cost.Headroom >= after {
				t.Errorf("%+v of %+v", r.Cost, r)
			}
		})
	}
}

// TestNothingIsHeadroomBeforeAnythingWasSeen: a planner that starts beside a busy graph
// would call all of it that, until something changes.
func TestNothingIsHeadroomBeforeAnythingWasSeen(t *testing.T) {
	w := newWorld(t, "--gpu=h100_sxm")
	w.minutes(0.1, 40)
	all := w.decisions()
	if len(all) != 1 || all[0].Cost == nil || all[0].Cost.Headroom != nil {
		t.Errorf("%+v", all)
	}
}

// TestAQueueThatFrontendsDoNotTellIsSeenInEngines: what comes needs one replica, which would
// not have served those who wait before others had started.
func TestAQueueThatFrontendsDoNotTellIsSeenInEngines(t *testing.T) {
	waits := map[string]string{
		"10.0.0.2:9090": "vllm:num_requests_waiting{model_name=\"m\"} 10000\nvllm:num_requests_running{model_name=\"m\"} 1\nvllm:kv_cache_usage_perc{model_name=\"m\"} 0.25\n",
		"10.0.0.3:9090": "vllm:num_requests_waiting{model_name=\"m\"} 0\nvllm:num_requests_running{model_name=\"m\"} 9\nvllm:kv_cache_usage_perc{model_name=\"m\"} 0.5\n",
	}
	for _, x := range []struct {
		rule    string
		queued  *float64
		engines map[string]string
		grows   bool
	}{
		{"by what waits in prefill engines", nil, waits, true},
		{"not where the frontend tells that nobody waits", new(0.0), waits, false},
		{"nor where nobody tells", nil, nil, false},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t)
			w.queued, w.engines = x.queued, x.engines
			w.minutes(1, 2)
			if grown := w.graph.Wanted["p"] > 1; grown != x.grows {
				t.Errorf("%v, %v", w.graph.Wanted, w.decisions())
			}
			if w.engines == nil {
				return
			}
			// The first decision may have been made before they told.
			all := w.decisions()
			if last := all[len(all)-1].Words; x.grows && !(slices.Contains(last, "caches of decode are 50 % full") && slices.Contains(last, "caches of prefill are 25 % full")) {
				t.Errorf("%q", last)
			}
			metrics := httptest.NewRecorder()
			w.planner.Handler().ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
			if want := `dynamo_planner_kv_cache_usage{role="decode"} 0.5`; !strings.Contains(metrics.Body.String(), want) {
				t.Errorf("%s is not among\n%s", want, metrics.Body)
			}
		})
	}
}

func TestNoDecisionWaitsForEngines(t *testing.T) {
	w := newWorld(t)
	w.minutes(0.5, 2)
	gone := make(chan struct{})
	defer close(gone)
	w.silent = gone
	began := time.Now()
	for range 3 {
		if err := w.planner.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("three decisions took %s", took)
	}
}

func TestWhatEnginesToldCountsForTwoTicks(t *testing.T) {
	w := newWorld(t)
	w.engines = map[string]string{"10.0.0.2:9090": "vllm:num_requests_waiting 7\n"}
	w.minutes(0.5, 2)
	at := w.now.Sub(w.planner.begin)
	for _, x := range []struct {
		after time.Duration
		told  int
	}{{0, 1}, {5 * time.Second, 1}, {9 * time.Second, 1}, {10 * time.Second, 0}, {time.Hour, 0}} {
		if told := w.planner.engines.last(at+x.after, w.planner.Config.Tick)[decision.Prefill].Told; told != x.told {
			t.Errorf("after %s %d have told", x.after, told)
		}
	}
}

func TestWhatCameIsToldForSimulations(t *testing.T) {
	w := newWorld(t)
	w.minutes(1, 2)
	w.minutes(1, 0)
	w.minutes(1, 8)
	answer := httptest.NewRecorder()
	w.planner.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/bins", http.NoBody))
	var got trace.Bins
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	want := trace.Bins{Graph: "chat", Tick: 5}
	for i := 1; i < 36; i++ { // what was counted before the first look is of unknown age
		if n := []float64{10, 0, 40}[i/12]; n > 0 {
			want.Bins = append(want.Bins, trace.Bin{At: 5 * float64(i), Requests: n, Input: 2000, Output: 200})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTimeAtWhichNothingWasSeenIsNotIdle: what came meanwhile is told as if it had come evenly,
// and the time is left out where nobody counted.
func TestTimeAtWhichNothingWasSeenIsNotIdle(t *testing.T) {
	for _, x := range []struct {
		rule  string
		blind func(w *world)
		ends  float64
	}{
		{"frontends counted meanwhile", func(w *world) { w.minutes(10, 2) }, 12*60 - 5},
		{"those that counted are gone", func(w *world) { w.minutes(10, 2); w.frontend = "10.0.0.9:8000" }, 2*60 - 10},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t)
			w.minutes(1, 2)
			w.deaf = true
			x.blind(w)
			w.deaf = false
			w.minutes(1, 2)
			var want []trace.Bin
			for at := 5.0; at <= x.ends; at += 5 {
				want = append(want, trace.Bin{At: at, Requests: 10, Input: 2000, Output: 200})
			}
			if diff := cmp.Diff(want, w.planner.came.Bins); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnIdlePlannerWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.minutes(30, 0)
	if len(w.writes) > 0 || len(w.decisions()) > 2 {
		t.Errorf("%v, %v", w.writes, w.decisions())
	}
}

func TestWhoSeesNothingTakesNothingAway(t *testing.T) {
	w := newWorld(t)
	w.minutes(5, 40)
	grown, wrote := maps.Clone(w.graph.Wanted), len(w.writes)
	w.deaf = true
	w.minutes(0.17, 0)
	if len(w.writes) != wrote {
		t.Errorf("the graph is told after two ticks: %s", w.graph.Plan)
	}
	w.minutes(40, 0)
	if !maps.Equal(grown, w.graph.Wanted) || len(w.writes) != wrote+1 || len(w.writes[wrote]) > 0 {
		t.Errorf("%v became %v by %v", grown, w.graph.Wanted, w.writes[wrote:])
	}
	if all := w.decisions(); !strings.Contains(strings.Join(all[len(all)-1].Words, ""), "503") {
		t.Errorf("%+v", all[len(all)-1])
	}
	if why := journal.Unseen(w.graph.Plan); !strings.Contains(why, "503") {
		t.Errorf("the graph is told %q", why)
	}
	w.deaf = false
	w.minutes(0.17, 40)
	if why := journal.Unseen(w.graph.Plan); why != "" {
		t.Errorf("it sees again, and the graph is told %q", why)
	}
}

func TestAnAdvisorDecidesAndWritesNothing(t *testing.T) {
	for _, flag := range []string{"--no-operation", "--advisory"} {
		w := newWorld(t, flag)
		w.minutes(5, 40)
		if len(w.writes) > 0 {
			t.Errorf("%s: %v", flag, w.writes)
		}
		if all := w.decisions(); !all[len(all)-1].Advisory || all[len(all)-1].To.Prefill < 3 {
			t.Errorf("%s: %+v", flag, all[len(all)-1])
		}
	}
}

func TestAWriteThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.refuse = errors.New("no")
	w.minutes(5, 40)
	if all := w.decisions(); all[len(all)-1].Failed != "no" || len(w.writes) < 2 {
		t.Errorf("%+v after %d writes", all[len(all)-1], len(w.writes))
	}
}

func TestAnAggregatedGraphHasOneRole(t *testing.T) {
	w := newWorld(t, "--mode=agg")
	w.graph.Components[1] = graph.Component{Name: "all", Role: graph.RoleWorker, Nodes: 1}
	w.graph.Components = w.graph.Components[:2]
	w.graph.Wanted = map[string]int{"front": 1, "all": 1}
	w.graph.Status.Services = map[string]v1alpha1.ServiceReplicaStatus{"all": {ReadyReplicas: new(int32(1))}}
	w.minutes(5, 40)
	if n := w.graph.Wanted["all"]; n < 3 || n > 16 {
		t.Errorf("%d replicas, %v", n, w.decisions())
	}
}

func TestAGraphWithoutARoleIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.graph.Components = w.graph.Components[:2]
	w.minutes(2, 40)
	// It is told so, and nothing else is written.
	if len(w.writes) != 1 || len(w.writes[0]) > 0 || !strings.Contains(journal.Unseen(w.graph.Plan), "0 services of decode") {
		t.Errorf("%v, %s", w.writes, w.graph.Plan)
	}
	if all := w.decisions(); !strings.Contains(strings.Join(all[0].Words, ""), "0 services of decode") {
		t.Errorf("%+v", all)
	}
}

func TestStartsThatTheGraphRemembersAreForeseen(t *testing.T) {
	w := newWorld(t)
	w.graph.Status.Services["d"] = v1alpha1.ServiceReplicaStatus{ReadyReplicas: new(int32(1)), Startup: &v1alpha1.StartupTimes{P50Seconds: 200, P95Seconds: 300, Samples: 9}}
	w.minutes(1, 2)
	all := w.planner.journal.Records()
	if len(all) == 0 || !strings.Contains(strings.Join(all[0].Words, "\n"), "within 5m5s") {
		t.Errorf("decisions %+v", all)
	}
}

func TestTimeThatReplicasAreHeldBackIsNotThatOfAStart(t *testing.T) {
	for _, x := range []struct {
		rule string
		held metav1.Condition
	}{
		{"asleep", metav1.Condition{Type: v1alpha1.ConditionDormant, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonIdle}},
		{"by a budget", metav1.Condition{Type: v1alpha1.ConditionScalingLimited, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBudgetExhausted}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t)
			ready := func(n int32) { w.graph.Status.Services["d"] = v1alpha1.ServiceReplicaStatus{ReadyReplicas: new(n)} }
			w.minutes(1, 0)
			ready(0)
			w.graph.Status.Conditions = []metav1.Condition{x.held}
			w.minutes(60, 0)
			w.graph.Status.Conditions = nil
			w.minutes(0.5, 0)
			ready(1)
			w.minutes(0.5, 0)
			if took := observation.Startup(w.planner.starts[:]...); took < 30*time.Second || took > 40*time.Second {
				t.Errorf("a start of 30 s took %s", took)
			}
		})
	}
}

func TestReplicasThatNoNodeHasRoomForAreGivenUp(t *testing.T) {
	for _, x := range []struct {
		rule   string
		flips  bool
		placed int
		nodes  int32
		kind   v1alpha1.ComponentKind
		left   int
	}{
		{"after a minute", false, 0, 1, "", 1},
		{"after a minute though the status says something else meanwhile", true, 0, 1, "", 1},
		{"and those that load on nodes are kept", false, 3, 1, v1alpha1.ComponentKindDeployment, 3},
		{"of groups whose leaders alone are listed each has a node", false, 3, 2, v1alpha1.ComponentKindLeaderWorkerSet, 3},
		{"of groups that are listed whole those that are whole", false, 5, 2, v1alpha1.ComponentKindPodCliqueScalingGroup, 2},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t, "--max-gpu-budget=32")
			w.full, w.flips = "0 of 3 replicas available: pod p-1: needs 1 nvidia.com/gpu; 0 of 12 nodes fit: 12 Insufficient nvidia.com/gpu", x.flips
			w.graph.Components[1].Nodes, w.placed, w.kind = x.nodes, map[string]int{"p": x.placed, "d": 1}, x.kind
			w.minutes(3, 80)
			all := w.planner.journal.Records()
			grew := slices.IndexFunc(all, func(r journal.Record) bool { return r.To.Prefill > r.From.Prefill })
			gave := slices.IndexFunc(all, func(r journal.Record) bool { return r.Reason == "Unschedulable" })
			if grew < 0 || gave < grew || !strings.Contains(strings.Join(all[gave].Words, "\n"), "nvidia.com/gpu") {
				t.Fatalf("decisions %+v", all)
			}
			if after := all[gave].At.Sub(all[grew].At); after < time.Minute || after > 75*time.Second {
				t.Errorf("given up after %s: %+v", after, all)
			}
			if all[gave].To.Prefill != x.left {
				t.Errorf("%+v are left: %v", all[gave].To, all[gave].Words)
			}
		})
	}
}

// TestReplicasThatEndAreCountedAsReplicas: a Service of a scaling group selects every pod of a
// group, so that one replica that ends is as many endpoints as it has nodes.
func TestReplicasThatEndAreCountedAsReplicas(t *testing.T) {
	for _, c := range []struct {
		rule   string
		kind   v1alpha1.ComponentKind
		nodes  int32
		ending int
		want   int
	}{
		{"pods of a Deployment", v1alpha1.ComponentKindDeployment, 1, 3, 3},
		{"leaders alone", v1alpha1.ComponentKindLeaderWorkerSet, 4, 2, 2},
		{"groups that are listed whole", v1alpha1.ComponentKindPodCliqueScalingGroup, 4, 8, 2},
		{"a group of which some pods are gone holds its GPUs", v1alpha1.ComponentKindPodCliqueScalingGroup, 4, 5, 2},
		{"none", v1alpha1.ComponentKindPodCliqueScalingGroup, 4, 0, 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorld(t)
			w.graph.Components[2].Nodes = c.nodes
			w.graph.Status.Services["d"] = v1alpha1.ServiceReplicaStatus{ComponentKind: c.kind, ReadyReplicas: new(int32(1))}
			parts, missing := role.Find(w.graph.Components, config.Disaggregated)
			if missing != "" {
				t.Fatal(missing)
			}
			s := w.planner.snapshot(0, w.graph, parts, kube.Places{Ending: map[string]int{"d": c.ending}}, observation.Reading{})
			if got := s.Roles[decision.Decode].Draining; got != c.want {
				t.Errorf("%d pods of %d each that end are %d replicas, want %d", c.ending, c.nodes, got, c.want)
			}
		})
	}
}

// A frontend counts requests without a first token: those that a replica computes are among
// them, and wait for nobody.
func TestWhoIsComputedDoesNotWait(t *testing.T) {
	for _, c := range []struct {
		rule                  string
		mode                  config.Mode
		queued                float64
		wantQueue, wantActive float64
	}{
		{"as many as replicas are computed", config.Disaggregated, 3, 0, 7},
		{"fewer than replicas are computed", config.Disaggregated, 1, 0, 7},
		{"the others wait", config.Disaggregated, 8, 5, 7},
		{"where one role does both all are its own", config.Aggregated, 8, 0, 15},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorld(t)
			w.graph.Wanted["p"] = 3
			w.graph.Status.Services["p"] = v1alpha1.ServiceReplicaStatus{ReadyReplicas: new(int32(3))}
			parts, missing := role.Find(w.graph.Components, c.mode)
			if missing != "" {
				t.Fatal(missing)
			}
			s := w.planner.snapshot(0, w.graph, parts, kube.Places{}, observation.Reading{Queue: c.queued, Active: 7})
			if s.Queue != c.wantQueue || s.Active != c.wantActive {
				t.Errorf("of %v without a first token %v wait and %v are active, want %v and %v", c.queued, s.Queue, s.Active, c.wantQueue, c.wantActive)
			}
		})
	}
}

// A look that takes long counts what came meanwhile, in the time in which it came: nobody is
// started for an API server that is slow.
func TestALookThatTakesLongSeesNoMoreRequestsThanCame(t *testing.T) {
	w := newWorld(t)
	w.rate = 6
	w.minutes(3, w.rate)
	for range 3 {
		w.slow = 12 * time.Second
		w.minutes(1.0/12, w.rate)
		w.slow = 0
		w.minutes(1, w.rate)
	}
	if len(w.writes) > 0 {
		t.Errorf("6 requests a second led to %v: %v", w.writes, words(w.decisions()))
	}
}

// With two roles the first token that a user sees is one of decode: after its prompt is
// computed a request joins the next step, half a step later on average, and gets it at the end
// of that. A prompt is no slower for it.
func TestTheFirstStepOfDecodeIsNoPartOfAPrompt(t *testing.T) {
	for _, c := range []struct {
		rule         string
		mode         config.Mode
		first, token float64
		want         float64
	}{
		{"a step and a half is decode's", config.Disaggregated, 0.5, 0.1, 0.35},
		{"an unknown step is none", config.Disaggregated, 0.5, 0, 0.5},
		{"a prompt that is hidden by steps is unknown", config.Disaggregated, 0.1, 0.1, 0},
		{"what is mostly decode's is unknown", config.Disaggregated, 0.2, 0.1, 0},
		{"one role gives the first token with the prompt", config.Aggregated, 0.5, 0.1, 0.5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			w := newWorld(t)
			parts, missing := role.Find(w.graph.Components, c.mode)
			if missing != "" {
				t.Fatal(missing)
			}
			seen := capacity.Observation{Requests: 40, FirstToken: c.first, Token: c.token}
			got := w.planner.snapshot(0, w.graph, parts, kube.Places{}, observation.Reading{Observed: seen}).Observed
			if want := (capacity.Observation{Requests: 40, FirstToken: c.want, Token: c.token}); math.Abs(got.FirstToken-want.FirstToken) > 1e-9 || got.Token != want.Token || got.Requests != want.Requests {
				t.Errorf("observed %+v, want %+v", got, want)
			}
		})
	}
}

func TestMetricsTellTheCorrectionThatIsInUse(t *testing.T) {
	model := capacity.H200()
	prompt, token := model.Prefill(2000), model.Token(0, 2100)
	for _, x := range []struct {
		rule            string
		words           []string
		past            original.Memory
		prefill, decode float64
	}{
		{"what requests get corrects the profile", nil, original.Memory{}, 2, 1.5},
		{"without corrections it counts as it is", []string{"--no-correction"}, original.Memory{}, 1, 1},
		{"the original's are those of its last interval", []string{"--policy=original"}, original.Memory{PrefillCorrection: 1.3, DecodeCorrection: 0.8}, 1.3, 0.8},
		{"the original has none before its first", []string{"--policy=original"}, original.Memory{}, 1, 1},
	} {
		t.Run(x.rule, func(t *testing.T) {
			w := newWorld(t, append(x.words, "--ttft=2000")...) // that no second replica is needed
			w.planner.old.past = x.past
			w.token = 1.5 * token
			w.firstToken = 2*prompt + decodesFirst*w.token // at even distances nobody waits
			if w.planner.Config.Policy == config.Original {
				w.planner.timing = &role.Timing{Model: model} // no profile, so it decides nothing
			}
			w.minutes(10, 5)
			for name, want := range map[string]float64{"p_correction_factor": x.prefill, "d_correction_factor": x.decode} {
				if got := gauge(t, w.planner, name); math.Abs(got/want-1) > 0.1 || want == 1 && got != 1 {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
		})
	}
}

// gauge is a number that a planner shows.
func gauge(t *testing.T, p *Planner, name string) float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	p.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(answer.Body.String()) {
		if value, found := strings.CutPrefix(line, "dynamo_planner_"+name+" "); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("%s is not shown", name)
	return 0
}
