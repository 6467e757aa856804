package component

import (
	"cmp"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/pickerconfig"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// beta carries a component over as v1beta1 says it, with all that
// its graph says in its pod template. It is stored in v1alpha1, as one that was
// written as v1beta1.
func (b Builder) beta(c graph.Component, engine graph.Engine) (*v1alpha1.DynamoComponentDeployment, error) {
	spec := c.V1Beta1()
	if c.Role == graph.RolePlanner {
		spec.PodTemplate.Spec.ServiceAccountName = pod.PlannerAccount
	}
	config, err := pickerconfig.Complete((*v1alpha1.EPPConfig)(spec.EPPConfig))
	if err != nil {
		return nil, fmt.Errorf("eppConfig.config: %w", err)
	}
	spec.EPPConfig = (*v1beta1.EPPConfig)(config)
	labels, told := systemLabels(c), generationLabels(c)
	maps.Copy(labels, told)
	labels = over(c.PodLabels, labels)
	spec.PodTemplate.Labels = over(spec.PodTemplate.Labels, told)
	spec.PodTemplate.Annotations = over(spec.PodTemplate.Annotations, templateAnnotations(c, spec.PodTemplate.Annotations))
	annotations := map[string]string{v1alpha1.AnnotationRuntimeContract: string(c.Contract)}
	if c.Executor != "" {
		annotations[v1alpha1.AnnotationVLLMExecutor] = string(c.Executor)
	}
	stored, _ := conversion.ComponentToAlpha(&v1beta1.DynamoComponentDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.ObjectName, Namespace: c.Namespace, Labels: labels, Annotations: annotations},
		Spec:       v1beta1.DynamoComponentDeploymentSpec{BackendFramework: string(cmp.Or(graph.Engine(b.Graph.Spec.BackendFramework), engine)), Component: spec},
	})
	// What v1beta1 has no word for.
	stored.TypeMeta = metav1.TypeMeta{}
	stored.Spec.DynamoNamespace = new(c.DynamoNamespace)
	if c.Role == graph.RoleOther {
		stored.Spec.ComponentType = v1alpha1.ComponentType(c.Type)
	}
	if spec.Type != v1beta1.ComponentTypePrefill && spec.Type != v1beta1.ComponentTypeDecode {
		stored.Spec.SubComponentType = c.SubType
	}
	stored.Spec.Labels = over(over(c.Labels, c.PodLabels), systemLabels(c))
	stored.Spec.Ingress = b.ingress(c)
	return stored, nil
}

// generationLabels tell a component's objects and pods apart by generation and class.
func generationLabels(c graph.Component) map[string]string {
	labels := map[string]string{}
	if c.Generation != "" {
		labels[v1alpha1.LabelGeneration] = c.Generation
	}
	if c.Class != "" {
		labels[v1alpha1.LabelComponentClass] = c.Class
	}
	return labels
}

// templateAnnotations are what a graph says to the pods of a component.
func templateAnnotations(c graph.Component, users map[string]string) map[string]string {
	annotations := map[string]string{}
	if c.DiscoveryMode != "" && contract.Of(c.Contract).Pods.Discovered {
		annotations[v1alpha1.AnnotationDiscoveryMode] = string(c.DiscoveryMode)
	}
	if _, said := users[v1alpha1.AnnotationMeshInject]; c.Role == graph.RoleEPP && !said && contract.Of(c.Contract).Pods.NoMesh {
		annotations[v1alpha1.AnnotationMeshInject] = "false"
	}
	return annotations
}

// over puts values over others; nil where there are none.
func over(below, above map[string]string) map[string]string {
	if len(above) == 0 {
		return below
	}
	joined := maps.Clone(below)
	if joined == nil {
		joined = map[string]string{}
	}
	maps.Copy(joined, above)
	return joined
}

// ingress is how a component is reached, in the user's words or, for a frontend
// that says nothing, the operator's.
func (b Builder) ingress(c graph.Component) *v1alpha1.IngressSpec {
	if service := b.Graph.Spec.Services[c.Name]; service != nil && service.Ingress != nil {
		return service.Ingress
	}
	if c.Role != graph.RoleFrontend {
		return nil
	}
	return graph.DefaultIngress(b.Graph.Name, b.Defaults.Ingress)
}
