package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/fault"
)

const (
	farewellRetry = 5 * time.Second
	// farewellTry bounds one try over all trees, so that a store which keeps
	// silent leaves a pass the time to release the object.
	farewellTry = 20 * time.Second
)

// Trees is a store that graphs keep keys in, outside the cluster.
type Trees interface {
	DeleteTree(ctx context.Context, key string) (int64, error)
}

// Farewell takes what an object has left in a store away before the object
// goes. Only objects that use the store are held, and none for ever.
//
//	uses the store --> held --deleted--> keys removed, or the limit is over --> released
type Farewell struct {
	// Store is nil when the operator knows of none.
	Store Trees
	// Limit is how long a deletion is held up. What is left in the store after
	// that harms nobody for long: engines renew what they say of themselves.
	Limit   time.Duration
	Applier *apply.Applier
	Events  events.EventRecorder
	Clock   clock.PassiveClock
}

// Promise holds an object that has trees in the store and releases any other:
// earlier operators held them all.
func (f Farewell) Promise(ctx context.Context, object client.Object, trees []string) error {
	if f.Store == nil || len(trees) == 0 {
		return f.Applier.Release(ctx, object, v1alpha1.Finalizer)
	}
	return f.Applier.Hold(ctx, object, v1alpha1.Finalizer)
}

// Keep does what was promised for an object that is being deleted. It returns
// how long to wait before the next try and a fault that says why; both are empty
// when nothing holds the object any more.
func (f Farewell) Keep(ctx context.Context, object client.Object, trees []string) (time.Duration, error) {
	if !slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
		return 0, nil
	}
	err := f.clear(ctx, trees)
	limit := object.GetDeletionTimestamp().Add(f.Limit)
	left := limit.Sub(f.Clock.Now())
	if err != nil && left > 0 {
		return min(left, farewellRetry), fault.New(fault.Waiting, v1alpha1.ReasonFinalizerFailed,
			"keys are still in the store, given up at %s: %s", limit.UTC().Format(time.RFC3339), err)
	}
	if err != nil {
		f.Events.Eventf(object, nil, corev1.EventTypeWarning, "KeysLeft", "Delete", "Deleted without removing its keys: %s", err)
	}
	return 0, f.Applier.Release(ctx, object, v1alpha1.Finalizer)
}

func (f Farewell) clear(ctx context.Context, trees []string) error {
	if f.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, farewellTry)
	defer cancel()
	var errs []error
	for _, tree := range trees {
		_, err := f.Store.DeleteTree(ctx, tree)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
