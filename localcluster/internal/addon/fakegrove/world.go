package fakegrove

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// world is one set and everything made from it.
type world struct {
	now      time.Time
	set      *grovev1alpha1.PodCliqueSet
	groups   map[string]*grovev1alpha1.PodCliqueScalingGroup
	cliques  map[string]*grovev1alpha1.PodClique
	services map[string]*corev1.Service
	pods     map[string][]*corev1.Pod // by clique, sorted by name
	refused  map[string]error         // what cliques were told when they were to get pods
}

// observe reads the parts of a set.
func observe(ctx context.Context, c client.Reader, set *grovev1alpha1.PodCliqueSet) (world, error) {
	var (
		groups   grovev1alpha1.PodCliqueScalingGroupList
		cliques  grovev1alpha1.PodCliqueList
		services corev1.ServiceList
		pods     corev1.PodList
	)
	for _, list := range []client.ObjectList{&groups, &cliques, &services, &pods} {
		parts := client.MatchingLabels(common.GetDefaultLabelsForPodCliqueSetManagedResources(set.Name))
		if err := c.List(ctx, list, client.InNamespace(set.Namespace), parts); err != nil {
			return world{}, fmt.Errorf("list %T of %s: %w", list, set.Name, err)
		}
	}
	w := world{
		now:      time.Now(),
		set:      set,
		groups:   byName(groups.Items, func(g *grovev1alpha1.PodCliqueScalingGroup) string { return g.Name }),
		cliques:  byName(cliques.Items, func(c *grovev1alpha1.PodClique) string { return c.Name }),
		services: byName(services.Items, func(s *corev1.Service) string { return s.Name }),
		pods:     map[string][]*corev1.Pod{},
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		clique := pod.Labels[common.LabelPodClique]
		w.pods[clique] = append(w.pods[clique], pod)
	}
	for _, pods := range w.pods {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	return w, nil
}

func byName[T any](items []T, name func(*T) string) map[string]*T {
	index := make(map[string]*T, len(items))
	for i := range items {
		index[name(&items[i])] = &items[i]
	}
	return index
}
