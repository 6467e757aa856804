package render

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// NetworkPolicy closes the pods of graphs to others.
type NetworkPolicy struct {
	// Namespaces are those whose pods may reach every pod: the operator's, and
	// that of whoever scrapes metrics.
	Namespaces []string
}

// networkPolicies close a graph's pods to all but each other, graphs of the same
// Dynamo namespace and those namespaces; its frontends and picker, and what is
// reached by a route, stay open where they serve. Where pods may connect to is not restricted: models come
// from anywhere.
func networkPolicies(g *graph.Graph, p *NetworkPolicy) []graph.Object {
	if p == nil {
		return nil
	}
	var dynamoNamespaces []string
	// A frontend has both doors whether an activator is before it or not: while those with
	// and those without replace each other, all of them serve.
	open := map[graph.Role][]int{graph.RoleFrontend: {pod.PortHTTP, pod.PortActivator}, graph.RoleEPP: {pod.PortPicker}}
	var doors []networkingv1.NetworkPolicyPort
	var types, routed []string
	for _, c := range g.Components {
		if !slices.Contains(dynamoNamespaces, c.DynamoNamespace) {
			dynamoNamespaces = append(dynamoNamespaces, c.DynamoNamespace)
		}
		ports, serves := open[c.Role]
		if !serves && c.Ingress != nil {
			routed = append(routed, c.Name)
		}
		if serves && !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
			for _, port := range ports {
				doors = append(doors, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt(port))})
			}
		}
	}
	slices.Sort(dynamoNamespaces)
	among := []networkingv1.NetworkPolicyPeer{
		{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelGraphName: g.Name}}},
		{PodSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: v1alpha1.LabelDynamoNamespace, Operator: metav1.LabelSelectorOpIn, Values: dynamoNamespaces},
		}}},
	}
	if len(p.Namespaces) > 0 {
		among = append(among, networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: p.Namespaces},
		}}})
	}
	all := []graph.Object{networkPolicy(g, graph.InsidePolicy(g.Name), "", nil, networkingv1.NetworkPolicyIngressRule{From: among})}
	if len(types) > 0 {
		all = append(all, networkPolicy(g, graph.DoorPolicy(g.Name), v1alpha1.LabelComponentType, types, networkingv1.NetworkPolicyIngressRule{Ports: doors}))
	}
	if len(routed) > 0 {
		system := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(pod.PortSystem))}
		all = append(all, networkPolicy(g, graph.RoutePolicy(g.Name), v1alpha1.LabelComponent, routed,
			networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{system}}))
	}
	return all
}

// networkPolicy lets something in to the pods of a graph, or to those of them that
// have one of some values of a label.
func networkPolicy(g *graph.Graph, name, label string, values []string, rule networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
	selector := metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelGraphName: g.Name}}
	if len(values) > 0 {
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: label, Operator: metav1.LabelSelectorOpIn, Values: values}}
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: name, Labels: map[string]string{v1alpha1.LabelGraphName: g.Name}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: selector,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{rule},
		},
	}
}
