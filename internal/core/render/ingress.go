package render

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/externalapi"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// ingress renders how a component is reached from outside: by an Ingress, an
// Istio VirtualService, both, or not at all.
func ingress(c graph.Component, have snapshot.Capabilities) ([]graph.Object, error) {
	if c.Ingress == nil {
		return nil, nil
	}
	var objects []graph.Object
	if c.Ingress.Class != "" {
		objects = append(objects, ingressOf(c, *c.Ingress))
	}
	if c.Ingress.Gateway == "" {
		return objects, nil
	}
	if !have.All(snapshot.APIIstio) {
		return objects, fault.New(fault.Unsupported, v1alpha1.ReasonOrchestratorUnavailable,
			"service %s is to be reached through Istio gateway %s; install Istio", c.Name, c.Ingress.Gateway)
	}
	return append(objects, virtualServiceOf(c, *c.Ingress)), nil
}

func ingressMeta(c graph.Component, i graph.Ingress) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: c.ObjectName, Namespace: c.Namespace, Labels: i.Labels, Annotations: i.Annotations}
}

func ingressOf(c graph.Component, i graph.Ingress) *networkingv1.Ingress {
	spec := networkingv1.IngressSpec{
		IngressClassName: &i.Class,
		Rules: []networkingv1.IngressRule{{Host: i.Host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix),
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
					Name: c.ServiceName, Port: networkingv1.ServiceBackendPort{Number: servicePort(c.Role).Port},
				}},
			}}},
		}}},
	}
	if i.TLSSecret != "" {
		spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{i.Host}, SecretName: i.TLSSecret}}
	}
	return &networkingv1.Ingress{ObjectMeta: ingressMeta(c, i), Spec: spec}
}

// VirtualServiceKind is Istio's kind for routes of a gateway.
var VirtualServiceKind = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1beta1", Kind: "VirtualService"}

type (
	VirtualService     = externalapi.Object[VirtualServiceSpec]
	VirtualServiceList = externalapi.List[VirtualServiceSpec]
)

// VirtualServiceSpec is the part of a route that we write. The gateway decides
// about HTTPS: a route holds for each of its servers.
type VirtualServiceSpec struct {
	Hosts    []string    `json:"hosts,omitempty"`
	Gateways []string    `json:"gateways,omitempty"`
	HTTP     []HTTPRoute `json:"http,omitempty"`
}

type (
	// HTTPRoute sends requests that match to a destination.
	HTTPRoute struct {
		Match []HTTPMatch        `json:"match,omitempty"`
		Route []RouteDestination `json:"route,omitempty"`
	}
	// HTTPMatch is by path.
	HTTPMatch struct {
		URI StringMatch `json:"uri,omitzero"`
	}
	// StringMatch is by prefix.
	StringMatch struct {
		Prefix string `json:"prefix,omitempty"`
	}
	// RouteDestination is a Service.
	RouteDestination struct {
		Destination Destination `json:"destination,omitzero"`
	}
	// Destination is a Service's name and port.
	Destination struct {
		Host string  `json:"host,omitempty"`
		Port PortRef `json:"port,omitzero"`
	}
	// PortRef is a port by number.
	PortRef struct {
		Number int32 `json:"number,omitempty"`
	}
)

// DeepCopy implements foreign.Spec.
func (s VirtualServiceSpec) DeepCopy() VirtualServiceSpec {
	out := VirtualServiceSpec{Hosts: slices.Clone(s.Hosts), Gateways: slices.Clone(s.Gateways), HTTP: slices.Clone(s.HTTP)}
	for i := range out.HTTP {
		out.HTTP[i].Match = slices.Clone(out.HTTP[i].Match)
		out.HTTP[i].Route = slices.Clone(out.HTTP[i].Route)
	}
	return out
}

func virtualServiceOf(c graph.Component, i graph.Ingress) *VirtualService {
	return &VirtualService{ObjectMeta: ingressMeta(c, i), Spec: VirtualServiceSpec{
		Hosts:    []string{i.Host},
		Gateways: []string{i.Gateway},
		HTTP: []HTTPRoute{{
			Match: []HTTPMatch{{URI: StringMatch{Prefix: "/"}}},
			Route: []RouteDestination{{Destination: Destination{Host: c.ServiceName, Port: PortRef{Number: servicePort(c.Role).Port}}}},
		}},
	}}
}
