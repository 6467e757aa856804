package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

// TestRenderPrintsWhatTheOperatorApplies holds what the command line renders
// without a cluster against what the operator has applied. The API server is the
// judge: applied once more under the operator's name, each rendered object must
// change neither a value nor the set of fields that the operator owns.
func TestRenderPrintsWhatTheOperatorApplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	w.ready("quickstart")
	rendered := w.rendered(quickstart)
	seen := map[string]int{}
	for _, object := range rendered {
		w.alreadyApplied(object)
		seen[object.GetKind()]++
	}
	want := map[string]int{
		"DynamoComponentDeployment": 3, "Deployment": 3, "Service": 3,
		"ServiceAccount": 2, "Role": 1, "RoleBinding": 2, // discovery, and the planner's of the namespace
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("objects by kind (-want +got):\n%s", diff)
	}
}

// rendered runs the command line with the configuration of the operator.
func (w world) rendered(path string) []*unstructured.Unstructured {
	w.Helper()
	var settings corev1.ConfigMap
	if err := w.cluster.Client.Get(w.ctx, types.NamespacedName{Namespace: localenv.OperatorKey.Namespace, Name: "dynamo-operator-config"}, &settings); err != nil {
		w.Fatal(err)
	}
	config := filepath.Join(w.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte(settings.Data["config.yaml"]), 0o600); err != nil {
		w.Fatal(err)
	}
	command := exec.CommandContext(w.ctx, filepath.Join(binDir, "kubectl-dynamo"), "render", "-f", path, "-n", w.namespace, "--config", config)
	var notes bytes.Buffer
	command.Stderr = &notes
	output, err := command.Output()
	if err != nil {
		w.Fatalf("render %s: %v\n%s", path, err, notes.String())
	}
	objects, err := w.cluster.Decode(bytes.NewReader(output), w.namespace)
	if err != nil {
		w.Fatal(err)
	}
	return objects
}

// alreadyApplied fails unless applying an object as the operator would change
// nothing at all.
func (w world) alreadyApplied(object *unstructured.Unstructured) {
	w.Helper()
	name := object.GetKind() + " " + object.GetName()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := w.cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(object), live); err != nil {
		w.Errorf("%s: %v", name, err)
		return
	}
	// The one thing that only a server knows.
	owners := object.GetOwnerReferences()
	for i, owner := range owners {
		at := slices.IndexFunc(live.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == owner.Kind && r.Name == owner.Name })
		if at < 0 {
			w.Errorf("%s: is not owned by %s %s", name, owner.Kind, owner.Name)
			return
		}
		owners[i].UID = live.GetOwnerReferences()[at].UID
	}
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
	if err := w.cluster.Client.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(apply.FieldManager), client.ForceOwnership, client.DryRunAll); err != nil {
		w.Errorf("%s: %v", name, err)
		return
	}
	if diff := cmp.Diff(operators(live), operators(object)); diff != "" {
		w.Errorf("%s: the operator owns other fields (-live +rendered):\n%s", name, diff)
	}
	if diff := cmp.Diff(content(live), content(object)); diff != "" {
		w.Errorf("%s: values differ (-live +rendered):\n%s", name, diff)
	}
}

// operators is the record of what the operator has applied.
func operators(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == apply.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return string(entry.FieldsV1.GetRawBytes())
		}
	}
	return ""
}

// content is an object without what moves while it runs.
func content(object *unstructured.Unstructured) map[string]any {
	fields := object.DeepCopy().Object
	delete(fields, "status")
	for _, moving := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(fields, "metadata", moving)
	}
	return fields
}
