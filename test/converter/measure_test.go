package converter

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/testkit/summary"
)

// worker is a graph as they are published: two engines behind a frontend.
const worker = `{services: {
  Frontend: {componentType: frontend, replicas: 1, extraPodSpec: {mainContainer: {image: "example/runtime:0.8.0"}}},
  Prefill: {componentType: worker, subComponentType: prefill, replicas: 2, envFromSecret: hf, resources: {limits: {gpu: "4"}}, envs: [{name: A, value: b}],
    extraPodSpec: {mainContainer: {image: "example/runtime:0.8.0", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B, --is-prefill-worker]}}},
  Decode: {componentType: worker, subComponentType: decode, replicas: 4, envFromSecret: hf, resources: {limits: {gpu: "8"}}, sharedMemory: {size: 16Gi},
    extraPodSpec: {mainContainer: {image: "example/runtime:0.8.0", command: [python3, -m, dynamo.vllm], args: [--model, Qwen/Qwen3-0.6B, --is-decode-worker]}}}}}`

// TestManyGraphsInBothVersions is measured: what a client waits longer for that lists
// graphs as v1beta1.
func TestManyGraphsInBothVersions(t *testing.T) {
	if *graphs == 0 {
		t.Skip("a measurement: run make converter")
	}
	// Not the operator's namespace: its work is not measured.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "many-"}}
	if err := cluster.Client.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.Background(), ns); err != nil {
			t.Error(err)
		}
	})
	some, ctx := errgroup.WithContext(t.Context())
	some.SetLimit(16)
	for n := range *graphs {
		some.Go(func() error {
			g := object(alpha, "DynamoGraphDeployment", fmt.Sprintf("g-%d", n), worker)
			g.SetNamespace(ns.Name)
			return cluster.Client.Create(ctx, g)
		})
	}
	if err := some.Wait(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two replicas", func(ctx context.Context) error { return replicas(ctx, 2) })
	took := map[string][]time.Duration{}
	for range 5 {
		for _, version := range []string{alpha, beta} {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(version)
			list.SetKind("DynamoGraphDeploymentList")
			began := time.Now()
			if err := cluster.Client.List(t.Context(), list, client.InNamespace(ns.Name)); err != nil {
				t.Fatal(err)
			}
			took[version] = append(took[version], time.Since(began))
			if len(list.Items) != *graphs {
				t.Fatalf("%d graphs read", len(list.Items))
			}
		}
	}
	a, b := median(took[alpha]), median(took[beta])
	summary.Line(t, "converter: %d graphs read as v1alpha1 in %s, as v1beta1 in %s: %.1f times", *graphs, a.Round(time.Millisecond), b.Round(time.Millisecond), float64(b)/float64(a))
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
