// Package checkpoint reconciles DynamoCheckpoints. They are accepted, and nothing
// captures them; all there is to do is to say so where their users look.
package checkpoint

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
)

// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocheckpoints,verbs=list;watch;patch
// +kubebuilder:rbac:groups=nvidia.com,resources=dynamocheckpoints/status,verbs=patch

// Reconciler reports on checkpoints.
type Reconciler struct {
	Client  client.Client
	Applier *apply.Applier
	Clock   clock.PassiveClock
}

// Reconcile reconciles one checkpoint. The original promises by a finalizer to look after
// one that is deleted, and it would go for nobody else.
func (r *Reconciler) Reconcile(ctx context.Context, c *v1alpha1.DynamoCheckpoint) (reconcile.Result, error) {
	if err := r.Applier.Release(ctx, c); err != nil || c.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	return controller.Finish(ctx, r.Client, c, &c.Status, status.Checkpoint(c, metav1.NewTime(r.Clock.Now())), false, nil)
}
