package observability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
)

// namespace is where the graphs of the demo live.
const namespace = "observed"

// demo is a cluster on which enough happens that every metric has a value.
type demo struct{ cluster *localenv.Cluster }

func newDemo(ctx context.Context, t *testing.T) *demo {
	t.Helper()
	binDir := os.Getenv("PLAYGROUND_BIN")
	if binDir == "" {
		t.Fatal("PLAYGROUND_BIN is not set: no programs to run a cluster from (make observability sets it)")
	}
	dir, err := os.MkdirTemp("", "observability-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the system cleans up what we cannot
	log, err := os.Create(filepath.Join(dir, "cluster.log"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := localenv.Up(ctx, localenv.Options{BinDir: binDir, Dir: filepath.Join(dir, "cluster"), Nodes: 2, GPUsPerNode: 8, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(cluster.InstallAPI(ctx), cluster.InstallOperatorWith(ctx, "rollout: {generations: true}")); err != nil {
		t.Fatal(err)
	}
	return &demo{cluster: cluster}
}

// proxy is how pods are reached from outside.
func (d *demo) proxy(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://pod", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := d.cluster.HTTP.Transport.(*http.Transport).Proxy(request)
	if err != nil || proxy == nil {
		t.Fatalf("the cluster has no proxy: %v", err)
	}
	return proxy.String()
}

// targets is a group of Prometheus' file discovery.
type targets struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// monitored is the port that a PodMonitor of the chart scrapes, by component type.
var monitored = map[string]string{"frontend": "http", "worker": "system", "prefill": "system", "decode": "system", "planner": "metrics"}

// discover keeps the lists of pods up to date until the end.
func (d *demo) discover(ctx context.Context, t *testing.T, operatorFile, graphsFile string) {
	for ; ctx.Err() == nil; sleep(ctx, time.Second) {
		var pods corev1.PodList
		if d.cluster.Client.List(ctx, &pods) != nil {
			continue // the next look may do better
		}
		operators, graphs := scraped(pods.Items)
		if err := errors.Join(replace(operatorFile, operators), replace(graphsFile, graphs)); err != nil {
			t.Error(err)
			return
		}
	}
}

// scraped are the pods that the chart's monitors select, with the labels that
// they add.
func scraped(pods []corev1.Pod) (operators, graphs []targets) {
	operators, graphs = []targets{}, []targets{} // an empty list is written as one
	for _, pod := range pods {
		labels := map[string]string{"namespace": pod.Namespace, "pod": pod.Name}
		switch {
		case pod.Namespace == localenv.OperatorKey.Namespace && pod.Labels["control-plane"] == "controller-manager":
			if address, ok := addressOf(pod, "metrics"); ok {
				operators = append(operators, targets{[]string{address}, labels})
			}
		case pod.Labels[v1alpha1.LabelMetricsEnabled] == "true":
			labels["graph"] = pod.Labels[v1alpha1.LabelGraphName]
			labels["service"] = pod.Labels[v1alpha1.LabelComponent]
			labels["dynamo_namespace"] = pod.Labels[v1alpha1.LabelDynamoNamespace]
			if address, ok := addressOf(pod, monitored[pod.Labels[v1alpha1.LabelComponentType]]); ok {
				graphs = append(graphs, targets{[]string{address}, labels})
			}
		}
	}
	return operators, graphs
}

func addressOf(pod corev1.Pod, port string) (string, bool) {
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == port && pod.Status.PodIP != "" {
				return fmt.Sprintf("%s:%d", pod.Status.PodIP, p.ContainerPort), true
			}
		}
	}
	return "", false
}

// replace writes a file in one step: its reader never sees half of it.
func replace(path string, groups []targets) error {
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

const planned = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: planned}
spec:
  services:
    Planner:
      componentType: planner
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0
          command: [python3, -m, planner_sla]
`

// rolled is a graph whose rollout stays at its first step.
const rolled = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: rolled
  annotations: {nvidia.com/rollout-steps: "1 hold"}
spec:
  backendFramework: vllm
  services:
    decode:
      componentType: worker
      replicas: 2
      extraPodSpec:
        mainContainer: {image: "vllm-runtime:%s", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}
`

// roll completes one rollout, and has another held for as long as the test lasts.
func (d *demo) roll(ctx context.Context, t *testing.T) {
	t.Helper()
	d.apply(ctx, t, namespace, fmt.Sprintf(rolled, "1.4.0"))
	d.ready(ctx, t, "rolled")
	d.apply(ctx, t, namespace, fmt.Sprintf(rolled, "1.5.0"))
	d.phase(ctx, t, generation.PhaseHeld)
	if _, err := d.cluster.Kubectl(ctx, nil, "annotate", "-n", namespace, "dgd", "rolled", v1alpha1.AnnotationRolloutSteps+"-"); err != nil {
		t.Fatal(err)
	}
	d.phase(ctx, t, generation.PhaseCompleted)
	d.apply(ctx, t, namespace, fmt.Sprintf(rolled, "1.6.0"))
	d.phase(ctx, t, generation.PhaseHeld)
}

// phase waits until the rollout is in one.
func (d *demo) phase(ctx context.Context, t *testing.T, phase generation.Phase) {
	t.Helper()
	if err := d.cluster.Eventually(ctx, "the rollout to be "+string(phase), func(ctx context.Context) error {
		var dgd v1alpha1.DynamoGraphDeployment
		if err := d.cluster.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "rolled"}, &dgd); err != nil {
			return err
		}
		if st := dgd.Status.Rollout; st == nil || st.Phase != string(phase) || dgd.Status.ObservedGeneration != dgd.Generation {
			return fmt.Errorf("%+v", st)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// wrong is a graph that nobody can run: its services differ in case alone.
const wrong = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: wrong}
spec: {services: {Foo: {}, foo: {}}}
`

// play runs a graph on every engine and a planner, and goes on asking, leaving
// early and sending bad graphs until the test ends.
func (d *demo) play(ctx context.Context, t *testing.T, p *prometheus) {
	t.Helper()
	if err := d.cluster.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	// A rate needs a value to grow from, so one graph comes before the others.
	d.apply(ctx, t, namespace, example(t, "vllm-aggregated"))
	d.ready(ctx, t, "vllm-aggregated")
	if err := d.cluster.Eventually(ctx, "prometheus to see a graph become ready", func(ctx context.Context) error {
		found, err := p.query(ctx, "dynamo_operator_graph_time_to_ready_seconds_count")
		if err == nil && !found {
			err = errors.New("not seen yet")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sglang-aggregated", "trtllm-aggregated"} {
		d.apply(ctx, t, namespace, example(t, name))
	}
	d.apply(ctx, t, namespace, planned)
	// No webhook judges what the operator writes, so it has to refuse this by
	// itself.
	operator := "system:serviceaccount:" + localenv.OperatorKey.Namespace + ":" + localenv.OperatorKey.Name
	if _, err := d.cluster.Kubectl(ctx, strings.NewReader(wrong), "apply", "-n", "default", "--as="+operator, "--as-group=system:masters", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sglang-aggregated", "trtllm-aggregated", "planned"} {
		d.ready(ctx, t, name)
	}
	d.roll(ctx, t)
	done, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for done.Err() == nil {
			for _, name := range []string{"vllm-aggregated", "sglang-aggregated", "trtllm-aggregated"} {
				d.ask(done, name)
			}
			d.offend(done, t)
			sleep(done, 200*time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

func example(t *testing.T, name string) string {
	t.Helper()
	return read(t, root+"examples/"+name+".yaml")
}

func (d *demo) apply(ctx context.Context, t *testing.T, namespace, manifest string) {
	t.Helper()
	objects, err := d.cluster.Decode(strings.NewReader(manifest), namespace)
	if err == nil {
		err = d.cluster.Apply(ctx, objects)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (d *demo) ready(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := d.cluster.Eventually(ctx, "graph "+name+" to be ready", func(ctx context.Context) error {
		var dgd v1alpha1.DynamoGraphDeployment
		key := localenv.OperatorKey
		key.Namespace, key.Name = namespace, name
		if err := d.cluster.Client.Get(ctx, key, &dgd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%+v", c)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// ask sends one request and stays to the end, and one and leaves in the middle.
// Whether they went well shows in the metrics.
func (d *demo) ask(ctx context.Context, name string) {
	frontend := fmt.Sprintf("http://%s.%s.svc:8000", graph.ComponentName(name, "Frontend"), namespace)
	models, err := d.cluster.Models(ctx, frontend)
	if err != nil {
		return
	}
	for _, model := range models {
		_ = d.cluster.Chat(ctx, frontend, model, "hello", 16, func(string) {})
		impatient, leave := context.WithCancel(ctx)
		_ = d.cluster.Chat(impatient, frontend, model, "tell me everything", 2000, func(string) { leave() })
		leave()
	}
}

// offend sends a graph that is refused.
func (d *demo) offend(ctx context.Context, t *testing.T) {
	objects, err := d.cluster.Decode(strings.NewReader(wrong), namespace)
	if err != nil {
		t.Error(err)
		return
	}
	for _, object := range objects {
		if err := d.cluster.Client.Create(ctx, object); err == nil {
			t.Error("a graph that cannot run was admitted")
		} else if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && ctx.Err() == nil {
			t.Logf("refused for another reason: %v", err)
		}
	}
}
