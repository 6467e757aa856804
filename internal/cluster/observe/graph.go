package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
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
type PodCount struct {
	Live, Ending int
	// GPUs are those of pods that have a node, as their limits say.
	GPUs int
	// Priority is the lowest that admission gave to those that live, by their PriorityClass:
	// one pod of a class does not lift those that have none.
	Priority int
}

// PodsByService counts the pods of a graph that have not ended, by service.
func (f Facts) PodsByService(ctx context.Context, namespace, name string) (map[string]PodCount, error) {
	var list corev1.PodList
	err := f.Cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{serves: serviceKey(name, "")}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list pods of graph %s/%s: %w", namespace, name, err)
	}
	return count(list.Items)[types.NamespacedName{Namespace: namespace, Name: name}], nil
}

// PodsByGraph counts those of all graphs of a namespace, or of all that are looked after,
// whether the graphs are there or not, by graph and service.
func (f Facts) PodsByGraph(ctx context.Context, namespace string) (map[types.NamespacedName]map[string]PodCount, error) {
	var list corev1.PodList
	if err := f.Cached.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelGraphName}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list pods of graphs of %q: %w", namespace, err)
	}
	return count(list.Items), nil
}

func count(pods []corev1.Pod) map[types.NamespacedName]map[string]PodCount {
	counts := map[types.NamespacedName]map[string]PodCount{}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		of := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelGraphName]}
		if counts[of] == nil {
			counts[of] = map[string]PodCount{}
		}
		service := pod.Labels[v1alpha1.LabelComponent]
		n := counts[of][service]
		if priority := int(ptr.Deref(pod.Spec.Priority, 0)); pod.DeletionTimestamp != nil {
			n.Ending++
		} else {
			if n.Live == 0 || priority < n.Priority {
				n.Priority = priority
			}
			n.Live++
		}
		for _, c := range pod.Spec.Containers {
			if pod.Spec.NodeName != "" {
				n.GPUs += graph.GPUsIn(c.Resources.Limits)
			}
		}
		counts[of][service] = n
	}
	return counts
}

// Lone are the components of a namespace, or of all, that have no graph. Their pods are
// labelled as those of a graph of their name.
func (f Facts) Lone(ctx context.Context, namespace string) (map[types.NamespacedName]bool, error) {
	var list v1alpha1.DynamoComponentDeploymentList
	if err := f.Cached.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list components of %q: %w", namespace, err)
	}
	lone := map[types.NamespacedName]bool{}
	for i := range list.Items {
		if dcd := &list.Items[i]; graph.ParentGraph(dcd) == "" {
			lone[client.ObjectKeyFromObject(dcd)] = true
		}
	}
	return lone, nil
}
