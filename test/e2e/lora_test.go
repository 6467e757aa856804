package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// An adapter is where its base model is served, whatever becomes of the engines:
// the model's status says so, and so does each engine.
func TestAnAdapterIsWhereItsBaseModelIs(t *testing.T) {
	published := filepath.Join("..", "..", "..", "shared", "corpus", "examples", "backends", "vllm", "deploy", "lora")
	for name, c := range map[string]struct {
		files                 []string
		graph, service, model string
	}{
		"our example": {[]string{"../../examples/lora.yaml"}, "lora", "decode", "support"},
		"the published one": {
			[]string{filepath.Join(published, "agg_lora.yaml"), filepath.Join(published, "lora-model.yaml")},
			"vllm-agg-lora", "VllmDecodeWorker", "codelion-recovery-lora",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(c.files[0]); err != nil {
				t.Skipf("the published manifests are not here: %v", err)
			}
			w := newWorld(t)
			for name, keys := range map[string][]string{"hf-token-secret": {"HF_TOKEN"}, "minio-secret": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}} {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, StringData: map[string]string{}}
				for _, key := range keys {
					secret.StringData[key] = "value"
				}
				w.create(secret)
			}
			for _, file := range c.files {
				w.apply(file)
			}
			dgd := w.ready(c.graph)
			url := w.frontendURL(dgd)
			adapter := w.agree(c.model, c.service, 1)
			w.offered(url, adapter)
			w.listed(c.model, adapter)

			for _, replicas := range []int32{4, 1} {
				w.scale(c.graph, c.service, replicas)
				w.agree(c.model, c.service, int(replicas))
			}
			kill(t, engineOf(t, w.podOf(c.graph, c.service)))
			w.eventually("a restarted engine", func(context.Context) error {
				if pod := w.podOf(c.graph, c.service); pod.Status.ContainerStatuses[0].RestartCount == 0 {
					return errors.New("not restarted")
				}
				return nil
			})
			w.agree(c.model, c.service, 1)
			w.offered(url, adapter)

			dm := w.model(c.model)
			before := dm.DeepCopy()
			dm.Spec.ModelName = "org/renamed"
			if err := w.cluster.Client.Patch(w.ctx, dm, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			w.agree(c.model, c.service, 1)
			w.offered(url, "org/renamed")
			w.notOffered(url, adapter)

			if err := w.cluster.Client.Delete(w.ctx, dm); err != nil {
				t.Fatal(err)
			}
			w.gone(&v1alpha1.DynamoModel{}, c.model)
			for _, pod := range w.workers(w.ctx, c.service) {
				if held, err := w.loras(w.ctx, pod); err != nil || len(held) > 0 {
					t.Errorf("%s holds %q, %v", pod.Name, held, err)
				}
			}
			w.notOffered(url, "org/renamed")
		})
	}
}

// TestAnAdapterThatSomebodyElseUnloadsComesBack: nobody tells the operator, so it
// asks the engines from time to time. The model says what was found meanwhile.
func TestAnAdapterThatSomebodyElseUnloadsComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy, err := w.cluster.HTTP.Transport.(*http.Transport).Proxy(&http.Request{URL: &url.URL{}})
	if err != nil {
		t.Fatal(err)
	}
	operate(t, w.cluster.Kubeconfig, fmt.Sprintf(`
namespaces: [%s]
network: {forwardProxy: %q}
lora: {recheck: 2s}
server: {metricsAddress: "", healthAddress: ""}
`, w.namespace, proxy))
	w.claimed()
	w.apply("../../examples/lora.yaml")
	dgd := w.ready("lora")
	adapter := w.agree("support", "decode", 1)
	frontend := w.frontendURL(dgd)
	w.offered(frontend, adapter)

	changes, err := w.cluster.Client.Watch(w.ctx, &v1alpha1.DynamoModelList{}, client.InNamespace(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	pod := w.podOf("lora", "decode")
	request, err := http.NewRequestWithContext(w.ctx, http.MethodDelete, fmt.Sprintf("http://%s:9090/v1/loras/%s", pod.Status.PodIP, adapter), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := w.cluster.HTTP.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	for told := false; !told; {
		select {
		case change := <-changes.ResultChan():
			dm, ok := change.Object.(*v1alpha1.DynamoModel)
			c := &metav1.Condition{}
			if ok {
				c = meta.FindStatusCondition(dm.Status.Conditions, v1alpha1.ConditionEndpointsReady)
			}
			told = c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "unloaded by somebody else")
		case <-w.ctx.Done():
			t.Fatal("the model never said that its adapter was gone")
		}
	}
	w.agree("support", "decode", 1)
	w.offered(frontend, adapter)
}

// claimed waits until the operator of this namespace has it to itself.
func (w world) claimed() {
	w.Helper()
	w.eventually("the claim of the namespace", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := w.cluster.Client.Get(ctx, w.key(namespacescope.LeaseName), lease); err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			return errors.New("nobody holds it")
		}
		return nil
	})
}

// listed asks the command line.
func (w world) listed(model, adapter string) {
	w.Helper()
	command := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), "models", "--kubeconfig", w.cluster.Kubeconfig, "-n", w.namespace)
	output, err := command.CombinedOutput()
	if err != nil {
		w.Fatalf("%v: %s", err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if words := strings.Fields(lines[len(lines)-1]); len(lines) != 2 || words[0] != model || words[2] != adapter || words[len(words)-1] != "loaded" {
		w.Errorf("kubectl dynamo models prints\n%s", output)
	}
}

func (w world) model(name string) *v1alpha1.DynamoModel {
	w.Helper()
	dm := &v1alpha1.DynamoModel{}
	if err := w.cluster.Client.Get(w.ctx, w.key(name), dm); err != nil {
		w.Fatal(err)
	}
	return dm
}

// agree waits until a model is ready on so many pods, and these are the pods of
// the service, and each of their engines holds the adapter and no other. It
// returns the adapter's name.
func (w world) agree(model, service string, want int) string {
	w.Helper()
	dm := &v1alpha1.DynamoModel{}
	w.eventually(fmt.Sprintf("%s on %d engines", model, want), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(model), dm); err != nil {
			return err
		}
		if dm.Status.ObservedGeneration != dm.Generation || !meta.IsStatusConditionTrue(dm.Status.Conditions, v1alpha1.ConditionEndpointsReady) {
			return fmt.Errorf("generation %d of %d, conditions %v", dm.Status.ObservedGeneration, dm.Generation, dm.Status.Conditions)
		}
		var told []string
		for _, e := range dm.Status.Endpoints {
			told = append(told, e.PodName)
		}
		pods := w.workers(ctx, service)
		if len(pods) != want || !slices.Equal(told, slices.Sorted(maps.Keys(pods))) {
			return fmt.Errorf("status names %v, there are %d pods", told, len(pods))
		}
		for _, pod := range pods {
			held, err := w.loras(ctx, pod)
			if err != nil {
				return err
			}
			if !slices.Equal(held, []string{dm.Spec.ModelName}) {
				return fmt.Errorf("%s holds %q", pod.Name, held)
			}
		}
		return nil
	})
	return dm.Spec.ModelName
}

// workers are the pods of a service that stay, by name.
func (w world) workers(ctx context.Context, service string) map[string]corev1.Pod {
	w.Helper()
	pods := map[string]corev1.Pod{}
	for _, pod := range w.pods(ctx) {
		if pod.DeletionTimestamp == nil && pod.Labels[v1alpha1.LabelComponent] == service {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// loras asks an engine itself.
func (w world) loras(ctx context.Context, pod corev1.Pod) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s:9090/v1/loras", pod.Status.PodIP), http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := w.cluster.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		LoRAs map[string]int64 `json:"loras"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", pod.Name, response.Status, err)
	}
	return slices.Sorted(maps.Keys(list.LoRAs)), nil
}

// scale writes the replicas of a service into its graph.
func (w world) scale(graphName, service string, replicas int32) {
	w.Helper()
	dgd := w.graph(graphName)
	before := dgd.DeepCopy()
	dgd.Spec.Services[service].Replicas = &replicas
	if err := w.cluster.Client.Patch(w.ctx, dgd, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// offered waits until a frontend answers under the name of a model.
func (w world) offered(url, model string) {
	w.Helper()
	w.eventually("an answer of "+model, func(ctx context.Context) error {
		models, err := w.cluster.Models(ctx, url)
		if err != nil {
			return err
		}
		if !slices.Contains(models, model) {
			return fmt.Errorf("there is %q", models)
		}
		return w.cluster.Chat(ctx, url, model, "hello", 4, func(string) {})
	})
}

func (w world) notOffered(url, model string) {
	w.Helper()
	w.eventually(model+" to be withdrawn", func(ctx context.Context) error {
		models, err := w.cluster.Models(ctx, url)
		if err == nil && slices.Contains(models, model) {
			err = errors.New("it is still listed")
		}
		return err
	})
}
