// Package failover has engines that stand by for each other in different pods made anew:
// when one ends it deletes those that cannot serve without it. What makes pods is Grove.
package failover

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/observe"
	"github.com/dynamo-operator/dynamo-operator/internal/core/cohort"
)

// Whoever deletes pods can keep any service of a namespace down, so the right is a role of
// its own that an installation binds if it wants cohorts deleted.
// +kubebuilder:rbac:groups="",resources=pods,verbs=delete,roleName=dynamo-operator-failover

// Reconciler looks at one engine a reconcile.
type Reconciler struct {
	Cohorts observe.Cohorts
	Applier *apply.Applier
	Clock   clock.PassiveClock
	// Covers reports whether a namespace is ours to look after.
	Covers func(namespace string) bool
}

// Reconcile deletes the cohort of an engine that ended.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pod, err := r.Cohorts.Pod(ctx, request.NamespacedName)
	if err != nil || pod == nil || !cohort.Ended(pod) || !r.Covers(request.Namespace) {
		return reconcile.Result{}, err
	}
	labels, _ := cohort.Of(pod) // it has ended, so it is of one
	pods, err := r.Cohorts.Pods(ctx, request.Namespace, labels)
	if err != nil {
		return reconcile.Result{}, err
	}
	lost, wait := cohort.Lost(pods, r.Clock.Now())
	for _, pod := range lost {
		if err := r.Applier.Discard(ctx, pod); err != nil {
			return reconcile.Result{}, err
		}
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}
