// Package topology gives pods labels of the nodes that they are on, for workers that
// are to keep transfers of KV caches within a domain.
package topology

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/topologylabel"
)

// Whoever patches pods can change their images, so the rights are a role of their own
// that an installation binds if it lists labels.
// +kubebuilder:rbac:groups="",resources=pods,verbs=patch,roleName=dynamo-operator-topology
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get,roleName=dynamo-operator-topology
// +kubebuilder:rbac:groups=grove.io,resources=clustertopologybindings,verbs=get,roleName=dynamo-operator-topology

// Reconciler looks at one pod a reconcile.
type Reconciler struct {
	Placement observe.Placement
	Applier   *apply.Applier
	// Shown are the labels of nodes that pods may have.
	Shown []string
	// Covers reports whether a namespace is ours to look after.
	Covers func(namespace string) bool
}

// Reconcile gives a pod the labels that it asks for, once it has a node.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, err := r.Placement.Pod(ctx, request.NamespacedName)
	if err != nil || pod == nil || !r.Covers(request.Namespace) {
		return reconcile.Result{}, err
	}
	topology, asks := topologylabel.Asks(pod)
	if !asks {
		return reconcile.Result{}, nil
	}
	var levels []topologylabel.Level
	if topology != "" {
		if levels, err = r.Placement.Levels(ctx, topology); err != nil {
			return reconcile.Result{}, err
		}
	}
	node, err := r.Placement.NodeLabels(ctx, pod.Spec.NodeName)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.Applier.Label(ctx, pod, topologylabel.Missing(pod, node, levels, r.Shown))
}
