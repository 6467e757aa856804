package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/render"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
)

// Profiler is how requests for graphs are answered.
type Profiler struct {
	// Image is the profiler of ours. Requests that name it are answered by it;
	// beside profilers of others it collects what they leave.
	Image string `json:"image,omitempty"`
	// DefaultImage is the profiler of requests of v1beta1 that name none; Image
	// without it.
	DefaultImage string `json:"defaultImage,omitempty"`
	// Role is the ClusterRole that profilers of a namespace are bound to; an
	// empty name leaves that to the installation.
	Role string `json:"role,omitempty"`
	// Deadline is how long profiling may take unless a request says otherwise.
	Deadline metav1.Duration `json:"deadline,omitzero"`
}

func (p Profiler) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Image == "" {
		errs = append(errs, field.Required(at.Child("image"), "no request can be answered without it"))
	}
	if p.Deadline.Duration < time.Second {
		errs = append(errs, field.Invalid(at.Child("deadline"), p.Deadline.String(), "must be a second or more"))
	}
	return errs
}

// Requests is what the configuration says about requests.
func (c Config) Requests() requestplan.Policy {
	return requestplan.Policy{
		Image: c.Profiler.Image, DefaultImage: c.Profiler.DefaultImage, Deadline: c.Profiler.Deadline.Duration,
		Scope: c.Rules(), Accounts: []string{pod.PlannerAccount, pod.PickerAccount},
	}
}

// Profiling is what the configuration says about profilers.
func (c Config) Profiling() render.Profiling {
	return render.Profiling{Image: c.Profiler.Image, Role: c.Profiler.Role, NATS: c.Endpoints.NATS, Etcd: c.Endpoints.Etcd}
}
