package server

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/localenv"
)

// TestAPodIsGivenTheLabelsOfItsNode: that which it names and the installation shows, once
// it has a node, with the role that is shipped for it.
func TestAPodIsGivenTheLabelsOfItsNode(t *testing.T) {
	w := newWorld(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: map[string]string{"example.com/rack": "r1", "example.com/owner": "somebody"}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "topology-of-" + w.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "dynamo-operator-topology"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: localenv.OperatorKey.Namespace, Name: localenv.OperatorKey.Name}},
	}
	w.create(binding)
	w.create(node)
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}})
	w.Cleanup(func() {
		_ = cluster.Client.Delete(context.Background(), binding) // the cluster goes with the tests
		_ = cluster.Client.Delete(context.Background(), node)
	})
	w.operate(silent + "topology: {nodeLabels: [example.com/rack]}\n")
	for name, key := range map[string]string{"asks": "example.com/rack", "pries": "example.com/owner"} {
		w.create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: name, Labels: map[string]string{v1alpha1.LabelGraphName: "g"},
				Annotations: map[string]string{v1alpha1.AnnotationTopologyLabel: key},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/at-rest:1"}}},
		})
	}
	bind := func(name string) {
		pod := get(w, &corev1.Pod{}, name)
		if err := cluster.Client.SubResource("binding").Create(w.ctx, pod, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node.Name},
		}); err != nil {
			t.Fatal(err)
		}
	}
	bind("pries")
	bind("asks")
	w.eventually("the label of the node on the pod", func(ctx context.Context) error {
		pod := &corev1.Pod{}
		if err := cluster.Client.Get(ctx, w.key("asks"), pod); err != nil {
			return err
		}
		if got := pod.Labels["example.com/rack"]; got != "r1" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	if got, has := get(w, &corev1.Pod{}, "pries").Labels["example.com/owner"]; has {
		t.Errorf("a pod has the label %q of its node, which the installation does not show", got)
	}
}
