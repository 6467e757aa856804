package model

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
)

// namingEngine knows adapters by name alone, as engines do: what it has it does not
// fetch again, from wherever.
type namingEngine struct {
	mu     sync.Mutex
	loaded map[string]string
}

func (e *namingEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := map[string]any{"status": "success", "loras": maps.Clone(e.loaded)}
	name := strings.TrimPrefix(r.URL.Path, "/v1/loras/")
	switch _, had := e.loaded[name]; {
	case r.Method == http.MethodPost:
		var body struct {
			Name   string            `json:"lora_name"`
			Source map[string]string `json:"source"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body) // what cannot be read has no name
		if _, had := e.loaded[body.Name]; !had {
			e.loaded[body.Name] = body.Source["uri"]
		}
	case r.Method == http.MethodDelete && !had:
		answer = map[string]any{"status": "error", "message": "not found"}
	case r.Method == http.MethodDelete:
		delete(e.loaded, name)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (e *namingEngine) holds() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.loaded)
}

// TestANameGoesFromOneModelToAnotherWithItsSource: the older model of two takes the
// name of the younger one, or another source of a name that they share.
func TestANameGoesFromOneModelToAnotherWithItsSource(t *testing.T) {
	for rule, before := range map[string]v1alpha1.DynamoModelSpec{
		"the older one had another name":    {ModelName: "x", Source: &v1alpha1.ModelSource{URI: "s3://b/x"}},
		"the older one had the same source": {ModelName: "n", Source: &v1alpha1.ModelSource{URI: "s3://b/young"}},
	} {
		t.Run(rule, func(t *testing.T) {
			e := &namingEngine{loaded: map[string]string{}}
			server := httptest.NewServer(e)
			t.Cleanup(server.Close)
			proxy, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			cluster := worldOf(t, func(dm *v1alpha1.DynamoModel) {
				dm.CreationTimestamp = metav1.Unix(1, 0)
				dm.Spec.ModelName, dm.Spec.Source = before.ModelName, before.Source
			})
			young := &v1alpha1.DynamoModel{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "young", UID: "young", CreationTimestamp: metav1.Unix(2, 0)},
				Spec:       v1alpha1.DynamoModelSpec{ModelName: "n", BaseModelName: "org/base", ModelType: v1alpha1.ModelTypeLoRA, Source: &v1alpha1.ModelSource{URI: "s3://b/young"}},
			}
			if err := cluster.Create(t.Context(), young); err != nil {
				t.Fatal(err)
			}
			applier, err := apply.New(cluster, cluster)
			if err != nil {
				t.Fatal(err)
			}
			woken := make(chan struct{}, 1000)
			operator := func() *Reconciler {
				return &Reconciler{
					Client: cluster, Models: observe.Models{Reader: cluster}, Applier: applier,
					Caller:         lora.NewCaller(t.Context(), lora.NewClient(proxy), lora.Limits{Quick: 1, Slow: 1, SlowAfter: time.Minute, Timeout: time.Minute}),
					UnloadDeadline: time.Minute, Events: events.NewFakeRecorder(1000), Clock: testclock.NewFakePassiveClock(time.Unix(10000, 0)),
					Wake: func(types.NamespacedName, time.Duration) { woken <- struct{}{} },
				}
			}
			r := operator()
			settle := func() {
				t.Helper()
				for range 12 {
					for _, name := range []string{"m", "young"} {
						dm := &v1alpha1.DynamoModel{}
						if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, dm); err != nil {
							continue // it was deleted
						}
						if _, err := r.Reconcile(t.Context(), dm); err != nil {
							t.Fatal(err)
						}
						for r.busy() {
							<-woken
						}
					}
				}
			}
			says := func(name string) string {
				dm := &v1alpha1.DynamoModel{}
				if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, dm); err != nil {
					t.Fatal(err)
				}
				return meta.FindStatusCondition(dm.Status.Conditions, v1alpha1.ConditionEndpointsReady).Reason
			}
			settle()
			old := &v1alpha1.DynamoModel{}
			if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "m"}, old); err != nil {
				t.Fatal(err)
			}
			old.Spec.ModelName, old.Spec.Source = "n", &v1alpha1.ModelSource{URI: "s3://b/old"}
			if err := cluster.Update(t.Context(), old); err != nil {
				t.Fatal(err)
			}
			settle()
			check := func(when string, want map[string]string) {
				t.Helper()
				if diff := cmp.Diff(want, e.holds()); diff != "" {
					t.Errorf("%s the engine holds (-want +got):\n%s", when, diff)
				}
			}
			check("after the edit", map[string]string{"n": "s3://b/old"})
			if got, waits := says("m"), says("young"); got != v1alpha1.ReasonAllEndpointsReady || waits != v1alpha1.ReasonNameConflict {
				t.Errorf("the older one says %s, the younger one %s", got, waits)
			}
			r = operator() // one that remembers nothing
			settle()
			check("after a restart", map[string]string{"n": "s3://b/old"})
			if err := client.IgnoreNotFound(cluster.Delete(t.Context(), old)); err != nil {
				t.Fatal(err)
			}
			settle()
			check("once the older one is gone", map[string]string{"n": "s3://b/young"})
		})
	}
}

// busy reports whether a call is under way.
func (r *Reconciler) busy() bool {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	for _, known := range r.memory.models {
		for _, e := range known.Engines {
			if e.Busy {
				return true
			}
		}
	}
	return false
}
