package controller

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
)

// Everywhere runs on replicas that do not lead, too: their controllers wait for
// it to be ready when their turn comes.
type Everywhere struct{ cache.Cache }

// NeedLeaderElection is false.
func (Everywhere) NeedLeaderElection() bool { return false }

// ActivationLeases holds the Leases by which graphs are woken. Those of tenancy are
// selected by name, and one informer knows one selector; those of nodes are none of ours.
// It is nil where no graph may scale to zero.
func (d *Deps) ActivationLeases() (cache.Cache, error) {
	if !d.Config.Activator.Enabled {
		return nil, nil
	}
	leases, err := d.NewCache(map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {Label: Labelled(v1alpha1.LabelGraphName), Transform: observe.TrimLease},
	})
	if err != nil {
		return nil, fmt.Errorf("hold the Leases of graphs: %w", err)
	}
	return leases, d.Add(Everywhere{leases})
}

// WatchLeases wakes graphs for their Leases.
func (d *Deps) WatchLeases(w *Watched, leases cache.Cache) error {
	if leases == nil {
		return nil
	}
	if err := w.controller.Watch(source.Kind[client.Object](leases, &coordinationv1.Lease{}, d.Batched(w.kind, EnqueueOwner(d, w.kind)), ContentChanged())); err != nil {
		return fmt.Errorf("watch Leases: %w", err)
	}
	return nil
}
