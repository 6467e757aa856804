// Package controller holds what the reconcilers of all kinds share: how a reconcile
// begins and ends. The reconcilers themselves live in a folder per kind.
package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/namespacescope"
)

// Object is an object of one of our kinds.
type Object = namespacescope.Object

// PatchStatus ends a reconcile: it writes the object's status if that changed, by one
// patch of the difference, and turns the error of the reconcile into what the queue
// does next. status points into object.
//
//	transient --> back-off
//	waiting   --> a watch wakes us, or a time that the fault names
//	invalid   --> nothing until the user edits the object
func PatchStatus[S any](ctx context.Context, c client.Client, object client.Object, status *S, now S, err error, options ...client.MergeFromOption) (reconcile.Result, error) {
	if !equality.Semantic.DeepEqual(*status, now) {
		before := object.DeepCopyObject().(client.Object)
		*status = now
		patchErr := client.IgnoreNotFound(c.Status().Patch(ctx, object, client.MergeFromWithOptions(before, options...), client.FieldValidation(metav1.FieldValidationIgnore)))
		if patchErr != nil {
			return reconcile.Result{}, fmt.Errorf("patch status: %w", patchErr)
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
