package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestWhatSomebodyLetsNameAGraphStays: it is to be collected with the graph, and not before.
func TestWhatSomebodyLetsNameAGraphStays(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode")
	w.create(dgd)
	exists(w, &appsv1.Deployment{}, "g-decode")
	own := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "own", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindDynamoGraphDeployment, Name: "g", UID: dgd.UID,
	}}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	w.create(own)
	w.merge(dgd, `{"spec":{"services":{"decode":null,"prefill":{"componentType":"worker","extraPodSpec":{"mainContainer":{"image":"example.com/at-rest:1","command":["rest"]}}}}}}`)
	exists(w, &v1alpha1.DynamoComponentDeployment{}, "g-prefill")
	w.eventually("the service that was taken away to go", func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := cluster.Client.Get(ctx, w.key("g-decode"), dcd); err != nil || dcd.DeletionTimestamp != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it is still there")
	})
	w.quiet()
	if now := get(w, &corev1.Service{}, "own"); now.UID != own.UID || now.DeletionTimestamp != nil {
		t.Errorf("a Service of somebody's is deleted at %v", now.DeletionTimestamp)
	}
}

// TestInitContainersHaveTheUsersOrder, also if nothing else of them changes.
func TestInitContainersHaveTheUsersOrder(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode")
	step := func(name string) corev1.Container {
		return corev1.Container{Name: name, Image: "example.com/at-rest:1"}
	}
	dgd.Spec.Services["decode"].ExtraPodSpec.PodSpec = &corev1.PodSpec{InitContainers: []corev1.Container{step("fetch"), step("unpack")}}
	w.create(dgd)
	runs := func(want string) {
		t.Helper()
		w.eventually("init containers "+want, func(ctx context.Context) error {
			d := &appsv1.Deployment{}
			if err := cluster.Client.Get(ctx, w.key("g-decode"), d); err != nil {
				return err
			}
			var names []string
			for _, c := range d.Spec.Template.Spec.InitContainers {
				names = append(names, c.Name)
			}
			if got := strings.Join(names, ", "); got != want {
				return fmt.Errorf("they are %s", got)
			}
			return nil
		})
	}
	runs("fetch, unpack")
	w.merge(dgd, `{"spec":{"services":{"decode":{"extraPodSpec":{"initContainers":[{"name":"unpack","image":"example.com/at-rest:1"},{"name":"fetch","image":"example.com/at-rest:1"}]}}}}}`)
	runs("unpack, fetch")
}

// TestAPolicyThatFreezesADeploymentDoesNotEndIt: the change waits for the policy to go.
func TestAPolicyThatFreezesADeploymentDoesNotEndIt(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dcd := w.component("c")
	w.create(dcd)
	frozen := exists(w, &appsv1.Deployment{}, "c")
	of := metav1.ObjectMeta{Name: w.namespace + "-freeze"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: of, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		}}}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "object.spec.template == oldObject.spec.template", Message: "what runs cannot be changed on Fridays",
		}},
	}}
	w.create(policy)
	t.Cleanup(func() { _ = client.IgnoreNotFound(cluster.Client.Delete(context.Background(), policy)) })
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: of, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: of.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}}},
	}}
	w.create(binding)
	t.Cleanup(func() { _ = client.IgnoreNotFound(cluster.Client.Delete(context.Background(), binding)) })
	const edit = `{"spec":{"template":{"metadata":{"annotations":{"somebody":"else"}}}}}`
	w.eventually("the policy to hold", func(ctx context.Context) error {
		err := cluster.Client.Patch(ctx, frozen.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(edit)), client.DryRunAll)
		if err == nil {
			return errors.New("a change passes")
		}
		if !strings.Contains(err.Error(), "on Fridays") {
			return err
		}
		return nil
	})
	w.merge(dcd, `{"spec":{"extraPodSpec":{"mainContainer":{"image":"example.com/at-rest:2"}}}}`)
	said := w.available("c", v1alpha1.ReasonReconcileFailed)
	if c := meta.FindStatusCondition(said.Status.Conditions, v1alpha1.ConditionAvailable); !strings.Contains(c.Message, "on Fridays") {
		t.Errorf("it says %q", c.Message)
	}
	if now := get(w, &appsv1.Deployment{}, "c"); now.UID != frozen.UID || now.DeletionTimestamp != nil {
		t.Errorf("the Deployment is another, or deleted at %v", now.DeletionTimestamp)
	}
	w.delete(binding)
	w.eventually("the change to pass", func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := cluster.Client.Get(ctx, w.key("c"), d); err != nil {
			return err
		}
		if image := d.Spec.Template.Spec.Containers[0].Image; image != "example.com/at-rest:2" || d.UID != frozen.UID {
			return fmt.Errorf("it runs %s", image)
		}
		return nil
	})
}
