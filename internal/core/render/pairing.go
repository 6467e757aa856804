package render

import (
	"errors"
	"maps"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// fronts render what the frontends of all generations of a paired graph are reached by.
// The component of a first frontend may have made it before: it is handed over.
func fronts(g *graph.Graph, p Platform) (wanted []graph.Desired, err error) {
	if !g.Paired {
		return nil, nil
	}
	for _, c := range g.Components {
		if c.Role != graph.RoleFrontend {
			continue
		}
		c.ObjectName = graph.ComponentName(g.Name, c.Name)
		c.Labels = maps.Clone(c.Labels)
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		maps.Copy(c.Labels, map[string]string{
			v1alpha1.LabelGraphName: c.Graph, v1alpha1.LabelComponent: c.Name, v1alpha1.LabelDynamoNamespace: c.DynamoNamespace,
		})
		routes, routeErr := ingress(c, p.Capabilities)
		err = errors.Join(err, routeErr)
		for _, object := range append([]graph.Object{Service(c)}, routes...) {
			annotations := maps.Clone(object.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[v1alpha1.AnnotationRolloutIsolation] = v1alpha1.IsolationPaired
			object.SetAnnotations(annotations)
			wanted = append(wanted, graph.Desired{Object: object, FromChild: true})
		}
	}
	return wanted, err
}
