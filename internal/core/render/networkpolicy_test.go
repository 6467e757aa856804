package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func TestNetworkPolicies(t *testing.T) {
	dgd := &v1alpha1.DynamoGraphDeployment{}
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"front": {}, "routed": {}, "work": {}}
	g := &graph.Graph{Name: "g", Namespace: "lab", Components: []graph.Component{
		{Graph: "g", Namespace: "lab", Name: "front", Role: graph.RoleFrontend, Type: "frontend", DynamoNamespace: "lab-g", ObjectName: "g-front"},
		{Graph: "g", Namespace: "lab", Name: "routed", Role: graph.RoleWorker, Type: "worker", DynamoNamespace: "lab-g", ObjectName: "g-routed", Ingress: &graph.Ingress{}},
		{Graph: "g", Namespace: "lab", Name: "work", Role: graph.RoleWorker, Type: "worker", DynamoNamespace: "lab-g", ObjectName: "g-work"},
	}}
	policies := func(p render.Platform) map[string]networkingv1.NetworkPolicySpec {
		found := map[string]networkingv1.NetworkPolicySpec{}
		wanted, err := render.Graph(dgd, g, workload.ProviderComponent, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range wanted {
			if policy, ok := w.Object.(*networkingv1.NetworkPolicy); ok {
				found[policy.Name] = policy.Spec
			}
		}
		return found
	}
	if got := policies(render.Platform{}); len(got) != 0 {
		t.Errorf("not asked for: %v", got)
	}
	got := policies(render.Platform{NetworkPolicy: &render.NetworkPolicy{Namespaces: []string{"ops"}}})
	if len(got) != 3 {
		t.Fatalf("policies %v", got)
	}
	if from := got["g-inside"].Ingress[0].From; len(from) != 3 || from[2].NamespaceSelector.MatchExpressions[0].Values[0] != "ops" {
		t.Errorf("inside lets in %v", from)
	}
	doors := got["g-doors"]
	if values := doors.PodSelector.MatchExpressions[0].Values; len(values) != 1 || values[0] != "frontend" {
		t.Errorf("doors are %v", values)
	}
	if ports := doors.Ingress[0].Ports; len(ports) != 2 || ports[0].Port.IntValue() != 8000 || ports[1].Port.IntValue() != 8099 || len(doors.Ingress[0].From) != 0 {
		t.Errorf("doors let in %v", doors.Ingress)
	}
	// Frontends with and without an activator serve side by side while they are replaced.
	dgd.Annotations = map[string]string{v1alpha1.AnnotationScaleToZeroAfter: "15m"}
	sleepy := policies(render.Platform{NetworkPolicy: &render.NetworkPolicy{Namespaces: []string{"ops"}}, Activator: "registry.example/dynamo-activator:v1"})
	if diff := cmp.Diff(doors, sleepy["g-doors"]); diff != "" {
		t.Errorf("doors of a graph that scales to zero (-without +with):\n%s", diff)
	}
	routes := got["g-routes"]
	if by := routes.PodSelector.MatchExpressions[0]; by.Key != v1alpha1.LabelComponent || len(by.Values) != 1 || by.Values[0] != "routed" {
		t.Errorf("routes lead to %v", by)
	}
	if ports := routes.Ingress[0].Ports; len(ports) != 1 || ports[0].Port.IntValue() != 9090 || len(routes.Ingress[0].From) != 0 {
		t.Errorf("routes let in %v", routes.Ingress)
	}
}
