package operator

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/apikind"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

// setupInventory exports how many objects there are in which state, and how long
// graphs take to become ready.
func setupInventory(ctx context.Context, d *controller.Deps) error {
	d.Metrics.RegisterInventory(func() ([]metric.Object, bool) { return inventoryOf(d) })
	informer, err := d.GetCache().GetInformer(ctx, &v1alpha1.DynamoGraphDeployment{})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, is := before.(*v1alpha1.DynamoGraphDeployment), after.(*v1alpha1.DynamoGraphDeployment)
		if took, became := becameReady(was, is, time.Now()); became && leads(d) {
			d.Metrics.GraphReady(is.Namespace, took)
		}
		if reason, took, ended := rolloutEnded(was.Status.Rollout, is.Status.Rollout); ended && leads(d) {
			d.Metrics.RolloutEnded(is.Namespace, reason, took)
		}
	}})
	return err
}

// becameReady tells how long a graph was not ready, when it has just become so.
func becameReady(was, is *v1alpha1.DynamoGraphDeployment, now time.Time) (time.Duration, bool) {
	before := meta.FindStatusCondition(was.Status.Conditions, v1alpha1.ConditionReady)
	if !meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.ConditionReady) || (before != nil && before.Status == metav1.ConditionTrue) {
		return 0, false
	}
	since := is.CreationTimestamp.Time
	if before != nil && was.Status.State != "" && before.LastTransitionTime.After(since.Add(time.Second)) {
		since = before.LastTransitionTime.Time
	}
	return now.Sub(since), true
}

// rolloutEnded tells how long a rollout took that has just ended, and why it was given up
// if it was.
func rolloutEnded(was, is *v1alpha1.RolloutStatus) (reason string, took time.Duration, ended bool) {
	if was == nil || is == nil || generation.Phase(was.Phase).Ended() || !generation.Phase(is.Phase).Ended() {
		return "", 0, false
	}
	if is.StartedAt != nil && is.ProgressedAt != nil {
		took = is.ProgressedAt.Sub(is.StartedAt.Time)
	}
	if generation.Phase(is.Phase) == generation.PhaseAborted {
		reason = is.Reason
	}
	return reason, took, true
}

// rolloutOf is what is counted of a graph's rollout; nil if there was none. What serves is
// only known of one that is under way.
func rolloutOf(st *v1alpha1.RolloutStatus) *metric.Rollout {
	if st == nil {
		return nil
	}
	r := &metric.Rollout{Phase: generation.Phase(st.Phase)}
	if r.Phase.Ended() {
		return r
	}
	for _, name := range slices.Sorted(maps.Keys(st.Roles)) {
		r.Roles = append(r.Roles, metric.Role{Service: name, Effective: st.Roles[name].Effective, Floor: st.Roles[name].Floor})
	}
	return r
}

// leads reports whether this replica is the one that works.
func leads(mgr manager.Manager) bool {
	select {
	case <-mgr.Elected():
		return true
	default:
		return false
	}
}

// inventoryOf lists all objects of our kinds, if this replica leads.
func inventoryOf(d *controller.Deps) (objects []metric.Object, ok bool) {
	if !leads(d) {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, kind := range apikind.All {
		list := d.ListOf(kind.New())
		if err := d.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, false
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			if d.Config.Covers(object.GetNamespace()) {
				objects = append(objects, countable(object))
			}
			return nil
		})
		if err != nil {
			return nil, false
		}
	}
	return objects, true
}

// countable says of an object what is counted of it. A graph or component whose
// spec changed is not ready until a status has been written for that spec: what is
// told of the one before says nothing about it.
func countable(object client.Object) metric.Object {
	o := metric.Object{Kind: controller.KindName(object), Namespace: object.GetNamespace(), Name: object.GetName(), Status: "unknown"}
	switch object := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		current := object.Status.ObservedGeneration == object.Generation
		o.Rollout = rolloutOf(object.Status.Rollout)
		o.Ready = current && meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case object.Status.State == v1alpha1.GraphStateSuccessful && !current:
			o.Status = string(v1alpha1.GraphStatePending) // that was another spec
		case object.Status.State != "":
			o.Status = string(object.Status.State)
		}
	case *v1alpha1.DynamoGraphDeploymentRequest:
		if object.Status.State != "" {
			o.Status = string(object.Status.State)
		}
	case *v1alpha1.DynamoComponentDeployment:
		current := object.Status.ObservedGeneration == object.Generation
		o.Status = readiness(current && meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionAvailable))
	case *v1alpha1.DynamoModel:
		o.Status = readiness(object.Status.TotalEndpoints > 0 && object.Status.ReadyEndpoints == object.Status.TotalEndpoints)
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		o.Status = readiness(object.Status.Selector != "" && object.Status.Replicas > 0)
	}
	return o
}

func readiness(ready bool) string {
	if ready {
		return "ready"
	}
	return "not_ready"
}
