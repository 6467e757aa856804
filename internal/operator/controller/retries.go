package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Retries bounds the failures in a row of one object. After the last the object
// says so and is left alone until it, or something around it, changes.
type Retries struct {
	// Max is the number of failures; 0 means without end.
	Max int
	// Object is an empty object of the kind, Condition the one that tells
	// whether it is well.
	Object    Object
	Condition string
	Client    client.Client
	Events    events.EventRecorder

	mu     sync.Mutex
	failed map[reconcile.Request]int
}

// Exhausted counts how a reconcile ended and reports whether this was the failure
// too many.
func (r *Retries) Exhausted(request reconcile.Request, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Max == 0 || err == nil || errors.Is(err, reconcile.TerminalError(nil)) {
		delete(r.failed, request)
		return false
	}
	if r.failed == nil {
		r.failed = map[reconcile.Request]int{}
	}
	r.failed[request]++
	if r.failed[request] < r.Max {
		return false
	}
	delete(r.failed, request)
	return true
}

// GiveUp tells about it, by an event and by the object's condition.
func (r *Retries) GiveUp(ctx context.Context, request reconcile.Request, why error) error {
	// A reconcile that hung has no time left of its own.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	message := fmt.Sprintf("gave up after %d failures, until something changes: %s", r.Max, why)
	object := r.Object.DeepCopyObject().(Object)
	err := r.Client.Get(ctx, request.NamespacedName, object)
	if err == nil {
		r.Events.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonRetriesExhausted, "Reconcile", "%s", message)
		err = r.say(ctx, object, message)
	}
	if client.IgnoreNotFound(err) != nil {
		why = errors.Join(why, fmt.Errorf("say so in its status: %w", err))
	}
	return reconcile.TerminalError(why)
}

func (r *Retries) say(ctx context.Context, object Object, message string) error {
	conditions := slices.Clone(object.GetConditions())
	changed := meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: r.Condition, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRetriesExhausted,
		Message: sanitise.Text(message), ObservedGeneration: object.GetGeneration(),
	})
	if !changed {
		return nil
	}
	return apply.PatchStatus(ctx, r.Client, object, func() { object.SetConditions(conditions) }, false)
}
