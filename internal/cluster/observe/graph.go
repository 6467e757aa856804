package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// Graphs reads those of a namespace, or of all that are looked after.
func (f Facts) Graphs(ctx context.Context, namespace string) ([]*v1alpha1.DynamoGraphDeployment, error) {
	var list v1alpha1.DynamoGraphDeploymentList
	if err := f.Cached.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list graphs of %q: %w", namespace, err)
	}
	graphs := make([]*v1alpha1.DynamoGraphDeployment, 0, len(list.Items))
	for i := range list.Items {
		graphs = append(graphs, &list.Items[i])
	}
	return graphs, nil
}

// LiveGraphs asks the API server for those of a namespace: what is deleted for good is not
// decided from an informer that may be behind.
func (f Facts) LiveGraphs(ctx context.Context, namespace string) ([]*v1alpha1.DynamoGraphDeployment, error) {
	return Facts{Cached: f.Direct}.Graphs(ctx, namespace)
}

// PodCount is how many pods of a service there are. Those that end have their GPUs until
// they are gone.
type PodCount struct{ Live, Ending int }

// PodsByService counts the pods of a graph that have not ended, by service.
func (f Facts) PodsByService(ctx context.Context, namespace, graph string) (map[string]PodCount, error) {
	var list corev1.PodList
	err := f.Cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{serves: serviceKey(graph, "")})
	if err != nil {
		return nil, fmt.Errorf("list pods of graph %s/%s: %w", namespace, graph, err)
	}
	counts := map[string]PodCount{}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		service := pod.Labels[v1alpha1.LabelComponent]
		n := counts[service]
		if pod.DeletionTimestamp != nil {
			n.Ending++
		} else {
			n.Live++
		}
		counts[service] = n
	}
	return counts, nil
}
