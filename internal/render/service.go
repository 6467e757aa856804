package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/render/pod"
)

// Service renders the Service in front of a component. It selects the pods of
// this component alone: type and Dynamo namespace are shared by others.
func Service(c graph.Component) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.ObjectName, Namespace: c.Namespace, Labels: serviceLabels(c), Annotations: c.Annotations,
		},
		Spec: corev1.ServiceSpec{
			Selector: Selector(c),
			Ports:    []corev1.ServicePort{servicePort(c.Role)},
		},
	}
}

// Selector are the labels that a component's pods, and no others, carry.
func Selector(c graph.Component) map[string]string {
	selector := map[string]string{
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.DynamoNamespace,
	}
	if c.Type != "" {
		selector[v1alpha1.LabelComponentType] = c.Type
	}
	if c.Multinode() {
		selector[v1alpha1.LabelGroupRole] = v1alpha1.RoleLeader
	}
	return selector
}

// serviceLabels mark the Services by which the runtime finds workers: their
// EndpointSlices inherit these labels. Nobody looks for a frontend this way.
func serviceLabels(c graph.Component) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, c.Labels)
	if c.Discovery == graph.DiscoveryKubernetes {
		labels[v1alpha1.LabelDiscoveryBackend] = string(graph.DiscoveryKubernetes)
		if c.Role != graph.RoleFrontend {
			labels[v1alpha1.LabelDiscoveryEnabled] = "true"
		}
	}
	return labels
}

func servicePort(role graph.Role) corev1.ServicePort {
	switch role {
	case graph.RoleFrontend:
		return port(pod.PortNameHTTP, pod.PortHTTP, intstr.FromString(pod.PortNameHTTP))
	case graph.RoleEPP:
		p := port(pod.PortNameGRPC, pod.PortPicker, intstr.FromInt32(pod.PortPicker))
		p.AppProtocol = new("http2") // a gateway speaks gRPC only to a port that says so
		return p
	default:
		return port(pod.PortNameSystem, pod.PortSystem, intstr.FromString(pod.PortNameSystem))
	}
}

func port(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
}
