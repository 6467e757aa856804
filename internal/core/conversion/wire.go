package conversion

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
)

// The types below encode to the JSON of those of the API. They have no marshalers
// for the pods of a component: all that a marshaler wrote is read once more, which is
// half of what it takes to encode a graph.
type (
	wire[Status any] struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec              any    `json:"spec,omitempty"`
		Status            Status `json:"status,omitzero"`
	}

	wireBetaGraph struct {
		*v1beta1.DynamoGraphDeploymentSpec `json:",inline"`
		Components                         []wireComponent `json:"components,omitempty"`
	}
	wireBetaComponent struct {
		BackendFramework string `json:"backendFramework,omitempty"`
		wireComponent    `json:",inline"`
	}
	wireComponent struct {
		*v1beta1.Component `json:",inline"`
		PodTemplate        *wireTemplate `json:"podTemplate,omitempty"`
	}
	wireTemplate struct {
		Metadata metav1.ObjectMeta `json:"metadata,omitzero"`
		Spec     wirePod           `json:"spec"`
	}
	wirePod struct {
		*corev1.PodSpec `json:",inline"`
		InitContainers  []wireContainer `json:"initContainers,omitempty"`
		Containers      []wireContainer `json:"containers"`
	}
	wireContainer struct {
		*corev1.Container `json:",inline"`
		Resources         corev1.ResourceRequirements `json:"resources,omitzero"`
	}

	wireAlphaGraph struct {
		*v1alpha1.DynamoGraphDeploymentSpec `json:",inline"`
		Services                            map[string]*wireService `json:"services,omitempty"`
	}
	wireAlphaComponent struct {
		BackendFramework v1alpha1.BackendFramework `json:"backendFramework,omitempty"`
		wireService      `json:",inline"`
	}
	wireService struct {
		*v1alpha1.SharedSpec `json:",inline"`
		ExtraPodSpec         *wireExtra `json:"extraPodSpec,omitempty"`
	}
	wireExtra struct {
		*corev1.PodSpec `json:",inline"`
		Containers      []corev1.Container `json:"containers,omitempty"`
		MainContainer   *wireMain          `json:"mainContainer,omitempty"`
	}
	wireMain struct {
		*corev1.Container `json:",inline"`
		Name              string                      `json:"name,omitempty"`
		Resources         corev1.ResourceRequirements `json:"resources,omitzero"`
	}
)

// encodeObject is json.Marshal of an object.
func encodeObject(object any) ([]byte, error) {
	switch o := object.(type) {
	case *v1beta1.DynamoGraphDeployment:
		return encodeAs(o.TypeMeta, o.ObjectMeta, &o.Spec, o.Status)
	case *v1beta1.DynamoComponentDeployment:
		return encodeAs(o.TypeMeta, o.ObjectMeta, &o.Spec, o.Status)
	case *v1alpha1.DynamoGraphDeployment:
		return encodeAs(o.TypeMeta, o.ObjectMeta, &o.Spec, o.Status)
	case *v1alpha1.DynamoComponentDeployment:
		return encodeAs(o.TypeMeta, o.ObjectMeta, &o.Spec, o.Status)
	default:
		return marshal(object)
	}
}

func encodeAs[Spec, Status any](kind metav1.TypeMeta, meta metav1.ObjectMeta, spec *Spec, status Status) ([]byte, error) {
	w := wire[Status]{TypeMeta: kind, ObjectMeta: meta, Status: status}
	if !reflect.ValueOf(spec).Elem().IsZero() {
		w.Spec = wireSpec(spec)
	}
	return marshal(&w)
}

// wireSpec is what encodes to the JSON of a spec.
func wireSpec(spec any) any {
	switch s := spec.(type) {
	case *v1beta1.DynamoGraphDeploymentSpec:
		w := wireBetaGraph{DynamoGraphDeploymentSpec: s, Components: make([]wireComponent, len(s.Components))}
		for i := range s.Components {
			w.Components[i] = wireOf(&s.Components[i])
		}
		return &w
	case *v1beta1.DynamoComponentDeploymentSpec:
		return &wireBetaComponent{s.BackendFramework, wireOf(&s.Component)}
	case *v1alpha1.DynamoGraphDeploymentSpec:
		w := wireAlphaGraph{DynamoGraphDeploymentSpec: s, Services: make(map[string]*wireService, len(s.Services))}
		for name, service := range s.Services {
			w.Services[name] = nil
			if service != nil {
				below := wireServiceOf(service)
				w.Services[name] = &below
			}
		}
		return &w
	case *v1alpha1.DynamoComponentDeploymentSpec:
		return &wireAlphaComponent{s.BackendFramework, wireServiceOf(&s.SharedSpec)}
	default:
		return spec
	}
}

func wireOf(c *v1beta1.Component) wireComponent {
	w := wireComponent{Component: c}
	if t := c.PodTemplate; t != nil {
		w.PodTemplate = &wireTemplate{t.ObjectMeta, wirePod{&t.Spec, wireContainers(t.Spec.InitContainers), wireContainers(t.Spec.Containers)}}
	}
	return w
}

// wireContainers are never nil: containers are required.
func wireContainers(all []corev1.Container) []wireContainer {
	w := make([]wireContainer, len(all))
	for i := range all {
		w[i] = wireContainer{&all[i], all[i].Resources}
	}
	return w
}

func wireServiceOf(s *v1alpha1.SharedSpec) wireService {
	w := wireService{SharedSpec: s}
	if extra := s.ExtraPodSpec; extra != nil {
		w.ExtraPodSpec = &wireExtra{PodSpec: extra.PodSpec}
		if extra.PodSpec != nil {
			w.ExtraPodSpec.Containers = extra.Containers
		}
		if main := extra.MainContainer; main != nil {
			w.ExtraPodSpec.MainContainer = &wireMain{main, main.Name, main.Resources}
		}
	}
	return w
}
