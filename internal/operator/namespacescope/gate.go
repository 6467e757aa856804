package namespacescope

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

// Object is an object of one of our kinds.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// Gate asks before every reconcile whether the operator is the one to make it; what is
// queued when it no longer is stops there, and what waits is woken when it is.
type Gate struct {
	// Client reads objects from the informers.
	Client client.Client
	Writer *Writer
	// View is what an operator for the cluster knows of others; nil for one of single
	// namespaces.
	View *View
	// Covers reports whether the operator was told to look after a namespace.
	Covers func(namespace string) bool
	Clock  clock.PassiveClock
	// Kind is an empty object of the kind that is reconciled.
	Kind Object
	Next reconcile.Reconciler
}

// Reconcile passes on what is ours, and says of the rest whose it is.
func (g *Gate) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := g.pass(ctx, request)
	if errors.Is(err, ErrNotWriter) {
		// Lost on the way. Another look tells whose it is now; who becomes the writer
		// again wakes all.
		log.FromContext(ctx).V(1).Info("stopped, not the writer any more", "reason", err.Error())
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	return result, err
}

func (g *Gate) pass(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// First the operator as a whole, which the namespace has no part in.
	if g.View != nil {
		if _, err := g.Writer.Left(ctx, ""); err != nil {
			return reconcile.Result{}, quiet(err)
		}
		ours, result, err := g.ours(ctx, request)
		if !ours || err != nil {
			return result, err
		}
	}
	if _, err := g.Writer.Left(ctx, request.Namespace); err != nil {
		return reconcile.Result{}, quiet(err)
	}
	return g.Next.Reconcile(ctx, request)
}

// quiet is nothing to be reported if it is another's turn: we are woken when it is
// ours.
func quiet(err error) error {
	if errors.Is(err, ErrNotWriter) {
		return nil
	}
	return err
}

// ours reports whether a namespace is the cluster operator's, and says so on the
// object if it is not.
func (g *Gate) ours(ctx context.Context, request reconcile.Request) (bool, reconcile.Result, error) {
	claim, err := g.View.Claim(ctx, request.Namespace)
	if err != nil {
		return false, reconcile.Result{}, err
	}
	now := g.Clock.Now()
	switch {
	case claim.Live(now):
		err := g.note(ctx, request.NamespacedName, &metav1.Condition{
			Type: v1alpha1.ConditionManaged, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNamespaceOperator,
			Message: fmt.Sprintf("namespace %s is looked after by %s", request.Namespace, claim.Who()),
		})
		if err != nil {
			return false, reconcile.Result{}, err // it is tried again for that
		}
		return false, reconcile.Result{RequeueAfter: claim.Until().Sub(now) + time.Second}, nil
	case !g.Covers(request.Namespace):
		return false, reconcile.Result{}, g.note(ctx, request.NamespacedName, &metav1.Condition{
			Type: v1alpha1.ConditionManaged, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotManaged,
			Message: fmt.Sprintf("namespace %s is excluded, and no other operator looks after it", request.Namespace),
		})
	default:
		return true, reconcile.Result{}, g.note(ctx, request.NamespacedName, nil)
	}
}

// note writes a condition onto an object, or takes it off. Nothing is written if
// it says so already.
func (g *Gate) note(ctx context.Context, key types.NamespacedName, say *metav1.Condition) error {
	object := g.Kind.DeepCopyObject().(Object)
	if err := g.Client.Get(ctx, key, object); err != nil || object.GetDeletionTimestamp() != nil {
		return client.IgnoreNotFound(err)
	}
	conditions, changed := slices.Clone(object.GetConditions()), false
	if say == nil {
		changed = meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionManaged)
	} else {
		say.ObservedGeneration = object.GetGeneration()
		say.LastTransitionTime = metav1.NewTime(g.Clock.Now())
		changed = meta.SetStatusCondition(&conditions, *say)
	}
	if !changed {
		return nil
	}
	// The other operator may write the same status: never over what was not seen.
	err := apply.PatchStatus(ctx, g.Client, object, func() { object.SetConditions(conditions) }, true, client.FieldOwner(noter))
	if err != nil {
		return fmt.Errorf("say whose %s is: %w", key, err)
	}
	return nil
}
