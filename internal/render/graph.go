package render

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// Graph renders the children of a DynamoGraphDeployment: what its components
// share, then one DynamoComponentDeployment a service. Everything else is made
// from those.
func Graph(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph) []graph.Object {
	objects := Discovery(g)
	for _, c := range g.Components {
		objects = append(objects, componentDeployment(dgd, c))
	}
	return objects
}

// componentDeployment carries a service over field by field, in the user's own
// words, so that a reader of the component sees what the graph says.
func componentDeployment(dgd *v1alpha1.DynamoGraphDeployment, c graph.Component) *v1alpha1.DynamoComponentDeployment {
	spec := v1alpha1.SharedSpec{}
	if service := dgd.Spec.Services[c.Name]; service != nil {
		spec = *service.DeepCopy()
	}
	spec.ServiceName = c.Name
	spec.DynamoNamespace = new(c.DynamoNamespace)
	spec.Envs = c.Env
	spec.Annotations = c.Annotations
	system := systemLabels(c)
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	maps.Copy(labels, system)
	spec.Labels = labels
	return &v1alpha1.DynamoComponentDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.ObjectName, Namespace: c.Namespace, Labels: system},
		Spec: v1alpha1.DynamoComponentDeploymentSpec{
			BackendFramework: dgd.Spec.BackendFramework,
			SharedSpec:       spec,
		},
	}
}

func systemLabels(c graph.Component) map[string]string {
	return map[string]string{
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.DynamoNamespace,
	}
}
