package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// TestAChildThatCannotTakeAChangeIsMadeAgain has children as another version of
// the operator could have made them, and plays the garbage collector.
func TestAChildThatCannotTakeAChangeIsMadeAgain(t *testing.T) {
	w := newWorld(t)
	dcd := w.component("c")
	w.create(dcd)
	old := w.oldDeployment(dcd)
	w.create(old)
	bindings := []*rbacv1.RoleBinding{
		w.oldBinding(graph.DiscoveryBinding("c"), dcd),
		w.oldBinding(pod.PlannerAccount+"-binding", nil), // of the namespace, and so of no owner
	}
	for _, b := range bindings {
		w.create(b)
	}
	w.create(w.graph("g", "decode"))
	mark := w.mark()
	w.operate(silent + "roles: {planner: dynamo-operator-planner}\n")

	w.eventually("the old Deployment to be on its way out", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key("c"), d); err != nil || d.DeletionTimestamp == nil {
			return errors.Join(err, errors.New("not deleted yet"))
		}
		return nil
	})
	w.eventually("the component to say what it waits for", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("c"), dcd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable); c == nil || c.Reason != v1alpha1.ReasonChildTerminating {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	w.merge(old, `{"metadata":{"finalizers":null}}`) // its pods are gone
	w.eventually("another Deployment", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key("c"), d); err != nil {
			return err
		}
		if d.UID == old.UID || d.Spec.Selector.MatchLabels[v1alpha1.LabelSelector] != "c" {
			return fmt.Errorf("selector %v", d.Spec.Selector)
		}
		return nil
	})
	for _, b := range bindings {
		w.eventually("another binding "+b.Name, func(ctx context.Context) error {
			now := &rbacv1.RoleBinding{}
			if err := cluster.Client.Get(ctx, w.key(b.Name), now); err != nil {
				return err
			}
			if now.UID == b.UID || now.RoleRef.Name == b.RoleRef.Name {
				return fmt.Errorf("it grants %s", now.RoleRef.Name)
			}
			return nil
		})
	}
	for _, one := range w.byOperator(mark) {
		if one.Status.Code >= 400 && one.Status.Code != 404 && one.Status.Code != 409 {
			t.Errorf("%s %s: %d", one.Verb, one.Ref.Name, one.Status.Code)
		}
	}
}

// oldDeployment is a component's with a selector that ours does not have.
func (w world) oldDeployment(dcd *v1alpha1.DynamoComponentDeployment) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c", OwnerReferences: controlledBy(dcd)}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/old:1"}}
	return d
}

// oldBinding is one of ours that grants another role.
func (w world) oldBinding(name string, owner *v1alpha1.DynamoComponentDeployment) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	b.Labels = map[string]string{"app.kubernetes.io/managed-by": "dynamo-operator"}
	b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	if owner != nil {
		b.OwnerReferences = controlledBy(owner)
	}
	return b
}

func controlledBy(dcd *v1alpha1.DynamoComponentDeployment) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(dcd, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoComponentDeployment))}
}

// TestWhatAnEarlierGraphOfTheSameNameLeftIsWaitedFor has no garbage collector
// until the test plays it.
func TestWhatAnEarlierGraphOfTheSameNameLeftIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	earlier := w.graph("g", "decode")
	w.create(earlier)
	left := exists(w, &v1alpha1.DynamoComponentDeployment{}, "g-decode")
	w.delete(earlier, client.PropagationPolicy(metav1.DeletePropagationBackground))
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "g")

	w.create(w.graph("g", "decode"))
	why := w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonChildTerminating)
	if !strings.Contains(why.Message, "garbage collector") || strings.Contains(why.Message, "rename") {
		t.Errorf("condition %v", why)
	}
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageWaiting)
	if state := get(w, &v1alpha1.DynamoGraphDeployment{}, "g").Status.State; state != v1alpha1.GraphStatePending {
		t.Errorf("state %s", state)
	}
	w.collect()
	w.eventually("a component of the later graph", func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := cluster.Client.Get(ctx, w.key("g-decode"), dcd); err != nil {
			return err
		}
		if dcd.UID == left.UID {
			return errors.New("still that of the earlier one")
		}
		return nil
	})
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonServicesNotReady)
}
