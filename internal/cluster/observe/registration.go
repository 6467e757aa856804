package observe

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// registers indexes graphs and components by where in etcd they register.
const registers = "spec.registration"

// IndexRegistrations prepares the informers' stores for Registrations.
func IndexRegistrations(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.DynamoGraphDeployment{}, registers, func(object client.Object) []string {
		var keys []string
		for _, r := range graph.RegistrationsOf(object.(*v1alpha1.DynamoGraphDeployment)) {
			keys = append(keys, r.Key())
		}
		return keys
	})
	if err != nil {
		return fmt.Errorf("index graphs by where they register: %w", err)
	}
	err = indexer.IndexField(ctx, &v1alpha1.DynamoComponentDeployment{}, registers, func(object client.Object) []string {
		return []string{graph.RegistrationOf(object.(*v1alpha1.DynamoComponentDeployment)).Key()}
	})
	if err != nil {
		return fmt.Errorf("index components by where they register: %w", err)
	}
	return nil
}

// Registrations tells who else registers where a component does.
type Registrations struct {
	Cached client.Reader
	// ClusterWide is an operator that sees every graph of the cluster.
	ClusterWide bool
}

// Shared reports whether another graph registers at the same place, or could do
// so without being seen.
func (r Registrations) Shared(ctx context.Context, at graph.Registration) (bool, error) {
	if !r.ClusterWide && !at.Unambiguous() {
		return true, nil
	}
	here := client.MatchingFields{registers: at.Key()}
	var graphs v1alpha1.DynamoGraphDeploymentList
	if err := r.Cached.List(ctx, &graphs, here); err != nil {
		return false, fmt.Errorf("list graphs that register at %s: %w", at.Key(), err)
	}
	for i := range graphs.Items {
		if g := &graphs.Items[i]; g.DeletionTimestamp == nil && (g.Namespace != at.Namespace || g.Name != at.Graph) {
			return true, nil
		}
	}
	var components v1alpha1.DynamoComponentDeploymentList
	if err := r.Cached.List(ctx, &components, here); err != nil {
		return false, fmt.Errorf("list components that register at %s: %w", at.Key(), err)
	}
	for i := range components.Items {
		c := &components.Items[i]
		if other := graph.RegistrationOf(c); c.DeletionTimestamp == nil && (other.Namespace != at.Namespace || other.Graph != at.Graph) {
			return true, nil
		}
	}
	return false, nil
}
