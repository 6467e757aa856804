package controller

import (
	"cmp"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/apikind"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
)

// NewController begins the controller of one of our kinds: how its objects stand
// in line is the same for all.
func (d *Deps) NewController(kind client.Object) *ctrl.Builder {
	backoff, workers, fairness := d.Config.Controller.Queue, d.Config.Controller.WorkersOf(KindName(kind)), d.Config.Controller.Fairness
	b := ctrl.NewControllerManagedBy(d).
		For(kind, builder.WithPredicates(IntentChanged())).
		WithOptions(ctrlcontroller.Options{
			// One more than a namespace may have, so that a namespace whose reconciles hang
			// does not have them all.
			MaxConcurrentReconciles: workers + 1,
			RateLimiter:             queue.Backoff(backoff.BaseDelay.Duration, backoff.MaxDelay.Duration, backoff.RetryRate, backoff.RetryBurst),
			NewQueue: d.Watchdog.Queue(KindName(kind), d.Queues.New(queue.Options{
				Depth: depth[KindName(kind)],
				Fairness: queue.Fairness{
					Workers:            workers,
					LowerPriorityEvery: fairness.LowerPriorityEvery,
					Window:             fairness.Window.Duration,
					ObjectBudget:       fairness.ObjectBudget,
					DegradedBudget:     fairness.DegradedBudget,
				},
				Demoted: func(namespace string) { d.Metrics.Demoted(KindName(kind), namespace) },
			})),
		})
	return d.followScope(kind, b)
}

// Guarded puts what all reconciles have in common around a reconciler.
func (d *Deps) Guarded(kind Object, recorder events.EventRecorder, r reconcile.Reconciler) reconcile.Reconciler {
	return d.Watchdog.Watch(KindName(kind), d.Config.Controller.WorkersOf(KindName(kind))+1, d.gate(kind, &Guard{
		Kind: KindName(kind), Do: r,
		Covers: d.Config.Covers, While: d.Scope.Writer.While,
		Metrics: d.Metrics, Tracer: d.Tracer, Causes: d.causesOf(kind),
		Retries: &Retries{
			Max: d.Config.Controller.Queue.MaxRetries, Object: kind, Condition: cmp.Or(apikind.Named(KindName(kind)).Condition, v1alpha1.ConditionReady),
			Client: d.GetClient(), Events: recorder,
		},
	}))
}

// Batched has objects of a kind wait a moment when something around them
// changed, so that changes which come together cost one reconcile.
func (d *Deps) Batched(kind client.Object, h handler.EventHandler) handler.EventHandler {
	return queue.Batch(h, d.Config.Controller.BatchPeriod.Duration, queue.PriorityChild, d.causesOf(kind))
}

// batchedLonger has objects wait longer for changes that only tell more about what
// they already say.
func (d *Deps) batchedLonger(kind client.Object, h handler.EventHandler) handler.EventHandler {
	if queue.LongBatching.Off() {
		return d.Batched(kind, h)
	}
	return queue.Batch(h, 10*d.Config.Controller.BatchPeriod.Duration, queue.PriorityChild, d.causesOf(kind))
}

// batchedByUrgency wakes objects of a kind for changes of their children, the sooner the
// more there is to it.
func (d *Deps) batchedByUrgency(kind client.Object, h handler.EventHandler) handler.EventHandler {
	soon, late := d.Batched(kind, h), d.batchedLonger(kind, h)
	first := queue.Batch(h, d.Config.Controller.BatchPeriod.Duration, queue.PriorityDegraded, d.causesOf(kind))
	return queue.ByUpdate(soon, func(e event.UpdateEvent) handler.EventHandler {
		switch {
		case degraded(e):
			return first
		case readinessChanged(e):
			return soon
		default:
			return late
		}
	})
}

// degraded reports whether a child that nobody changed lost what was available.
func degraded(e event.UpdateEvent) bool {
	if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
		return false
	}
	switch was := e.ObjectOld.(type) {
	case *v1alpha1.DynamoComponentDeployment:
		is := e.ObjectNew.(*v1alpha1.DynamoComponentDeployment)
		return BecameFalse(was.Status.Conditions, is.Status.Conditions, v1alpha1.ConditionAvailable)
	case *appsv1.Deployment:
		return e.ObjectNew.(*appsv1.Deployment).Status.AvailableReplicas < was.Status.AvailableReplicas
	case *lwsv1.LeaderWorkerSet:
		return e.ObjectNew.(*lwsv1.LeaderWorkerSet).Status.ReadyReplicas < was.Status.ReadyReplicas
	default:
		return false
	}
}

// readinessChanged reports whether a child became ready, stopped being it or was changed
// by somebody, as against on its way from one to the other.
func readinessChanged(e event.UpdateEvent) bool {
	if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
		return true
	}
	switch was := e.ObjectOld.(type) {
	case *v1alpha1.DynamoComponentDeployment:
		is := e.ObjectNew.(*v1alpha1.DynamoComponentDeployment)
		return meta.IsStatusConditionTrue(was.Status.Conditions, v1alpha1.ConditionAvailable) != meta.IsStatusConditionTrue(is.Status.Conditions, v1alpha1.ConditionAvailable)
	case *appsv1.Deployment:
		is := e.ObjectNew.(*appsv1.Deployment)
		return was.Status.ReadyReplicas != is.Status.ReadyReplicas || was.Status.AvailableReplicas != is.Status.AvailableReplicas
	default:
		return true
	}
}

// causesOf remembers what wakes the objects of a kind, if traces tell of it.
func (d *Deps) causesOf(kind client.Object) *queue.Causes {
	if d.Config.Tracing.Endpoint == "" {
		return nil
	}
	name := KindName(kind)
	if d.causes == nil {
		d.causes = map[string]*queue.Causes{}
	}
	if d.causes[name] == nil {
		d.causes[name] = &queue.Causes{}
	}
	return d.causes[name]
}

// NewStatusThrottle waits for children as long as for what only tells more about them.
func (d *Deps) NewStatusThrottle() *StatusThrottle {
	return &StatusThrottle{Period: 10 * d.Config.Controller.BatchPeriod.Duration, UserWorkPending: d.Queues.UserWorkPending}
}

// KindName is the name of one of our kinds.
func KindName(kind client.Object) string { return reflect.TypeOf(kind).Elem().Name() }

// ControllerDefaults are what the controllers of all kinds have in common.
func ControllerDefaults(cfg config.Config) ctrlconfig.Controller {
	return ctrlconfig.Controller{
		MaxConcurrentReconciles: cfg.Controller.Workers,
		ReconciliationTimeout:   cfg.Controller.Timeout.Duration,
		// A replica that does not lead follows the cluster, so that it can take
		// over at once.
		EnableWarmup: new(true),
	}
}

// depth is how many owners the objects of a kind usually have above them.
var depth = map[string]int{v1alpha1.KindDynamoComponentDeployment: 1}
