// Package controller holds what the reconcilers of all kinds share: how a reconcile
// begins and ends. The reconcilers themselves live in a folder per kind.
package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// Object is an object of one of our kinds.
type Object = namespacescope.Object

// Finish ends a reconcile: it writes the object's status if that changed, and turns the
// error of the reconcile into what the queue does next. status points into object;
// locked refuses to write over what was not seen.
//
//	transient --> back-off
//	waiting   --> a watch wakes us, or a time that the fault names
//	invalid   --> nothing until the user edits the object
func Finish[S any](ctx context.Context, c client.Client, object client.Object, status *S, now S, locked bool, err error) (reconcile.Result, error) {
	if !equality.Semantic.DeepEqual(*status, now) {
		if err := apply.PatchStatus(ctx, c, object, func() { *status = now }, locked); err != nil {
			return reconcile.Result{}, err
		}
	}
	switch f, known := fault.From(err); {
	case fault.Retry(err):
		return reconcile.Result{}, err
	case known && f.Class == fault.Invalid:
		return reconcile.Result{}, reconcile.TerminalError(err)
	default:
		return reconcile.Result{RequeueAfter: fault.Wait(err)}, nil // said in the status
	}
}
