package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// adapters render a scaling adapter for each service that asks for one. From
// then on autoscalers write to it, so it is only ever made.
func adapters(g *graph.Graph) []graph.Desired {
	var wanted []graph.Desired
	for _, a := range g.Adapters {
		adapter := &v1alpha1.DynamoGraphDeploymentScalingAdapter{
			ObjectMeta: metav1.ObjectMeta{Name: a.ObjectName, Namespace: g.Namespace, Labels: map[string]string{
				v1alpha1.LabelGraphName: g.Name,
				v1alpha1.LabelComponent: a.Service,
			}},
		}
		adapter.Spec.Replicas = a.Replicas
		adapter.Spec.DGDRef.Name, adapter.Spec.DGDRef.ServiceName = g.Name, a.Service
		wanted = append(wanted, graph.Desired{Object: adapter, CreateOnly: true})
	}
	return wanted
}
