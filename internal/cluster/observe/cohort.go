package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cohorts reads engines that stand by for each other: one from the informers, those that
// go with it from the API server, so that none that was made since is among them unseen.
type Cohorts struct {
	Cached, Direct client.Reader
}

// Pod is nil if there is none.
func (c Cohorts) Pod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	return Placement{Cached: c.Cached}.Pod(ctx, key)
}

// Pods are those of a namespace with all the labels.
func (c Cohorts) Pods(ctx context.Context, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := c.Direct.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("list the engines of a cohort in %s: %w", namespace, err)
	}
	return list.Items, nil
}
