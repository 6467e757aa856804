package controller

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
)

// Steps are what a reconcile over an object of a kind T consists of. S is what was
// seen, D what was decided.
type Steps[T Object, S, D any] struct {
	// Finalize undoes what has to be undone before a deleted object goes. Without it
	// the garbage collector does it all.
	Finalize func(context.Context, T) (reconcile.Result, error)
	// Observe reads everything that is decided from.
	Observe func(context.Context, T) (S, error)
	// Decide touches nothing.
	Decide func(T, S) D
	// Apply carries out what was decided. Without it there is only to report.
	Apply func(context.Context, T, D) (apply.ChangeSet, error)
	// Report says in the status what was seen before the writes, and what came of
	// them: the watch on what was written brings the next truth.
	Report func(context.Context, T, Outcome[S, D]) (reconcile.Result, error)
}

// Outcome is what a reconcile has come to.
type Outcome[S, D any] struct {
	Seen    S
	Decided D
	Changes apply.ChangeSet
	// Err is why not everything that was decided was written.
	Err error
}

// informerDelay is how long an informer usually is behind at most.
const informerDelay = 100 * time.Millisecond

// Run is the life of an object of ours, one reconcile at a time:
//
//	created --> observe, decide, apply, report --> ... --deleted--> finalize
//
// A read that fails is said by the log: what the status says is still true. Nothing
// is said of an object that is found to go, or to be another than was decided about.
func Run[T Object, S, D any](ctx context.Context, object T, do Steps[T, S, D]) (reconcile.Result, error) {
	if object.GetDeletionTimestamp() != nil {
		if do.Finalize == nil {
			return reconcile.Result{}, nil
		}
		return do.Finalize(ctx, object)
	}
	seen, err := do.Observe(ctx, object)
	if err != nil {
		return reconcile.Result{}, err
	}
	o := Outcome[S, D]{Seen: seen, Decided: do.Decide(object, seen)}
	if do.Apply != nil {
		o.Changes, o.Err = do.Apply(ctx, object, o.Decided)
	}
	switch {
	case apply.OwnerDeleted(o.Err):
		return reconcile.Result{}, nil
	case errors.Is(o.Err, apply.ErrOwnerChanged):
		return reconcile.Result{RequeueAfter: informerDelay}, nil
	}
	return do.Report(ctx, object, o)
}
