package observe

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/internal/core/topologylabel"
)

// Placement reads where pods are: pods from the informers, nodes and topologies, of which
// none is held, from the API server.
type Placement struct {
	Cached, Direct client.Reader
}

// Pod is nil if there is none.
func (p Placement) Pod(ctx context.Context, key types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := p.Cached.Get(ctx, key, pod); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return pod, nil
}

// NodeLabels are none for a node that is gone.
func (p Placement) NodeLabels(ctx context.Context, name string) (map[string]string, error) {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := client.IgnoreNotFound(p.Direct.Get(ctx, types.NamespacedName{Name: name}, node)); err != nil {
		return nil, fmt.Errorf("read the labels of node %s: %w", name, err)
	}
	return node.Labels, nil
}

// clusterTopology is what Grove calls a topology; our module for its API does not know it.
var clusterTopology = schema.GroupVersionKind{Group: "grove.io", Version: "v1alpha1", Kind: "ClusterTopologyBinding"}

// Levels are those of a topology; an error if there is none of that name.
func (p Placement) Levels(ctx context.Context, topology string) ([]topologylabel.Level, error) {
	binding := &unstructured.Unstructured{}
	binding.SetGroupVersionKind(clusterTopology)
	if err := p.Direct.Get(ctx, types.NamespacedName{Name: topology}, binding); err != nil {
		return nil, fmt.Errorf("read topology %s: %w", topology, err)
	}
	given, _, err := unstructured.NestedSlice(binding.Object, "spec", "levels")
	if err != nil {
		return nil, fmt.Errorf("topology %s: %w", topology, err)
	}
	var levels []topologylabel.Level
	for _, item := range given {
		level, _ := item.(map[string]any)
		domain, _ := level["domain"].(string)
		key, _ := level["key"].(string)
		if domain != "" && key != "" {
			levels = append(levels, topologylabel.Level{Domain: domain, Key: key})
		}
	}
	return levels, nil
}
