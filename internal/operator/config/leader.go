package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Leader is about running several replicas of the operator: one works, the
// others are ready to.
type Leader struct {
	Enabled bool `json:"enabled,omitempty"`
	// ID and Namespace name the lease; without a namespace it is in the
	// operator's own.
	ID        string `json:"id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// LeaseDuration is how long a leader that died without a word keeps others
	// waiting.
	LeaseDuration metav1.Duration `json:"leaseDuration,omitzero"`
	// RenewDeadline is how long a leader that cannot renew goes on.
	RenewDeadline metav1.Duration `json:"renewDeadline,omitzero"`
	// RetryPeriod is how often the Lease is read.
	RetryPeriod metav1.Duration `json:"retryPeriod,omitzero"`
	// ReleaseOnStop gives the lease back at shutdown, so that another takes
	// over at once.
	ReleaseOnStop bool `json:"releaseOnStop"`
}

func (l Leader) validate(at *field.Path) field.ErrorList {
	if !l.Enabled {
		return nil
	}
	var errs field.ErrorList
	if l.ID == "" {
		errs = append(errs, field.Required(at.Child("id"), "replicas find each other by it"))
	}
	if l.LeaseDuration.Duration <= l.RenewDeadline.Duration {
		errs = append(errs, field.Invalid(at.Child("leaseDuration"), l.LeaseDuration.Duration.String(), "must be more than renewDeadline"))
	}
	// The election looks with a jitter of a fifth on top.
	if l.RetryPeriod.Duration <= 0 || l.RenewDeadline.Duration <= l.RetryPeriod.Duration*6/5 {
		errs = append(errs, field.Invalid(at.Child("retryPeriod"), l.RetryPeriod.Duration.String(), "must be positive and, with a fifth more, less than renewDeadline"))
	}
	return errs
}

// Shutdown is how the operator ends.
type Shutdown struct {
	// Drain is how long what is queued is still worked off.
	Drain metav1.Duration `json:"drain,omitzero"`
	// Grace is how long reconciles that have begun are waited for after that.
	Grace metav1.Duration `json:"grace,omitzero"`
}

// What has a limit of its own at the end.
const (
	// AnswerTimeout is for the last requests of the API server to webhooks.
	AnswerTimeout = 5 * time.Second
	// ReleaseTimeout is for giving Leases back.
	ReleaseTimeout = 3 * time.Second
	// FlushTimeout is for the last traces.
	FlushTimeout = 2 * time.Second
)

// Stop is how long the manager waits for all that it runs: reconciles end when their
// grace does, and a moment later they are gone.
func (s Shutdown) Stop() time.Duration { return s.Grace.Duration + time.Second }

// Longest is how long the operator takes from SIGTERM to its end at most. The pod's
// terminationGracePeriodSeconds has to be more.
func (c Config) Longest() time.Duration {
	stop := c.Shutdown.Stop() + 2*ReleaseTimeout
	if c.Webhook.Enabled {
		stop = max(stop, c.Webhook.Drain.Duration+AnswerTimeout)
	}
	return c.Shutdown.Drain.Duration + stop + FlushTimeout
}

func (s Shutdown) validate(at *field.Path) field.ErrorList {
	return append(atLeast(at.Child("drain"), s.Drain, 0), atLeast(at.Child("grace"), s.Grace, 0)...)
}
