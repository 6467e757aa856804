package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Claims asks the API server which volume claims go with an owner: the informer may
// be behind one that was just made.
func (f Facts) Claims(ctx context.Context, owner client.Object) ([]graph.Object, error) {
	var list corev1.PersistentVolumeClaimList
	if err := f.Direct.List(ctx, &list, client.InNamespace(owner.GetNamespace())); err != nil {
		return nil, fmt.Errorf("list claims of %s: %w", client.ObjectKeyFromObject(owner), err)
	}
	var owned []graph.Object
	for i := range list.Items {
		claim := &list.Items[i]
		if slices.ContainsFunc(claim.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == owner.GetUID() }) {
			owned = append(owned, claim)
		}
	}
	return owned, nil
}
