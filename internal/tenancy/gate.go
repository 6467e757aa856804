package tenancy

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list;watch,roleName=dynamo-operator-manager-cluster

// Gate asks before every pass whose the namespace is; what is queued when a
// claim begins stops there, and what waits when it ends goes on.
type Gate struct {
	// Client reads Leases and objects from the informers.
	Client client.Client
	// Covers reports whether the operator was told to look after a namespace.
	Covers func(namespace string) bool
	Clock  clock.PassiveClock
	// Kind makes an empty object of the kind that passes are over, and where its
	// conditions are.
	Kind func() (client.Object, *[]metav1.Condition)
	Next reconcile.Reconciler
}

// Reconcile passes on what is ours, and says of the rest whose it is.
func (g *Gate) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim, err := g.claim(ctx, request.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := g.Clock.Now()
	switch {
	case claim.Live(now):
		err := g.note(ctx, request.NamespacedName, &metav1.Condition{
			Type: v1alpha1.ConditionManaged, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNamespaceOperator,
			Message: fmt.Sprintf("namespace %s is looked after by %s", request.Namespace, claim.Holder),
		})
		return reconcile.Result{RequeueAfter: claim.Until.Sub(now) + time.Second}, err
	case !g.Covers(request.Namespace):
		return reconcile.Result{}, g.note(ctx, request.NamespacedName, &metav1.Condition{
			Type: v1alpha1.ConditionManaged, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotManaged,
			Message: fmt.Sprintf("namespace %s is excluded, and no other operator looks after it", request.Namespace),
		})
	}
	if err := g.note(ctx, request.NamespacedName, nil); err != nil {
		return reconcile.Result{}, err
	}
	return g.Next.Reconcile(ctx, request)
}

func (g *Gate) claim(ctx context.Context, namespace string) (Claim, error) {
	lease := &coordinationv1.Lease{}
	if err := g.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: LeaseName}, lease); err != nil {
		return Claim{}, client.IgnoreNotFound(err)
	}
	return Read(lease), nil
}

// note writes a condition onto an object, or takes it off. Nothing is written if
// it says so already.
func (g *Gate) note(ctx context.Context, key types.NamespacedName, say *metav1.Condition) error {
	object, conditions := g.Kind()
	if err := g.Client.Get(ctx, key, object); err != nil || object.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	before := object.DeepCopyObject().(client.Object)
	changed := false
	if say == nil {
		changed = meta.RemoveStatusCondition(conditions, v1alpha1.ConditionManaged)
	} else {
		say.ObservedGeneration = object.GetGeneration()
		say.LastTransitionTime = metav1.NewTime(g.Clock.Now())
		changed = meta.SetStatusCondition(conditions, *say)
	}
	if !changed {
		return nil
	}
	// The other operator may write the same status: never over what was not seen.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := g.Client.Status().Patch(ctx, object, patch); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("say whose %s is: %w", key, err))
	}
	return nil
}
