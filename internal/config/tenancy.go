package config

import (
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Tenancy is how operators share a cluster.
type Tenancy struct {
	// Claim has an operator for single namespaces say so, by a Lease in each,
	// and has one for the whole cluster leave such namespaces alone and hold a Lease
	// of its own. An operator works on what it holds alone.
	Claim bool `json:"claim"`
	// Duration is how long a claim holds that is not renewed, Renew how often it
	// is.
	Duration metav1.Duration `json:"duration,omitzero"`
	Renew    metav1.Duration `json:"renew,omitzero"`
	// ClusterNamespace holds the Lease of the operator for the whole cluster. All of
	// them look there, so that there is one.
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
	// Discovery is how often an operator for single namespaces, which may not
	// watch definitions, looks for optional APIs.
	Discovery metav1.Duration `json:"discovery,omitzero"`
}

func defaultTenancy() Tenancy {
	return Tenancy{
		Claim:            true,
		Duration:         metav1.Duration{Duration: 30 * time.Second},
		Renew:            metav1.Duration{Duration: 10 * time.Second},
		ClusterNamespace: metav1.NamespaceSystem,
		Discovery:        metav1.Duration{Duration: 30 * time.Second},
	}
}

func (t Tenancy) validate(at *field.Path) field.ErrorList {
	errs := atLeast(at.Child("renew"), t.Renew, time.Second)
	errs = append(errs, atLeast(at.Child("discovery"), t.Discovery, time.Second)...)
	for _, problem := range validation.ValidateNamespaceName(t.ClusterNamespace, false) {
		errs = append(errs, field.Invalid(at.Child("clusterNamespace"), t.ClusterNamespace, problem))
	}
	return append(errs, atLeast(at.Child("duration"), t.Duration, 2*t.Renew.Duration)...)
}
