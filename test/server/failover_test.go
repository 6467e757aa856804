package server

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// TestACohortIsDeletedWithAnEngineThatEnded: the engines of its number, and neither those
// that stand by nor their servers, with the role that is shipped for it.
func TestACohortIsDeletedWithAnEngineThatEnded(t *testing.T) {
	w := newWorld(t)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "failover-of-" + w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-failover"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	}
	w.create(binding)
	w.Cleanup(func() {
		_ = cluster.Client.Delete(context.Background(), binding) // the cluster goes with the tests
	})
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}})
	w.operate(silent + "failover: {deleteCohorts: true}\n")
	group := map[string]string{
		v1alpha1.LabelGraphName: "g", v1alpha1.LabelComponent: "decode",
		"grove.io/podcliquescalinggroup": "g-0-decode", "grove.io/podcliquescalinggroup-replica-index": "0",
	}
	engine := func(number string) map[string]string {
		labels := maps.Clone(group)
		labels[v1alpha1.LabelEngineGroup], labels["grove.io/podclique-pod-index"] = "true", number
		return labels
	}
	for name, labels := range map[string]map[string]string{
		"leader-0": engine("0"), "worker-0": engine("0"), "leader-1": engine("1"), "worker-1": engine("1"), "server": group,
	} {
		w.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "grove.io/v1alpha1", Kind: "PodClique", Name: "of-" + name, UID: types.UID(name), Controller: new(true),
			}}},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/at-rest:1"}}},
		})
	}
	ended := get(w, &corev1.Pod{}, "worker-0")
	ended.Status.Phase = corev1.PodFailed
	if err := cluster.Client.Status().Update(w.ctx, ended); err != nil {
		t.Fatal(err)
	}
	w.gone(&corev1.Pod{}, "worker-0") // last
	if err := cluster.Client.Get(w.ctx, w.key("leader-0"), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("leader-0 is still there: %v", err)
	}
	for _, name := range []string{"leader-1", "worker-1", "server"} {
		get(w, &corev1.Pod{}, name)
	}
}
