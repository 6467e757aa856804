package render

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// Service renders the Service in front of a component. It selects the pods of
// this component alone: type and Dynamo namespace are shared by others.
func Service(c graph.Component) *corev1.Service {
	labels := c.ObjectLabels()
	maps.Copy(labels, discoveryLabels(c))
	rules := contract.Of(c.Contract).Objects
	if c.Role == graph.RoleFrontend && !rules.FrontendDiscovered {
		delete(labels, v1alpha1.LabelDiscoveryEnabled) // nobody looks for a frontend this way
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.ServiceName, Namespace: c.Namespace, Labels: labels, Annotations: c.ObjectAnnotations(),
		},
		Spec: corev1.ServiceSpec{
			Selector: Selector(c),
			Ports:    []corev1.ServicePort{spoken(targeted(c), c.Role, rules.PickerHTTP2)},
		},
	}
}

// graphService renders the same for a component whose pods belong to the graph.
func graphService(c graph.Component) *corev1.Service {
	labels := map[string]string{}
	maps.Copy(labels, c.Labels)
	if contract.Of(c.Contract).Objects.SetMetadata {
		maps.Copy(labels, c.PodLabels)
	}
	maps.Copy(labels, discoveryLabels(c))
	selector := Selector(c)
	// Pods of a clique carry no role: Grove tells leaders and workers apart by
	// clique, and the runtime by who registers.
	delete(selector, v1alpha1.LabelGroupRole)
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: c.ServiceName, Namespace: c.Namespace, Labels: labels, Annotations: cliqueAnnotations(c)},
		Spec:       corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{spoken(targeted(c), c.Role, true)}},
	}
}

// cliqueAnnotations are those that the user gives to a component's pods or to all of a
// graph, where the contract has them on Services of cliques too.
func cliqueAnnotations(c graph.Component) map[string]string {
	if !contract.Of(c.Contract).Objects.SetMetadata {
		return nil
	}
	annotations := maps.Clone(c.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, c.PodAnnotations)
	return annotations
}

// Selector are the labels that a component's pods, and no others, carry.
func Selector(c graph.Component) map[string]string {
	selector := map[string]string{
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.NamespaceLabel,
	}
	if c.Type != "" {
		selector[v1alpha1.LabelComponentType] = c.Type
	}
	if c.Multinode() {
		selector[v1alpha1.LabelGroupRole] = v1alpha1.RoleLeader
	}
	return selector
}

// discoveryLabels mark the Services by which the runtime finds workers: their
// EndpointSlices inherit these labels.
func discoveryLabels(c graph.Component) map[string]string {
	if c.Discovery != graph.DiscoveryKubernetes {
		return nil
	}
	return map[string]string{
		v1alpha1.LabelDiscoveryBackend: string(graph.DiscoveryKubernetes),
		v1alpha1.LabelDiscoveryEnabled: "true",
	}
}

// spoken is a port that says what is spoken there: a picker speaks gRPC, and some
// gateways go by the port.
func spoken(port corev1.ServicePort, role graph.Role, say bool) corev1.ServicePort {
	if say && role == graph.RoleEPP {
		port.AppProtocol = new("http2")
	}
	return port
}

// targeted is the port of a component's Service, which leads to where that is in its pods.
func targeted(c graph.Component) corev1.ServicePort {
	p := servicePort(c.Role)
	if p.TargetPort.Type == intstr.String {
		p.TargetPort = pod.Target(c, p.Name, p.Port)
	}
	return p
}

func servicePort(role graph.Role) corev1.ServicePort {
	switch role {
	case graph.RoleFrontend:
		return port(pod.PortNameHTTP, pod.PortHTTP, intstr.FromString(pod.PortNameHTTP))
	case graph.RoleEPP:
		return port(pod.PortNameGRPC, pod.PortPicker, intstr.FromInt32(pod.PortPicker))
	default:
		return port(pod.PortNameSystem, pod.PortSystem, intstr.FromString(pod.PortNameSystem))
	}
}

func port(name string, number int32, target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: target, Protocol: corev1.ProtocolTCP}
}
