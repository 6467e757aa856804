package operator

import (
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
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/controller"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/queue"
)

// controllerOf begins the controller of one of our kinds: how its objects stand
// in line is the same for all.
func (p *deps) controllerOf(kind client.Object) *ctrl.Builder {
	backoff, workers, fairness := p.config.Controller.Queue, p.config.Controller.WorkersOf(nameOf(kind)), p.config.Controller.Fairness
	b := ctrl.NewControllerManagedBy(p).
		For(kind, builder.WithPredicates(intent())).
		WithOptions(ctrlcontroller.Options{
			// One more than a namespace may have, so that a namespace whose passes hang
			// does not have them all.
			MaxConcurrentReconciles: workers + 1,
			RateLimiter:             queue.Backoff(backoff.BaseDelay.Duration, backoff.MaxDelay.Duration),
			NewQueue: p.watchdog.Queue(nameOf(kind), p.queues.New(queue.Options{
				Depth: depth[nameOf(kind)],
				Fairness: queue.Fairness{
					Workers:            workers,
					LowerPriorityEvery: fairness.LowerPriorityEvery,
					Window:             fairness.Window.Duration,
					ObjectBudget:       fairness.ObjectBudget,
					DegradedBudget:     fairness.DegradedBudget,
				},
				Demoted: func(namespace string) { p.metrics.Demoted(nameOf(kind), namespace) },
			})),
		})
	return p.followScope(kind, b)
}

// guarded puts what all passes have in common around a reconciler.
func (p *deps) guarded(kind client.Object, recorder events.EventRecorder, r reconcile.Reconciler) reconcile.Reconciler {
	return p.watchdog.Watch(nameOf(kind), p.config.Controller.WorkersOf(nameOf(kind))+1, p.gate(kind, &controller.Guard{
		Kind: nameOf(kind), Do: r,
		Covers: p.config.Covers, While: p.scope.writer.While,
		Metrics: p.metrics, Tracer: p.tracer, Causes: p.causesOf(kind),
		Retries: &controller.Retries{
			Max: p.config.Controller.Queue.MaxRetries, Object: kind, Condition: readyCondition[nameOf(kind)],
			Client: p.GetClient(), Events: recorder,
		},
	}))
}

// batched has objects of a kind wait a moment when something around them
// changed, so that changes which come together cost one pass.
func (p *deps) batched(kind client.Object, h handler.EventHandler) handler.EventHandler {
	return queue.Batch(h, p.config.Controller.BatchPeriod.Duration, queue.PriorityChild, p.causesOf(kind))
}

// batchedLonger has objects wait longer for changes that only tell more about what
// they already say.
func (p *deps) batchedLonger(kind client.Object, h handler.EventHandler) handler.EventHandler {
	return queue.Batch(h, 10*p.config.Controller.BatchPeriod.Duration, queue.PriorityChild, p.causesOf(kind))
}

// batchedByUrgency wakes objects of a kind for changes of their children, the sooner the
// more there is to it.
func (p *deps) batchedByUrgency(kind client.Object, h handler.EventHandler) handler.EventHandler {
	soon, late := p.batched(kind, h), p.batchedLonger(kind, h)
	first := queue.Batch(h, p.config.Controller.BatchPeriod.Duration, queue.PriorityDegraded, p.causesOf(kind))
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
		return controller.BecameFalse(was.Status.Conditions, is.Status.Conditions, v1alpha1.ConditionAvailable)
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
func (p *deps) causesOf(kind client.Object) *queue.Causes {
	if p.config.Tracing.Endpoint == "" {
		return nil
	}
	name := nameOf(kind)
	if p.causes[name] == nil {
		p.causes[name] = &queue.Causes{}
	}
	return p.causes[name]
}

// statusThrottle waits for children as long as for what only tells more about them.
func (p *deps) statusThrottle() *controller.StatusThrottle {
	return &controller.StatusThrottle{Period: 10 * p.config.Controller.BatchPeriod.Duration, UserWorkPending: p.queues.UserWorkPending}
}

// nameOf is the name of one of our kinds.
func nameOf(kind client.Object) string { return reflect.TypeOf(kind).Elem().Name() }

func controllerDefaults(cfg config.Config) ctrlconfig.Controller {
	return ctrlconfig.Controller{
		MaxConcurrentReconciles: cfg.Controller.Workers,
		ReconciliationTimeout:   cfg.Controller.Timeout.Duration,
		// A replica that does not lead follows the cluster, so that it can take
		// over at once.
		EnableWarmup: new(true),
	}
}

// readyCondition is the condition of each kind that tells whether an object is well.
var readyCondition = map[string]string{
	v1alpha1.KindDynamoGraphDeployment:               v1alpha1.ConditionReady,
	v1alpha1.KindDynamoComponentDeployment:           v1alpha1.ConditionAvailable,
	v1alpha1.KindDynamoGraphDeploymentScalingAdapter: v1alpha1.ConditionActive,
	v1alpha1.KindDynamoModel:                         v1alpha1.ConditionEndpointsReady,
	v1alpha1.KindDynamoGraphDeploymentRequest:        v1alpha1.ConditionValidation,
}

// depth is how many owners the objects of a kind usually have above them.
var depth = map[string]int{v1alpha1.KindDynamoComponentDeployment: 1}
