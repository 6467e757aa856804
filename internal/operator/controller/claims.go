package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// WatchClaims wakes graphs for changes of the volume claims that were created for
// them: one that was deleted is made again.
func (d *Deps) WatchClaims(w *Watched) error {
	toGraph := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, claim client.Object) []reconcile.Request { return graphOfClaim(claim) })
	changed := predicate.ResourceVersionChangedPredicate{}
	if err := w.controller.Watch(source.Kind[client.Object](d.GetCache(), &corev1.PersistentVolumeClaim{}, d.batchedByUrgency(w.kind, toGraph), changed)); err != nil {
		return fmt.Errorf("watch claims: %w", err)
	}
	return nil
}

// graphOfClaim leads from a claim to the graph of the name that it was created for,
// which may have been deleted and created anew since.
func graphOfClaim(claim client.Object) []reconcile.Request {
	name := claim.GetLabels()[v1alpha1.LabelGraphName]
	if name == "" || claim.GetLabels()[v1alpha1.LabelGraphUID] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: claim.GetNamespace(), Name: name}}}
}
