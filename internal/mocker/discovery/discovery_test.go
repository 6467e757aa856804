package discovery

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	framework "k8s.io/client-go/tools/cache/testing"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

var quiet = slog.New(slog.DiscardHandler)

func offer(instance uint64) Metadata {
	m := NewMetadata()
	a := Address{Namespace: "ns", Component: "backend", Endpoint: "generate", Instance: instance}
	m.Endpoints[a.Key()] = NewEndpoint(a, "http://10.16.0.2:8888/v1/rpc/generate")
	model := NewModel(a, Card{DisplayName: "m", Slug: "m", ModelType: Generative, ModelInput: "Tokens"}, "")
	m.ModelCards[model.Key()] = model
	return m
}

func TestInstanceIDOfAPod(t *testing.T) {
	for pod, want := range map[string]uint64{
		"worker-0":                   1186445869714687,
		"fake-name-1-0-worker-nrdfv": 1009006049675451,
	} {
		if got := InstanceID(pod); got != want {
			t.Errorf("InstanceID(%q) = %d, want %d", pod, got, want)
		}
	}
}

func TestSlug(t *testing.T) {
	for name, want := range map[string]string{"Qwen/Qwen3-0.6B": "qwen_qwen3-0_6b", "_a b": "a_b", "test_lora": "test_lora"} {
		if got := Slug(name); got != want {
			t.Errorf("Slug(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMetadataJSON(t *testing.T) {
	body, err := json.Marshal(offer(255))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"endpoints": map[string]any{"ns/backend/generate/ff": map[string]any{
			"type": "Endpoint", "namespace": "ns", "component": "backend", "endpoint": "generate", "instance_id": 255.0,
			"transport": map[string]any{"http": "http://10.16.0.2:8888/v1/rpc/generate"},
		}},
		"model_cards": map[string]any{"ns/backend/generate/ff": map[string]any{
			"type": "Model", "namespace": "ns", "component": "backend", "endpoint": "generate", "instance_id": 255.0,
			"card_json": map[string]any{
				"display_name": "m", "slug": "m", "source_path": "", "context_length": 0.0, "kv_cache_block_size": 0.0, "migration_limit": 0.0,
				"model_type": "Chat | Completions", "model_input": "Tokens", "user_data": nil,
				"runtime_config": map[string]any{"total_kv_blocks": 0.0, "max_num_seqs": 0.0, "max_num_batched_tokens": 0.0, "data_parallel_size": 0.0},
			},
		}},
		"event_channels": map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

// sets collects what a watch tells.
type sets struct {
	mu   sync.Mutex
	last Set
}

func (s *sets) tell(set Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = set
}

func (s *sets) await(t *testing.T, what string, holds func(Set) bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		s.mu.Lock()
		ok := holds(s.last)
		s.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never seen: %s; last %v", what, s.last)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func count(n int) func(Set) bool { return func(s Set) bool { return len(s.Endpoints) == n } }

func TestFolderShowsTheLiving(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *Folder {
		f, err := NewFolder(dir, name, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	watcher, one, two := open("w"), open("1"), open("2")
	defer watcher.Close(t.Context())
	var seen sets
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go watcher.Watch(ctx, seen.tell)
	one.Publish(offer(1))
	two.Publish(offer(2))
	seen.await(t, "both", count(2))
	one.Close(t.Context())
	seen.await(t, "one gone", count(1))
	if got := two.look(time.Now().Add(leaseTime + time.Minute)); len(got.Endpoints) != 0 {
		t.Error("a file nobody freshened still counts")
	}
	two.Close(t.Context())
	seen.await(t, "nobody", count(0))
}

func TestHubShowsItsMembers(t *testing.T) {
	hub := NewHub()
	one, watcher := hub.Join(), hub.Join()
	var seen sets
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go watcher.Watch(ctx, seen.tell)
	one.Publish(offer(1))
	seen.await(t, "one", count(1))
	one.Close(ctx)
	seen.await(t, "nobody", count(0))
}

// An API server that is away at first: what is published arrives when it is back.
func TestKubernetesPublishesUntilItSucceeds(t *testing.T) {
	var mu sync.Mutex
	var requests []*http.Request
	var bodies []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		text, _ := io.ReadAll(r.Body)
		requests = append(requests, r)
		if len(requests) == 1 {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		var body map[string]any
		_ = json.Unmarshal(text, &body)
		bodies = append(bodies, body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	defer server.Close()
	k, err := newKubernetes(&rest.Config{Host: server.URL}, Pod{Name: "p-1", Namespace: "lab", UID: "u-1"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	k.Publish(offer(7))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	k.Close(ctx)
	if ctx.Err() != nil {
		t.Fatal("withdrawing did not end")
	}
	mu.Lock()
	defer mu.Unlock()
	last := requests[len(requests)-1]
	if got, want := last.URL.Path, "/apis/nvidia.com/v1alpha1/namespaces/lab/dynamoworkermetadatas/p-1"; got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	if q := last.URL.Query(); q.Get("fieldManager") != "dynamo-worker" || q.Get("force") != "true" || last.Method != http.MethodPatch {
		t.Errorf("%s with %v, want a forced apply as dynamo-worker", last.Method, q)
	}
	if got := last.Header.Get("Content-Type"); got != "application/apply-patch+yaml" {
		t.Errorf("content type %s", got)
	}
	want := map[string]any{
		"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoWorkerMetadata",
		"metadata": map[string]any{"name": "p-1", "namespace": "lab", "ownerReferences": []any{map[string]any{
			"apiVersion": "v1", "kind": "Pod", "name": "p-1", "uid": "u-1", "controller": true, "blockOwnerDeletion": false,
		}}},
		"spec": map[string]any{"data": map[string]any{"endpoints": map[string]any{}, "model_cards": map[string]any{}, "event_channels": map[string]any{}}},
	}
	if diff := cmp.Diff(want, bodies[len(bodies)-1]); diff != "" {
		t.Errorf("last object (-want +got):\n%s", diff)
	}
}

// A pod is live when a labelled EndpointSlice calls it ready and an object of
// its name exists; one without the other is nobody.
func TestKubernetesJoinsSlicesAndObjects(t *testing.T) {
	k, err := newKubernetes(&rest.Config{Host: "http://127.0.0.1:1"}, Pod{Name: "watcher", Namespace: "lab", UID: "u"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	slices, objects := framework.NewFakeControllerSource(), framework.NewFakeControllerSource()
	k.slices, k.metadata = slices, objects
	for name, instance := range map[string]uint64{"ready": 1, "unready": 2, "nobody": 3} {
		object, err := (&Kubernetes{pod: Pod{Name: name, Namespace: "lab", UID: "u"}}).object(offer(instance))
		if err != nil {
			t.Fatal(err)
		}
		objects.Add(object)
	}
	broken := &unstructured.Unstructured{}
	if err := broken.UnmarshalJSON([]byte(`{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoWorkerMetadata","metadata":{"name":"broken","namespace":"lab"},"spec":{"data":{"endpoints":{}}}}`)); err != nil {
		t.Fatal(err)
	}
	objects.Add(broken)
	slice := func(ready bool) *discoveryv1.EndpointSlice {
		endpoint := func(name string, ready bool) discoveryv1.Endpoint {
			return discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
		}
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "lab"},
			Endpoints:  []discoveryv1.Endpoint{endpoint("ready", ready), endpoint("unready", false), endpoint("broken", true), endpoint("unpublished", true)},
		}
	}
	slices.Add(slice(true))
	var seen sets
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go k.Watch(ctx, seen.tell)
	seen.await(t, "the ready pod alone", func(s Set) bool {
		_, ok := s.Endpoints["ns/backend/generate/1"]
		return ok && len(s.Endpoints) == 1 && len(s.Models) == 1
	})
	slices.Modify(slice(false))
	seen.await(t, "nobody", count(0))
}

func TestOpen(t *testing.T) {
	for name, c := range map[string]struct {
		env  podenv.Env
		id   uint64
		fail bool
	}{
		"kubernetes needs a pod":             {env: podenv.Env{"DYN_DISCOVERY_BACKEND": "kubernetes"}, fail: true},
		"a folder takes the pod's name":      {env: podenv.Env{"DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": t.TempDir(), "POD_NAME": "worker-0"}, id: 1186445869714687},
		"the backend goes before the store":  {env: podenv.Env{"DYN_DISCOVERY_BACKEND": "mem", "DYN_STORE_KV": "file", "POD_NAME": "worker-0"}, id: 1186445869714687},
		"a backend nobody knows is an error": {env: podenv.Env{"DYN_DISCOVERY_BACKEND": "zookeeper"}, fail: true},
		"without etcd a folder is used":      {env: podenv.Env{"DYN_FILE_KV": t.TempDir(), "POD_NAME": "worker-0"}, id: 1186445869714687},
	} {
		t.Run(name, func(t *testing.T) {
			store, id, err := Open(c.env, quiet)
			if (err != nil) != c.fail {
				t.Fatalf("Open: %v, want failure %v", err, c.fail)
			}
			if err != nil {
				return
			}
			defer store.Close(t.Context())
			if id != c.id {
				t.Errorf("instance %d, want %d", id, c.id)
			}
		})
	}
}

// Containers that register for themselves are live when their pod is.
func TestContainersOfAPodRegisterApart(t *testing.T) {
	k, err := newKubernetes(&rest.Config{Host: "http://127.0.0.1:1"}, Pod{Name: "watcher", Namespace: "lab", UID: "u"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	slices, objects := cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)
	yes := true
	if err := slices.Add(&discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "lab"},
		Endpoints:  []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "p"}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
	}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, container := range []string{"engine-0", "engine-1"} {
		object, err := (&Kubernetes{pod: Pod{Name: "p", Namespace: "lab", UID: "u", Container: container}}).object(offer(uint64(i + 1)))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, object.GetName())
		if err := objects.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"p-engine-0", "p-engine-1"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if got := len(k.join(slices, objects).Endpoints); got != 2 {
		t.Errorf("%d endpoints are live, want those of both containers", got)
	}
}

func TestAnEndpointIsThatOfEveryGeneration(t *testing.T) {
	data := NewMetadata()
	for i, namespace := range []string{"ns-g", "ns-g-1f2e", "ns-g-2e3d", "ns-gone", "ns"} {
		a := Address{Namespace: namespace, Component: "backend", Endpoint: "generate", Instance: uint64(i)}
		data.Endpoints[a.Key()] = NewEndpoint(a, "http://x")
	}
	var got []string
	for _, e := range Merge(data).At(Address{Namespace: "ns-g", Component: "backend", Endpoint: "generate"}) {
		got = append(got, e.Namespace)
	}
	if diff := cmp.Diff([]string{"ns-g-1f2e", "ns-g-2e3d", "ns-g"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
