package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/apikind"
)

// Controller tunes the reconcilers.
type Controller struct {
	// Workers is the number of objects of one kind that are worked on at once for
	// one namespace; one more worker is left to others. While several namespaces
	// wait, they share them.
	Workers int `json:"workers,omitempty"`
	// WorkersPerKind overrides it for single kinds.
	WorkersPerKind map[string]int `json:"workersPerKind,omitempty"`
	// QPS and Burst bound the requests to the API server.
	QPS   float32 `json:"qps,omitempty"`
	Burst int     `json:"burst,omitempty"`
	// Timeout ends a reconcile over one object that hangs.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// BatchPeriod is how long changes of an object's children are gathered before
	// the object is looked at again.
	BatchPeriod metav1.Duration `json:"batchPeriod,omitzero"`
	// Resync is how often every object is reconciled without a change.
	Resync metav1.Duration `json:"resync,omitzero"`
	Queue  Queue           `json:"queue,omitzero"`
	// Watchdog has the liveness probe fail when a controller no longer works.
	Watchdog Watchdog `json:"watchdog,omitzero"`
	// Fairness keeps namespaces and objects from delaying others.
	Fairness Fairness `json:"fairness,omitzero"`
}

// Watchdog is when a controller counts as one that no longer works.
type Watchdog struct {
	// Stuck is how long after its deadline a reconcile counts as stuck; the probe fails
	// when all workers of a kind are. 0 turns it off.
	Stuck metav1.Duration `json:"stuck,omitzero"`
	// Idle is how long objects may be ready in a queue while no reconcile of their kind
	// begins or ends. 0 turns it off.
	Idle metav1.Duration `json:"idle,omitzero"`
}

// Fairness is how reconciles are shared among namespaces and objects.
type Fairness struct {
	// LowerPriorityEvery is after how many reconciles one of a lower priority
	// comes, if any waits.
	LowerPriorityEvery int `json:"lowerPriorityEvery,omitempty"`
	// Window is the time that the budgets are for.
	Window metav1.Duration `json:"window,omitzero"`
	// ObjectBudget is how many reconciles of one object in a window, for what users
	// change of it, are ahead of child events.
	ObjectBudget int `json:"objectBudget,omitempty"`
	// DegradedBudget is how many falls of running services in one namespace in a window
	// are ahead of what users change.
	DegradedBudget int `json:"degradedBudget,omitempty"`
}

// Queue is about objects whose reconcile failed.
type Queue struct {
	// BaseDelay is the wait after the first failure; it doubles up to MaxDelay.
	BaseDelay metav1.Duration `json:"baseDelay,omitzero"`
	MaxDelay  metav1.Duration `json:"maxDelay,omitzero"`
	// MaxRetries is after how many failures in a row an object is left alone
	// until it changes; 0 means never.
	MaxRetries int `json:"maxRetries,omitempty"`
	// RetryRate is how many retries a second the objects of one kind and namespace
	// have together, after a burst of RetryBurst; 0 means without limit.
	RetryRate  float64 `json:"retryRate,omitempty"`
	RetryBurst int     `json:"retryBurst,omitempty"`
}

// WorkersOf is the number of objects of a kind that are worked on at once.
func (c Controller) WorkersOf(kind string) int {
	return cmp.Or(c.WorkersPerKind[kind], c.Workers)
}

func (c Controller) validate(at *field.Path) field.ErrorList {
	errs := atLeastN(at.Child("workers"), c.Workers, 1)
	for _, kind := range slices.Sorted(maps.Keys(c.WorkersPerKind)) {
		perKind := at.Child("workersPerKind")
		errs = append(errs, oneOf(perKind, kind, apikind.Names()...)...)
		errs = append(errs, atLeastN(perKind.Key(kind), c.WorkersPerKind[kind], 1)...)
	}
	if c.QPS <= 0 || c.Burst < 1 {
		errs = append(errs, field.Invalid(at.Child("qps"), c.QPS, "qps and burst must be positive"))
	}
	errs = append(errs, atLeast(at.Child("timeout"), c.Timeout, time.Second)...)
	errs = append(errs, atLeast(at.Child("batchPeriod"), c.BatchPeriod, 0)...)
	errs = append(errs, atLeast(at.Child("resync"), c.Resync, time.Minute)...)
	errs = append(errs, atLeast(at.Child("watchdog", "stuck"), c.Watchdog.Stuck, 0)...)
	errs = append(errs, atLeast(at.Child("watchdog", "idle"), c.Watchdog.Idle, 0)...)
	errs = append(errs, c.Fairness.validate(at.Child("fairness"))...)
	return append(errs, c.Queue.validate(at.Child("queue"))...)
}

func (f Fairness) validate(at *field.Path) field.ErrorList {
	errs := atLeastN(at.Child("lowerPriorityEvery"), f.LowerPriorityEvery, 2)
	errs = append(errs, atLeastN(at.Child("objectBudget"), f.ObjectBudget, 1)...)
	errs = append(errs, atLeastN(at.Child("degradedBudget"), f.DegradedBudget, 1)...)
	return append(errs, atLeast(at.Child("window"), f.Window, time.Second)...)
}

func (q Queue) validate(at *field.Path) field.ErrorList {
	errs := atLeast(at.Child("baseDelay"), q.BaseDelay, time.Millisecond)
	if q.MaxDelay.Duration < q.BaseDelay.Duration {
		errs = append(errs, field.Invalid(at.Child("maxDelay"), q.MaxDelay.Duration.String(), "must not be less than baseDelay"))
	}
	if q.RetryRate < 0 {
		errs = append(errs, field.Invalid(at.Child("retryRate"), q.RetryRate, "must not be negative"))
	}
	if q.RetryRate > 0 && q.RetryBurst < 1 {
		errs = append(errs, field.Invalid(at.Child("retryBurst"), q.RetryBurst, "must be positive where retries are limited"))
	}
	if q.MaxRetries < 0 {
		errs = append(errs, field.Invalid(at.Child("maxRetries"), q.MaxRetries, "must not be negative"))
	}
	return errs
}
