package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// child is an object that the operator makes for a graph.
type child struct{ group, version, kind, name string }

func (c child) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: c.kind})
	return object
}

// TestChildrenOfEveryKindComeAndGo has a graph ask for all that a graph can have
// beside its workloads, has somebody delete it, and has the graph want it no
// more. Its pods rest: what is about them is tested elsewhere.
func TestChildrenOfEveryKindComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("g")
	delete(dgd.Spec.Services, "prefill")
	dgd.Spec.Services["Frontend"].Ingress = &v1alpha1.IngressSpec{
		Enabled: true, Host: "g", IngressControllerClassName: new("nginx"), UseVirtualService: true, VirtualServiceGateway: new("mesh/gateway"),
	}
	dgd.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	picker := w.restful("").Spec.Services["decode"]
	picker.ComponentType = v1alpha1.ComponentTypeEPP
	picker.EPPConfig = &v1alpha1.EPPConfig{Config: &runtime.RawExtension{Raw: []byte(`{"plugins":[{"type":"t"}],"schedulingProfiles":[]}`)}}
	dgd.Spec.Services["Picker"] = picker
	dgd.Spec.Services["wide"] = w.spanningRest("", 2).Spec.Services["decode"]
	w.create(dgd)
	children := []child{
		{"networking.k8s.io", "v1", "Ingress", "g-frontend"},
		{"networking.istio.io", "v1beta1", "VirtualService", "g-frontend"},
		{"inference.networking.k8s.io", "v1", "InferencePool", "g-pool"},
		{"", "v1", "ConfigMap", "g-epp-config"},
		{"", "v1", "ServiceAccount", "g-k8s-service-discovery"},
		{"rbac.authorization.k8s.io", "v1", "Role", "g-k8s-service-discovery-role"},
		{"rbac.authorization.k8s.io", "v1", "RoleBinding", "g-k8s-service-discovery-binding"},
		{v1alpha1.GroupName, "v1alpha1", v1alpha1.KindDynamoGraphDeploymentScalingAdapter, "g-decode"},
		{v1alpha1.GroupName, "v1alpha1", v1alpha1.KindDynamoComponentDeployment, "g-decode"},
		{"apps", "v1", "Deployment", "g-frontend"},
		{"", "v1", "Service", "g-decode"},
		{"leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "g-wide-0"},
		{"scheduling.volcano.sh", "v1beta1", "PodGroup", "g-wide-0"},
	}
	for _, c := range children {
		w.comesBack(c)
	}
	w.patchGraph("g", `{"metadata":{"annotations":{"nvidia.com/dynamo-discovery-backend":"etcd"}},"spec":{"services":{
		"Picker":null,"Frontend":{"ingress":null},"decode":{"scalingAdapter":{"enabled":false}}}}}`)
	for _, c := range children[:8] {
		w.gone(c.object(), c.name)
	}
}

// comesBack deletes an object as somebody would who does not know whose it is.
func (w world) comesBack(c child) {
	w.Helper()
	object := c.object()
	w.eventually(fmt.Sprintf("%s %s", c.kind, c.name), func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key(c.name), object)
	})
	first := object.GetUID()
	if err := w.cluster.Client.Delete(w.ctx, object); err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	w.eventually(fmt.Sprintf("another %s %s", c.kind, c.name), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(c.name), object); err != nil {
			return err
		}
		if object.GetUID() == first {
			return errors.New("it is the one that was deleted")
		}
		return nil
	})
}

// TestADeploymentThatCannotTakeAChangeIsMadeAgain takes one over whose selector
// is another, as an earlier operator or a person could have left it.
func TestADeploymentThatCannotTakeAChangeIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("g")
	delete(dgd.Spec.Services, "prefill")
	w.create(dgd)
	w.ready("g")
	d := &appsv1.Deployment{}
	if err := w.cluster.Client.Get(w.ctx, w.key("g-decode"), d); err != nil {
		t.Fatal(err)
	}
	// While it is on its way out nobody else makes it, so the other one comes
	// first in the moment that it is gone - or the operator's, and then again.
	var other types.UID
	w.eventually("one with another selector", func(ctx context.Context) error {
		if err := client.IgnoreNotFound(w.cluster.Client.Delete(ctx, d)); err != nil {
			return err
		}
		strange := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name, OwnerReferences: d.OwnerReferences}}
		d.Spec.DeepCopyInto(&strange.Spec)
		strange.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"strange": "yes"}}
		strange.Spec.Template.Labels = map[string]string{"strange": "yes"}
		if err := w.cluster.Client.Create(ctx, strange); err != nil {
			return err
		}
		other = strange.UID
		return nil
	})
	w.eventually("it to be made again", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("g-decode"), d); err != nil {
			return err
		}
		if d.UID == other || d.Spec.Selector.MatchLabels["strange"] != "" {
			return errors.New("it is the strange one")
		}
		return nil
	})
	w.ready("g")
}

// TestARequestThatIsTriedAgainLeavesNothingOfTheFirstAttempt: neither the Job,
// nor a graph that its profiler did not get to remove, nor a finalizer of an
// earlier operator, which we need none of.
func TestARequestThatIsTriedAgainLeavesNothingOfTheFirstAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const config = `{` + sla + `, sweep: {useAiConfigurator: true, aicSystem: h200_sxm}}`
	w.ask(goal{"again", "model: nobody/knows-1B\nbackend: vllm", config})
	r := w.reach("again", v1alpha1.RequestStateFailed)
	job := &batchv1.Job{}
	if err := w.cluster.Client.Get(w.ctx, w.key("profile-again"), job); err != nil {
		t.Fatal(err)
	}
	first := job.UID
	tried := w.restful("tried")
	tried.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r, v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindDynamoGraphDeploymentRequest))}
	w.create(tried)
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "tried")
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%q]},"spec":{"model":"nobody/knows-2B"}}`, v1alpha1.Finalizer)
	if err := w.cluster.Client.Patch(w.ctx, r, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	w.eventually("another attempt, and nothing of the first", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("profile-again"), job); err != nil {
			return err
		}
		if job.UID == first {
			return errors.New("it is the first Job")
		}
		if held := w.request("again").Finalizers; len(held) > 0 {
			return fmt.Errorf("finalizers %v", held)
		}
		return nil
	})
	w.reach("again", v1alpha1.RequestStateFailed)
}
