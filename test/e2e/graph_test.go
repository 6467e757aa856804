package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

const quickstart = "../../examples/quickstart.yaml"

func TestAGraphBecomesReadyAnswersAndIsDeletedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	dgd := w.ready("quickstart")
	for _, service := range []string{"Frontend", "decode", "prefill"} {
		status := dgd.Status.Services[service]
		if status.ComponentKind != v1alpha1.ComponentKindDeployment || status.ReadyReplicas == nil || *status.ReadyReplicas != 1 {
			t.Errorf("status of %s: %+v", service, status)
		}
	}
	w.answers(w.frontendURL(dgd))

	if err := w.cluster.Client.Delete(w.ctx, dgd); err != nil {
		t.Fatal(err)
	}
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "quickstart")
	w.gone(&v1alpha1.DynamoComponentDeployment{}, "quickstart-decode")
	w.gone(&appsv1.Deployment{}, "quickstart-decode")
	w.gone(&corev1.Service{}, "quickstart-decode")
	w.gone(&corev1.ServiceAccount{}, "quickstart-k8s-service-discovery")
	w.gone(&rbacv1.RoleBinding{}, "quickstart-k8s-service-discovery-binding")
	w.eventually("the pods to be gone", func(ctx context.Context) error {
		if pods := w.pods(ctx); len(pods) > 0 {
			return fmt.Errorf("%d are left", len(pods))
		}
		return nil
	})
}

func TestAFinalizerOfAnEarlierOperatorHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	w.ready("quickstart")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["nvidia.com/finalizer"]}}`))
	dgd := w.graph("quickstart")
	dcd := &v1alpha1.DynamoComponentDeployment{}
	dcd.Namespace, dcd.Name = w.namespace, "quickstart-decode"
	for _, object := range []client.Object{dgd, dcd} {
		if err := w.cluster.Client.Patch(w.ctx, object, patch); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.cluster.Client.Delete(w.ctx, dgd); err != nil {
		t.Fatal(err)
	}
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "quickstart")
	w.gone(&v1alpha1.DynamoComponentDeployment{}, "quickstart-decode")
}

func TestAChangedServiceIsRolledOutAndARemovedOneIsPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	w.ready("quickstart")
	dgd := w.graph("quickstart")
	before := dgd.DeepCopy()
	dgd.Spec.Services["decode"].Replicas = new(int32(2))
	delete(dgd.Spec.Services, "prefill")
	if err := w.cluster.Client.Patch(w.ctx, dgd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	dgd = w.ready("quickstart")
	if got := dgd.Status.Services["decode"].Replicas; got != 2 {
		t.Errorf("decode has %d replicas, want 2", got)
	}
	w.gone(&v1alpha1.DynamoComponentDeployment{}, "quickstart-prefill")
	w.gone(&appsv1.Deployment{}, "quickstart-prefill")
	w.answers(w.frontendURL(dgd))
}

func TestWhatSomebodyChangesByHandIsPutBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.apply(quickstart)
	w.ready("quickstart")

	service := &corev1.Service{}
	service.Namespace, service.Name = w.namespace, "quickstart-decode"
	if err := w.cluster.Client.Delete(w.ctx, service); err != nil {
		t.Fatal(err)
	}
	w.eventually("the deleted Service to come back", func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key("quickstart-decode"), &corev1.Service{})
	})

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3},"metadata":{"labels":{"mine":"kept"}}}`))
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = w.namespace, "quickstart-decode"
	if err := w.cluster.Client.Patch(w.ctx, deployment, patch); err != nil {
		t.Fatal(err)
	}
	w.eventually("the edited Deployment to be corrected", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("quickstart-decode"), deployment); err != nil {
			return err
		}
		if *deployment.Spec.Replicas != 1 {
			return fmt.Errorf("%d replicas", *deployment.Spec.Replicas)
		}
		return nil
	})
	if deployment.Labels["mine"] != "kept" {
		t.Error("a label that somebody else added is gone")
	}
}

func TestAnObjectOfSomebodyElseIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	foreign := &corev1.Service{}
	foreign.Namespace, foreign.Name = w.namespace, "quickstart-decode"
	foreign.Spec.Ports = []corev1.ServicePort{{Port: 1}}
	w.create(foreign)
	w.apply(quickstart)
	w.eventually("the graph to say that the name is taken", func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key("quickstart-decode"), dcd); err != nil {
			return err
		}
		for _, c := range dcd.Status.Conditions {
			if c.Reason == v1alpha1.ReasonNameConflict {
				return nil
			}
		}
		return errors.New("no condition says so")
	})
	if err := w.cluster.Client.Get(w.ctx, w.key("quickstart-decode"), foreign); err != nil {
		t.Fatal(err)
	}
	if len(foreign.Spec.Selector) > 0 || foreign.Spec.Ports[0].Port != 1 {
		t.Errorf("the foreign Service was changed: %+v", foreign.Spec)
	}
	if err := w.cluster.Client.Delete(w.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	w.ready("quickstart")
}
