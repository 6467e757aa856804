package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
)

// TestAComponentOfEveryTypeRunsAlone: what its pods mount, name and run under is
// made for it, as a graph would.
func TestAComponentOfEveryTypeRunsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worker := *w.restful("").Spec.Services["decode"]
	for name, change := range map[string]func(dcd *v1alpha1.DynamoComponentDeployment){
		"none":     func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.ComponentType = "" },
		"own":      func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.ComponentType = "processor" },
		"frontend": func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.ComponentType = v1alpha1.ComponentTypeFrontend },
		"worker":   func(*v1alpha1.DynamoComponentDeployment) {},
		"prefill":  func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.ComponentType = v1alpha1.ComponentTypePrefill },
		"planner":  func(dcd *v1alpha1.DynamoComponentDeployment) { dcd.Spec.ComponentType = v1alpha1.ComponentTypePlanner },
		"epp": func(dcd *v1alpha1.DynamoComponentDeployment) {
			dcd.Spec.ComponentType = v1alpha1.ComponentTypeEPP
			dcd.Spec.EPPConfig = &v1alpha1.EPPConfig{Config: &runtime.RawExtension{Raw: []byte(`{"plugins":[{"type":"t"}],"schedulingProfiles":[]}`)}}
		},
		"mpi": func(dcd *v1alpha1.DynamoComponentDeployment) {
			dcd.Spec.BackendFramework = v1alpha1.BackendFrameworkTRTLLM
			dcd.Spec.Multinode = &v1alpha1.Multinode{NodeCount: 2}
			dcd.Spec.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
		},
	} {
		dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		worker.DeepCopyInto(&dcd.Spec.SharedSpec)
		change(dcd)
		w.create(dcd)
	}
	for _, name := range []string{"none", "own", "frontend", "worker", "prefill", "planner", "epp", "mpi"} {
		w.available(name)
	}
	config := &corev1.ConfigMap{}
	w.belongsTo("epp", config, "epp-epp-config")
	w.belongsTo("epp", &render.InferencePool{}, "epp-pool")
	if len(config.Data) != 1 {
		t.Errorf("the picker's configuration is %v", config.Data)
	}
	for _, name := range []string{"planner-serviceaccount", "epp-serviceaccount"} {
		w.comesBack(child{"", "v1", "ServiceAccount", name})
		w.comesBack(child{"rbac.authorization.k8s.io", "v1", "RoleBinding", name + "-binding"})
	}
	w.comesBack(child{"", "v1", "ConfigMap", "epp-epp-config"})
	w.comesBack(child{"inference.networking.k8s.io", "v1", "InferencePool", "epp-pool"})

	for _, name := range []string{"none", "own", "frontend", "worker", "prefill", "planner", "epp", "mpi"} {
		if err := w.cluster.Client.Delete(w.ctx, &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.gone(&corev1.ConfigMap{}, "epp-epp-config")
	w.gone(&render.InferencePool{}, "epp-pool")
	w.gone(&corev1.ServiceAccount{}, "planner-serviceaccount")
	w.gone(&rbacv1.RoleBinding{}, "epp-serviceaccount-binding")
}

// available waits for a component to run in full.
func (w world) available(name string) {
	w.Helper()
	w.eventually("component "+name+" to be available", func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := w.cluster.Client.Get(ctx, w.key(name), dcd); err != nil {
			return err
		}
		c := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
		if c == nil || c.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
}

// belongsTo reads an object that has to go with a component.
func (w world) belongsTo(component string, object interface {
	metav1.Object
	runtime.Object
}, name string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%T %s", object, name), func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key(name), object); err != nil {
			return err
		}
		if owner := metav1.GetControllerOf(object); owner == nil || owner.Name != component || owner.Kind != v1alpha1.KindDynamoComponentDeployment {
			return errors.New("it belongs to somebody else")
		}
		return nil
	})
}
