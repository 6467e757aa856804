package model

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
)

// slowEngine finishes loads when it is told to, whether or not its caller waits.
type slowEngine struct {
	finish chan struct{} // told to go on
	loaded chan struct{} // has gone on
	end    <-chan struct{}

	mu       sync.Mutex
	adapters map[string]int
}

func (e *slowEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Method == http.MethodPost {
		select {
		case <-e.finish:
		case <-e.end:
			return
		}
		e.mu.Lock()
		e.adapters["a"] = 1
		e.mu.Unlock()
		close(e.loaded)
		return // nobody listens any more
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := map[string]any{"status": "success", "loras": maps.Clone(e.adapters)}
	if _, had := e.adapters["a"]; r.Method == http.MethodDelete && !had {
		answer = map[string]any{"status": "error", "message": "not found"}
	}
	if r.Method == http.MethodDelete {
		delete(e.adapters, "a")
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// TestALoadThatOutlivesItsCallIsUnloadedWithItsModel: an engine that takes longer
// than a call may goes on loading, and its model is deleted meanwhile.
func TestALoadThatOutlivesItsCallIsUnloadedWithItsModel(t *testing.T) {
	e := &slowEngine{finish: make(chan struct{}), loaded: make(chan struct{}), end: t.Context().Done(), adapters: map[string]int{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	proxy, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	cluster := worldOf(t, func(*v1alpha1.DynamoModel) {})
	applier, err := apply.New(cluster, cluster)
	if err != nil {
		t.Fatal(err)
	}
	woken := make(chan struct{}, 100)
	r := &Reconciler{
		Client: cluster, Models: observe.Models{Reader: cluster}, Applier: applier,
		Caller:         lora.NewCaller(t.Context(), lora.NewClient(proxy), lora.Limits{Quick: 1, Slow: 1, SlowAfter: time.Minute, Timeout: 500 * time.Millisecond}),
		UnloadDeadline: time.Minute, Events: events.NewFakeRecorder(10), Clock: testclock.NewFakePassiveClock(time.Unix(10000, 0)),
		Wake: func(types.NamespacedName, time.Duration) { woken <- struct{}{} },
	}
	if !pass(t, r, cluster) {
		t.Fatal("nothing holds the model")
	}
	<-woken // the call is over, the load is not
	dm := &v1alpha1.DynamoModel{}
	if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "m"}, dm); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Delete(t.Context(), dm); err != nil {
		t.Fatal(err)
	}
	if !pass(t, r, cluster) {
		t.Fatal("released while the engine may load it")
	}
	<-woken // it was not there to be unloaded
	close(e.finish)
	<-e.loaded
	if !pass(t, r, cluster) {
		t.Fatal("released although it was not unloaded yet")
	}
	<-woken
	if pass(t, r, cluster) {
		t.Error("held after it was unloaded")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.adapters) > 0 {
		t.Error("the engine keeps the adapter of a model that is gone")
	}
}
