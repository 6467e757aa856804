package resilience

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/tree"
)

// world is a namespace with one graph.
type world struct {
	*testing.T
	ctx       context.Context
	cluster   *localenv.Cluster
	namespace string
}

func newWorld(t *testing.T, namespace string, patience time.Duration) world {
	t.Helper()
	if !*asked {
		t.Skip("takes minutes and measures: make resilience runs it")
	}
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w := world{T: t, ctx: ctx, cluster: c, namespace: namespace}
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Client.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Client.Delete(context.Background(), object); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	return w
}

const (
	graphName = "resilience"
	modelName = "Qwen/Qwen3-0.6B"
)

// disaggregated is a graph of two replicas each. Nothing hides a failure: the
// model may not migrate, which is the default, and a prompt that no prefill
// worker takes is refused rather than computed elsewhere, which is stricter than
// the default. Engines are slow enough for answers to be under way at any time.
const disaggregated = `
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: resilience, annotations: {nvidia.com/enable-grove: "false"}}
spec:
  backendFramework: vllm
  envs: [{name: MOCKER_SLOWDOWN, value: "10"}]
  services:
    Frontend:
      componentType: frontend
      replicas: 2
      extraPodSpec: {mainContainer: {image: "vllm-runtime:1", command: [python3, -m, dynamo.frontend], args: [--enforce-disagg]}}
    decode:
      componentType: worker
      subComponentType: decode
      replicas: 2
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "vllm-runtime:1", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B]}}
    prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 2
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "vllm-runtime:1", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B, --is-prefill-worker]}}
`

// url is where the graph is asked.
func (w world) url() string {
	return fmt.Sprintf("http://%s-frontend.%s.svc:8000", graphName, w.namespace)
}

func (w world) key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

func (w world) apply(text string) {
	w.Helper()
	objects, err := w.cluster.Decode(strings.NewReader(text), w.namespace)
	if err == nil {
		err = w.cluster.Apply(w.ctx, objects)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w world) eventually(what string, try func(ctx context.Context) error) {
	w.Helper()
	if err := w.cluster.Eventually(w.ctx, what, try); err != nil {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		last := context.WithoutCancel(w.ctx)
		_ = w.cluster.Client.Get(last, w.key(graphName), dgd) // the error says enough without it
		w.Fatalf("%v\n%s", err, strings.Join(tree.Lines(dgd, w.pods(last)), "\n"))
	}
}

// condition is whether the graph is ready in its current generation, and why.
func (w world) condition(ctx context.Context) (*metav1.Condition, error) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	if err := w.cluster.Client.Get(ctx, w.key(graphName), dgd); err != nil {
		return nil, err
	}
	condition := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil || dgd.Status.ObservedGeneration != dgd.Generation {
		return nil, errors.New("not observed")
	}
	return condition, nil
}

func (w world) isReady(ctx context.Context) error {
	condition, err := w.condition(ctx)
	if err == nil && condition.Status != metav1.ConditionTrue {
		err = fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	return err
}

// answers waits until the graph is ready and answers.
func (w world) answers() {
	w.Helper()
	w.eventually("the graph to be ready", w.isReady)
	w.eventually("an answer", func(ctx context.Context) error {
		return w.cluster.Chat(ctx, w.url(), modelName, "hello", 4, func(string) {})
	})
}

// get reads from a frontend of the graph.
func (w world) get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := w.cluster.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

func (w world) pods(ctx context.Context) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	if err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	return list.Items
}

func (w world) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	var list appsv1.DeploymentList
	err := w.cluster.Client.List(ctx, &list, client.InNamespace(w.namespace))
	return list.Items, err
}

// patch changes the graph's services.
func (w world) patch(services string) {
	w.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Namespace, dgd.Name = w.namespace, graphName
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"services":%s}}`, services))
	if err := w.cluster.Client.Patch(w.ctx, dgd, patch); err != nil {
		w.Fatal(err)
	}
}

func isReady(pod corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
