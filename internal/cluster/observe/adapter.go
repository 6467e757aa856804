package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// scales is the index of adapters by the graph that they are for: each graph has
// several, and looking through all of them whenever one graph changes would take
// the longer the more graphs there are.
const scales = "spec.dgdRef.name"

// IndexAdapters prepares the informers' stores for AdaptersOf.
func IndexAdapters(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.DynamoGraphDeploymentScalingAdapter{}, scales, func(object client.Object) []string {
		return []string{object.(*v1alpha1.DynamoGraphDeploymentScalingAdapter).Spec.DGDRef.Name}
	})
	if err != nil {
		return fmt.Errorf("index scaling adapters by their graph: %w", err)
	}
	return nil
}

// AdaptersOf leads from a graph to the adapters that it concerns: one could stand
// for any of its services, whoever made it.
func AdaptersOf(cached client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, graph client.Object) []reconcile.Request {
		return adaptersOf(ctx, cached, graph.GetNamespace(), graph.GetName())
	}
}

// AdaptersOfPod leads from a pod to the adapters of its graph.
func AdaptersOfPod(cached client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, pod client.Object) []reconcile.Request {
		return adaptersOf(ctx, cached, pod.GetNamespace(), pod.GetLabels()[v1alpha1.LabelGraphName])
	}
}

func adaptersOf(ctx context.Context, cached client.Reader, namespace, graph string) []reconcile.Request {
	var list v1alpha1.DynamoGraphDeploymentScalingAdapterList
	err := cached.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{scales: graph})
	if err != nil {
		return nil // the informer is not synced yet; its first list wakes every adapter
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
