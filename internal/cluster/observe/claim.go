package observe

import (
	"context"
	"fmt"
	"slices"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Claims asks the API server which volume claims were created for a graph: the
// informer may be behind one that was just made. Claims of an earlier operator have an
// owner reference instead of our label.
func (f Facts) Claims(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment) ([]graph.Object, error) {
	var list corev1.PersistentVolumeClaimList
	if err := f.Direct.List(ctx, &list, client.InNamespace(dgd.Namespace)); err != nil {
		return nil, fmt.Errorf("list claims of %s: %w", client.ObjectKeyFromObject(dgd), err)
	}
	var created []graph.Object
	for i := range list.Items {
		if slices.Contains(ownersOf(&list.Items[i]), string(dgd.UID)) {
			created = append(created, &list.Items[i])
		}
	}
	return created, nil
}

// Orphaned asks the API server whether a graph that is being deleted is to leave its
// children behind. Only the garbage collector hears of that: it takes the owner
// references off the children, and only then its finalizer off the graph. So either
// the finalizer is there, or what runs the graph has no owner.
func (f Facts) Orphaned(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, cliqueSet string) (bool, error) {
	if slices.Contains(dgd.Finalizers, metav1.FinalizerOrphanDependents) {
		return true, nil
	}
	var components v1alpha1.DynamoComponentDeploymentList
	if err := f.Direct.List(ctx, &components, client.InNamespace(dgd.Namespace), client.MatchingLabels{v1alpha1.LabelGraphName: dgd.Name}); err != nil {
		return false, fmt.Errorf("list components of %s: %w", client.ObjectKeyFromObject(dgd), err)
	}
	for i := range components.Items {
		if metav1.GetControllerOf(&components.Items[i]) == nil {
			return true, nil
		}
	}
	set := &grovev1alpha1.PodCliqueSet{}
	err := f.Direct.Get(ctx, types.NamespacedName{Namespace: dgd.Namespace, Name: cliqueSet}, set)
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for PodCliqueSet %s/%s: %w", dgd.Namespace, cliqueSet, err)
	}
	return metav1.GetControllerOf(set) == nil, nil
}
