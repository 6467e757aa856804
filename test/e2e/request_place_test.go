package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestARequestPutsThingsWhereItSays starts from a graph of the user's own, keeps
// the profiler's files on a claim, and deploys into another namespace under
// another name.
func TestARequestPutsThingsWhereItSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w
	elsewhere.namespace += "-there"
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere.namespace}})
	t.Cleanup(func() {
		if err := w.cluster.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere.namespace}}); err != nil {
			t.Errorf("delete namespace: %v", err)
		}
	})
	elsewhere.applyText(fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: requests, annotations: {%s: "another, %s"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: requests}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: requests, namespace: %s}]
`, v1alpha1.AnnotationAllowRequestsFrom, w.namespace, elsewhere.namespace))
	w.applyText(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: results}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: base}
data:
  graph.yaml: |
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata: {name: of-mine}
    spec:
      services:
        Frontend:
          componentType: frontend
          replicas: 1
          envs: [{name: FROM, value: base}]
          extraPodSpec: {mainContainer: {image: "registry.example/vllm-runtime:1"}}
        Worker:
          componentType: worker
          replicas: 1
          extraPodSpec:
            mainContainer:
              image: registry.example/vllm-runtime:1
              command: [python3, -m, dynamo.vllm]
              args: [--model, Qwen/Qwen3-0.6B]
`)
	w.applyText(fmt.Sprintf(`apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata: {name: placed}
spec:
  model: Qwen/Qwen3-0.6B
  backend: vllm
  autoApply: true
  deploymentOverrides: {name: there, namespace: %s, labels: {team: a}, annotations: {note: b}}
  profilingConfig:
    profilerImage: dynamo-profiler:dev
    outputPVC: results
    configMapRef: {name: base, key: graph.yaml}
    resources: {requests: {cpu: 100m, memory: 64Mi}}
    tolerations: [{key: spare, operator: Exists}]
    config: {%s, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}}
`, elsewhere.namespace, sla))
	r := w.reach("placed", v1alpha1.RequestStateReady)
	if d := r.Status.Deployment; d == nil || d.Name != "there" || d.Namespace != elsewhere.namespace {
		t.Errorf("the status names %+v", d)
	}
	dgd := elsewhere.graph("there")
	if dgd.Labels["team"] != "a" || dgd.Annotations["note"] != "b" || dgd.Labels[v1alpha1.LabelRequestName] != "placed" || dgd.Labels[v1alpha1.LabelRequestNamespace] != w.namespace {
		t.Errorf("labels %v, annotations %v", dgd.Labels, dgd.Annotations)
	}
	if front := dgd.Spec.Services["Frontend"]; front == nil || !slices.Contains(front.Envs, corev1.EnvVar{Name: "FROM", Value: "base"}) {
		t.Errorf("the graph does not come from the one that was given: %+v", dgd.Spec.Services)
	}
	elsewhere.answers(elsewhere.frontendURL(dgd))

	// The profiler ran as asked, and its files outlive it.
	var claim corev1.PersistentVolumeClaim
	var volume corev1.PersistentVolume
	if err := w.cluster.Client.Get(w.ctx, w.key("results"), &claim); err != nil {
		t.Fatal(err)
	}
	key := w.key(claim.Spec.VolumeName)
	key.Namespace = ""
	if err := w.cluster.Client.Get(w.ctx, key, &volume); err != nil {
		t.Fatal(err)
	}
	if volume.Spec.HostPath == nil {
		t.Fatalf("no path on the host: %+v", volume.Spec.PersistentVolumeSource)
	}
	for _, file := range []string{"config_with_planner.yaml", "report.html"} {
		if _, err := os.Stat(filepath.Join(volume.Spec.HostPath.Path, file)); err != nil {
			t.Errorf("not on the claim: %v", err)
		}
	}
}
