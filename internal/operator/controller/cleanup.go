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
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	guards "github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

const (
	cleanupRetryPeriod = 5 * time.Second
	// cleanupTimeout bounds one try over all places, so that a store which keeps
	// silent leaves a reconcile the time to release the object.
	cleanupTimeout = 20 * time.Second
)

// KeyStore is a store that instances register in, outside the cluster.
type KeyStore interface {
	// DeleteLeft removes what instances of a service have left there. What a
	// living lease holds is not left: it goes with the instance.
	DeleteLeft(ctx context.Context, dynamoNamespace, service string) (int64, error)
}

// Others tells whether somebody else's instances register at the same place.
type Others interface {
	Shared(ctx context.Context, at graph.Registration) (bool, error)
}

// Cleanup takes what an object has left in a store away before the object
// goes. Only objects that use the store are held, or that have volume claims, and
// none for ever.
//
//	uses the store --> held --deleted--> keys removed, or the limit is over --> released
type Cleanup struct {
	// Store is nil when the operator knows of none.
	Store KeyStore
	// Others is asked before anything is removed. What is shared stays.
	Others Others
	// Limit is how long a deletion is held up. What is left in the store after
	// that harms nobody for long: engines renew what they say of themselves.
	Limit   time.Duration
	Applier *apply.Applier
	Events  events.EventRecorder
	Clock   clock.PassiveClock
	// Began is when deletions were first seen. The limit counts from then: the
	// object's own time is of the API server's clock.
	Began *FirstSeen
}

// Needed reports whether an object whose instances register at some places is held
// until they are cleared.
func (f Cleanup) Needed(at []graph.Registration) bool { return f.Store != nil && len(at) > 0 }

// Finalize does what was promised for an object that is being deleted. It returns
// how long to wait before the next try and a fault that says why; both are empty
// when nothing holds the object any more.
func (f Cleanup) Finalize(ctx context.Context, object client.Object, at []graph.Registration) (time.Duration, error) {
	if !slices.Contains(object.GetFinalizers(), v1alpha1.Finalizer) {
		return 0, nil
	}
	err := f.deleteKeys(ctx, at)
	now := f.Clock.Now()
	left := f.Limit - now.Sub(f.Began.Time(object.GetUID(), now))
	if err != nil && left > 0 {
		return min(left, cleanupRetryPeriod), fault.New(fault.Waiting, v1alpha1.ReasonFinalizerFailed,
			"keys are still in the store, given up at %s: %s", now.Add(left).UTC().Format(time.RFC3339), err)
	}
	if err != nil {
		f.Events.Eventf(object, nil, corev1.EventTypeWarning, "KeysLeft", "Delete", "Deleted without removing its keys: %s", err)
	}
	if err := f.Applier.Release(ctx, object); err != nil {
		return 0, err
	}
	f.Began.Forget(object.GetUID())
	return 0, nil
}

// deleteKeys removes what is left at places that are nobody else's.
func (f Cleanup) deleteKeys(ctx context.Context, places []graph.Registration) error {
	if f.Store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	var errs []error
	for _, at := range places {
		shared, err := f.Others.Shared(ctx, at)
		if err == nil && (!shared || guards.OwnKeys.Off()) {
			_, err = f.Store.DeleteLeft(ctx, at.DynamoNamespace, at.Service)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
