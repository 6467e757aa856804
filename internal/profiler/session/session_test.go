package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/bundle"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/config"
	"github.com/dynamo-operator/dynamo-operator/internal/profiler/online"
)

const (
	offline = "deployment: {model: Qwen/Qwen3-32B, namespace: ns}\nsweep: {useAiConfigurator: true, aicSystem: h200_sxm}\nsla: {isl: 1000, osl: 100, ttft: 2000, itl: 60}"
	live    = "deployment: {model: Qwen/Qwen3-32B, namespace: ns, deploymentTimeout: 60}\nsweep: {aicSystem: h200_sxm, maxMeasured: 2, requests: 3, maxConcurrency: 2}\nsla: {isl: 10, osl: 5, ttft: 2000, itl: 60}"
)

var (
	names    = bundle.Names{Graph: "goal", ProfileData: "goal-profile-data"}
	resource = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1alpha1", Resource: "dynamographdeployments"}
)

// cluster is one in memory, with the ConfigMap that a controller makes.
func cluster() *fake.Clientset {
	return fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "out"}})
}

func read(t *testing.T, c *fake.Clientset, name string) *corev1.ConfigMap {
	t.Helper()
	kept, err := c.CoreV1().ConfigMaps("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func sinkOf(c *fake.Clientset) ConfigMap {
	return ConfigMap{API: c.CoreV1().ConfigMaps("ns"), Name: "out", Labels: map[string]string{"a": "b"}}
}

func TestOfflineWritesEverythingDown(t *testing.T) {
	c := cluster()
	sink := sinkOf(c)
	sink.Receipt = profileoutput.Receipt{}
	end, err := Run{Config: offline, Catalog: perfmodel.Default(), Names: names, Sink: sink}.Do(t.Context())
	if err != nil || end.State != profileoutput.Succeeded || end.ExitStatus() != 0 {
		t.Fatalf("%+v, %v", end, err)
	}
	kept := read(t, c, "out")
	got, err := profileoutput.ParseResult(kept.Data[profileoutput.KeyResult])
	if err != nil || !got.SLAMet || got.ProfileData != names.ProfileData || got.GeneratedDeployment == "" || got.MockerDeployment == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if progress, err := profileoutput.ParseProgress(kept.Data[profileoutput.KeyProgress]); err != nil || progress.Total == 0 || progress.Best == "" {
		t.Errorf("%+v, %v", progress, err)
	}
	if !strings.Contains(kept.Data[profileoutput.KeyReportHTML], "<svg") || kept.Data[profileoutput.KeyReportText] == "" {
		t.Error("no report")
	}
	if data := read(t, c, names.ProfileData); data.Data[profileoutput.KeyPrefillData] == "" || data.Data[profileoutput.KeyDecodeData] == "" {
		t.Error("no profile")
	}
	for name, keys := range map[string]int{"out": 1, names.ProfileData: 2} {
		if proven, err := sink.Receipt.Proven(name, read(t, c, name).Data); err != nil || len(proven) != keys {
			t.Errorf("the receipt proves %d keys of %s: %v", len(proven), name, err)
		}
	}
	if len(sink.Receipt.Text()) > 4096 {
		t.Errorf("the receipt does not fit a termination message: %d bytes", len(sink.Receipt.Text()))
	}
}

// TestTheEndIsAlsoATerminationMessage: the digests of what was handed over, or
// why there is nothing.
func TestTheEndIsAlsoATerminationMessage(t *testing.T) {
	said := func(receipt profileoutput.Receipt, end profileoutput.Result, err error) string {
		f := flags{lastWords: filepath.Join(t.TempDir(), "log")}
		_ = f.told(receipt, end, err)
		text, err := os.ReadFile(f.lastWords)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got, err := profileoutput.ParseReceipt(said(profileoutput.Receipt{"a/b": "c"}, profileoutput.Result{State: profileoutput.Succeeded}, nil)); err != nil || got["a/b"] != "c" {
		t.Errorf("%v, %v", got, err)
	}
	long := profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonUnknownModel, Message: strings.Repeat(`"`, 9000)}
	if text := said(nil, long, nil); len(text) > 4096 {
		t.Errorf("%d bytes", len(text))
	} else if got, err := profileoutput.ParseResult(text); err != nil || got.Reason != profileoutput.ReasonUnknownModel {
		t.Errorf("%+v, %v", got, err)
	}
	if got := said(profileoutput.Receipt{"a/b": "c"}, profileoutput.Result{State: profileoutput.Succeeded}, errRefused); got != "no" {
		t.Errorf("a receipt for what was not written: %s", got)
	}
}

func TestAConfigurationThatWasNotAcceptedIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte("evil: true"), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"http://127.0.0.1:1\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := flags{config: path, digest: profileoutput.Sum("good: true"), kubeconfig: kubeconfig, lastWords: filepath.Join(dir, "log")}
	if err := f.run(t.Context()); err == nil || !strings.Contains(err.Error(), "not the one that was accepted") {
		t.Errorf("it goes on: %v", err)
	}
}

func TestAFailureIsWrittenDownToo(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want profileoutput.Reason
		exit int
	}{
		"a configuration that cannot be read": {"sla: 1", profileoutput.ReasonInvalidConfig, profileoutput.ExitPermanent},
		"a base graph that is not there":      {offline + "\nengine: {config: /nowhere/disagg.yaml}", profileoutput.ReasonInvalidConfig, profileoutput.ExitPermanent},
		"a GPU nobody knows":                  {strings.Replace(offline, "h200_sxm", "abacus", 1), profileoutput.ReasonUnknownGPU, profileoutput.ExitPermanent},
		"nothing fits":                        {strings.Replace(offline, "isl: 1000", "isl: 10000000", 1), profileoutput.ReasonNoConfiguration, profileoutput.ExitPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			end, err := Run{Config: test.text, Catalog: perfmodel.Default(), Names: names, Sink: sinkOf(c)}.Do(t.Context())
			if err != nil || end.ExitStatus() != test.exit {
				t.Fatalf("exit status %d, %v", end.ExitStatus(), err)
			}
			got, err := profileoutput.ParseResult(read(t, c, "out").Data[profileoutput.KeyResult])
			if err != nil || got.State != profileoutput.Failed || got.Reason != test.want || got.Message == "" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// world is a cluster in which every graph is ready at once, and a frontend that
// answers for all of them.
type world struct {
	graphs dynamic.ResourceInterface
	http   *http.Client

	mu      sync.Mutex
	created []*unstructured.Unstructured
}

func newWorld(t *testing.T, ready bool, answer http.HandlerFunc) *world {
	t.Helper()
	w := &world{}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "DynamoGraphDeploymentList"})
	client.PrependReactor("create", resource.Resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		object := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		if ready {
			_ = unstructured.SetNestedField(object.Object, "successful", "status", "state")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.created = append(w.created, object.DeepCopy())
		return false, nil, nil
	})
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	w.graphs = client.Resource(resource).Namespace("ns")
	w.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}}}
	return w
}

func (w *world) runner(c *config.Config) (*online.Runner, error) {
	return &online.Runner{
		Graphs: w.graphs, Namespace: "ns", Request: "goal", Owner: []metav1.OwnerReference{{Kind: "DynamoGraphDeploymentRequest", Name: "goal", UID: "1"}},
		HTTP: w.http, Model: c.Deployment.Model, Timeout: c.Deployment.Timeout, Poll: time.Millisecond, Goal: c.SLA, Sweep: c.Sweep,
	}, nil
}

func (w *world) left(t *testing.T) int {
	t.Helper()
	list, err := w.graphs.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// stream answers at once with as many tokens as were asked for.
func stream(w http.ResponseWriter, r *http.Request) {
	var body struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	for range body.MaxTokens {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
	}
	fmt.Fprintf(w, "data: {\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", len(strings.Fields(body.Messages[0].Content)), body.MaxTokens)
}

func TestOnlineMeasuresTheContendersAndLeavesNothing(t *testing.T) {
	c, w := cluster(), newWorld(t, true, stream)
	end, err := Run{Config: live, Catalog: perfmodel.Default(), Names: names, Sink: sinkOf(c), Runner: w.runner}.Do(t.Context())
	if err != nil || end.State != profileoutput.Succeeded || !end.Measured {
		t.Fatalf("%+v, %v", end, err)
	}
	if len(w.created) != 2 || w.left(t) != 0 {
		t.Errorf("%d graphs tried, %d left", len(w.created), w.left(t))
	}
	for _, g := range w.created {
		if owners := g.GetOwnerReferences(); len(owners) != 1 || g.GetLabels()[online.LabelTrial] != "goal" {
			t.Errorf("graph %s: owners %v, labels %v", g.GetName(), owners, g.GetLabels())
		}
	}
}

func TestAnInterruptedRunTakesItsGraphDown(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := cluster()
	w := newWorld(t, true, func(w http.ResponseWriter, r *http.Request) { cancel(); stream(w, r) })
	end, err := Run{Config: live, Catalog: perfmodel.Default(), Names: names, Sink: sinkOf(c), Runner: w.runner}.Do(ctx)
	if err != nil || end.State != profileoutput.Failed || end.Reason != profileoutput.ReasonInterrupted || end.ExitStatus() != 1 {
		t.Errorf("%+v, %v", end, err)
	}
	if len(w.created) == 0 || w.left(t) != 0 {
		t.Errorf("%d graphs tried, %d left", len(w.created), w.left(t))
	}
	if got, err := profileoutput.ParseResult(read(t, c, "out").Data[profileoutput.KeyResult]); err != nil || got.Reason != profileoutput.ReasonInterrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestGraphsThatNeverServeEndTheRun(t *testing.T) {
	c, w := cluster(), newWorld(t, false, stream)
	text := strings.Replace(live, "deploymentTimeout: 60", "deploymentTimeout: 1", 1)
	end, err := Run{Config: text, Catalog: perfmodel.Default(), Names: names, Sink: sinkOf(c), Runner: w.runner}.Do(t.Context())
	if err != nil || end.Reason != profileoutput.ReasonMeasurement || end.ExitStatus() == 0 || !strings.Contains(end.Message, "not ready") {
		t.Errorf("%+v, %v", end, err)
	}
	if w.left(t) != 0 {
		t.Errorf("%d graphs left", w.left(t))
	}
}

func TestTheNextAttemptSweepsWhatAKilledOneLeft(t *testing.T) {
	c, w := cluster(), newWorld(t, true, stream)
	left := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "nvidia.com/v1alpha1", "kind": v1alpha1.KindDynamoGraphDeployment}}
	left.SetName("goal-try-000000")
	left.SetLabels(map[string]string{online.LabelTrial: "goal"})
	others := left.DeepCopy()
	others.SetName("mine")
	others.SetLabels(map[string]string{online.LabelTrial: "another"})
	for _, g := range []*unstructured.Unstructured{left, others} {
		if _, err := w.graphs.Create(t.Context(), g, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (Run{Config: live, Catalog: perfmodel.Default(), Names: names, Sink: sinkOf(c), Runner: w.runner}).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.graphs.Get(t.Context(), "mine", metav1.GetOptions{}); err != nil || w.left(t) != 1 {
		t.Errorf("%d graphs left, %v", w.left(t), err)
	}
}

func TestBothAreToldWhateverOneSays(t *testing.T) {
	var text strings.Builder
	err := Both{refusing{}, Notes{&text}}.Finish(t.Context(), profileoutput.Result{State: profileoutput.Failed, Reason: profileoutput.ReasonInternal, Message: "m"}, nil)
	if !errors.Is(err, errRefused) || !strings.Contains(text.String(), "Failed: ProfilerError: m") {
		t.Errorf("%v, %q", err, text.String())
	}
}

var errRefused = errors.New("no")

type refusing struct{}

func (refusing) Progress(context.Context, profileoutput.Progress) error { return errRefused }
func (refusing) Finish(context.Context, profileoutput.Result, *bundle.Bundle) error {
	return errRefused
}
