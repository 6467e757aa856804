package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/cluster/lora"
	"github.com/dynamo-operator/dynamo-operator/internal/core/loraplan"
)

// LoRA tunes the calls that load adapters into engines.
type LoRA struct {
	// Parallel is how many engines are called at once.
	Parallel int `json:"parallel,omitempty"`
	// SlowParallel is how many calls may have taken longer than a second at once;
	// they do not count among the others. One namespace has at most half of them.
	SlowParallel int `json:"slowParallel,omitempty"`
	// Timeout bounds one call.
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// RetryMin and RetryMax are the first and the longest wait after a failure.
	RetryMin metav1.Duration `json:"retryMin,omitzero"`
	RetryMax metav1.Duration `json:"retryMax,omitzero"`
	// Recheck is how often engines are asked what they hold, to load again what
	// somebody else has unloaded.
	Recheck metav1.Duration `json:"recheck,omitzero"`
	// UnloadDeadline is how long the deletion of a model waits for engines.
	UnloadDeadline metav1.Duration `json:"unloadDeadline,omitzero"`
}

func (l LoRA) validate(at *field.Path) field.ErrorList {
	errs := append(atLeastN(at.Child("parallel"), l.Parallel, 1), atLeastN(at.Child("slowParallel"), l.SlowParallel, 1)...)
	for _, wait := range []struct {
		name  string
		value metav1.Duration
	}{{"timeout", l.Timeout}, {"retryMin", l.RetryMin}, {"retryMax", l.RetryMax}, {"recheck", l.Recheck}, {"unloadDeadline", l.UnloadDeadline}} {
		if wait.value.Duration <= 0 {
			errs = append(errs, field.Invalid(at.Child(wait.name), wait.value.Duration.String(), "must be positive"))
		}
	}
	return errs
}

// Limits are the bounds in the form that calls are made with.
func (l LoRA) Limits() lora.Limits {
	return lora.Limits{Quick: l.Parallel, Slow: l.SlowParallel, SlowAfter: time.Second, Timeout: l.Timeout.Duration}
}

// Backoff is how long an engine that failed is left alone.
func (l LoRA) Backoff() loraplan.Backoff {
	return loraplan.Backoff{First: l.RetryMin.Duration, Most: l.RetryMax.Duration}
}
