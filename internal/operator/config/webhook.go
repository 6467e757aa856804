package config

import (
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Webhook is how the API server asks the operator before it stores something.
type Webhook struct {
	Enabled bool `json:"enabled,omitempty"`
	// Address is where every replica listens.
	Address string `json:"address,omitempty"`
	// Register has the operator register its webhooks itself once they are
	// served. Without it somebody else has to: the rights of a namespace do not
	// suffice.
	Register bool `json:"register"`
	// Configuration names the ValidatingWebhookConfiguration.
	Configuration string `json:"configuration,omitempty"`
	// Owner is the operator's ClusterRole, with which the registration goes; none
	// if empty.
	Owner string `json:"owner,omitempty"`
	// Service leads to the replicas; Namespace is the operator's own.
	Service   string `json:"service,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// URL is asked instead of the Service, by an API server outside its network.
	URL string `json:"url,omitempty"`
	// FailurePolicy is Fail or Ignore: whether what no replica could judge is
	// refused, or stored and judged by the controllers alone.
	FailurePolicy  string `json:"failurePolicy,omitempty"`
	TimeoutSeconds int32  `json:"timeoutSeconds,omitempty"`
	// ExceptNamespaces are left alone like those in excludedNamespaces.
	ExceptNamespaces []string `json:"exceptNamespaces,omitempty"`
	// Drain is how long a replica that ends goes on answering, until nobody is
	// sent to it any more.
	Drain metav1.Duration `json:"drain,omitzero"`
	// Pod is this replica's name among those behind the Service.
	Pod string `json:"-"`
}

// SystemNamespace is where the operator is installed unless somebody chooses
// otherwise.
const SystemNamespace = "dynamo-system"

// OwnNamespace is where the operator runs, if its pod was told.
func OwnNamespace() string { return os.Getenv("POD_NAMESPACE") }

func (w Webhook) validate(at *field.Path) field.ErrorList {
	if !w.Enabled {
		return nil
	}
	errs := oneOf(at.Child("failurePolicy"), w.FailurePolicy, "Fail", "Ignore")
	errs = append(errs, atLeast(at.Child("drain"), w.Drain, 0)...)
	if w.TimeoutSeconds < 1 || w.TimeoutSeconds > 30 {
		errs = append(errs, field.Invalid(at.Child("timeoutSeconds"), w.TimeoutSeconds, "must be from 1 to 30"))
	}
	if w.Address == "" {
		errs = append(errs, field.Required(at.Child("address"), "webhooks are served somewhere"))
	}
	if w.Namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "the operator's own, or POD_NAMESPACE in its environment"))
	}
	if w.Register && (w.Configuration == "" || w.Service == "" && w.URL == "") {
		errs = append(errs, field.Required(at.Child("configuration"), "a registration has a name and leads to a service"))
	}
	return errs
}
