package account

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

var roles = render.Roles{Planner: "planner", Picker: "picker"}

// shared are the accounts as graphs make them.
func shared(t *testing.T) []client.Object {
	t.Helper()
	g := &graph.Graph{Namespace: "lab", Name: "g", Components: []graph.Component{{Name: "epp", Role: graph.RoleEPP, Picker: &graph.Picker{ConfigMap: "c"}}}}
	wanted, err := render.Graph(&v1alpha1.DynamoGraphDeployment{}, g, workload.ProviderGrove, render.Platform{Roles: roles, Capabilities: snapshot.Capabilities{}})
	var objects []client.Object
	for _, w := range wanted {
		if w.Ownership == graph.OwnershipNone {
			objects = append(objects, w.Object.(client.Object))
		}
	}
	if len(objects) != 4 {
		t.Fatalf("%d objects: %v", len(objects), err)
	}
	return objects
}

func TestAccountsGoWithTheLastWhoNeedsThem(t *testing.T) {
	service := func(kind v1alpha1.ComponentType) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "g"}}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {ComponentType: kind}, "none": nil}
		return dgd
	}
	alone := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "alone"}}
	alone.Spec.ComponentType = v1alpha1.ComponentTypeEPP
	elsewhere := service(v1alpha1.ComponentTypeEPP)
	elsewhere.Namespace = "other"
	theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "planner-serviceaccount", Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}}}
	for rule, c := range map[string]struct {
		live, cached []client.Object
		replace      client.Object
		left         []string
	}{
		"nobody needs them":                              {},
		"graphs of other namespaces do not count":        {live: []client.Object{elsewhere}, cached: []client.Object{elsewhere}},
		"a graph needs the planner's, planner or not":    {live: []client.Object{service("")}, cached: []client.Object{service("")}, left: []string{"planner-serviceaccount", "planner-serviceaccount-binding"}},
		"one with a picker needs both":                   {live: []client.Object{service(v1alpha1.ComponentTypeEPP)}, cached: []client.Object{service(v1alpha1.ComponentTypeEPP)}, left: []string{"epp-serviceaccount", "epp-serviceaccount-binding", "planner-serviceaccount", "planner-serviceaccount-binding"}},
		"so does a component that stands alone":          {live: []client.Object{alone}, cached: []client.Object{alone}, left: []string{"epp-serviceaccount", "epp-serviceaccount-binding", "planner-serviceaccount", "planner-serviceaccount-binding"}},
		"a graph that the informers do not know of yet":  {live: []client.Object{service("")}, left: []string{"planner-serviceaccount", "planner-serviceaccount-binding"}},
		"a graph that the informers still know is asked": {cached: []client.Object{service("")}, left: []string{"planner-serviceaccount", "planner-serviceaccount-binding"}},
		"what somebody else brought stays":               {replace: theirs, left: []string{"planner-serviceaccount"}},
	} {
		t.Run(rule, func(t *testing.T) {
			objects := shared(t)
			if c.replace != nil {
				objects = slices.DeleteFunc(objects, func(o client.Object) bool {
					_, same := o.(*corev1.ServiceAccount)
					return same && o.GetName() == c.replace.GetName()
				})
				objects = append(objects, c.replace.DeepCopyObject().(client.Object))
			}
			live := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(objects, c.live...)...).Build()
			cached := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(shared(t), c.cached...)...).Build()
			applier, err := apply.New(live, live)
			if err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Cached: cached, Direct: live, Applier: applier, Roles: roles, Covers: func(ns string) bool { return ns == "lab" }}
			for _, ns := range []string{"lab", "not-ours"} {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ns}}); err != nil {
					t.Fatal(err)
				}
			}
			var left []string
			var accounts corev1.ServiceAccountList
			var bindings rbacv1.RoleBindingList
			for _, list := range []client.ObjectList{&accounts, &bindings} {
				if err := live.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			}
			for _, a := range accounts.Items {
				left = append(left, a.Name)
			}
			for _, b := range bindings.Items {
				left = append(left, b.Name)
			}
			slices.Sort(left)
			if diff := cmp.Diff(c.left, left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
