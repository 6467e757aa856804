package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Tenancy is how operators share a cluster.
type Tenancy struct {
	// Claim has an operator for single namespaces say so, by a Lease in each,
	// and has one for the whole cluster leave such namespaces alone.
	Claim bool `json:"claim"`
	// Duration is how long a claim holds that is not renewed, Renew how often it
	// is.
	Duration metav1.Duration `json:"duration,omitzero"`
	Renew    metav1.Duration `json:"renew,omitzero"`
	// Discovery is how often an operator for single namespaces, which may not
	// watch definitions, looks for optional APIs.
	Discovery metav1.Duration `json:"discovery,omitzero"`
	// RequestPolicy names the ValidatingAdmissionPolicy that judges who makes
	// requests, and its binding. While it is not in force, requests get nothing in
	// other namespaces.
	RequestPolicy string `json:"requestPolicy,omitempty"`
}

func defaultTenancy() Tenancy {
	return Tenancy{
		Claim:     true,
		Duration:  metav1.Duration{Duration: 30 * time.Second},
		Renew:     metav1.Duration{Duration: 10 * time.Second},
		Discovery: metav1.Duration{Duration: 30 * time.Second},

		RequestPolicy: "dynamo-operator-request-namespace",
	}
}

func (t Tenancy) validate(at *field.Path) field.ErrorList {
	errs := atLeast(at.Child("renew"), t.Renew, time.Second)
	errs = append(errs, atLeast(at.Child("discovery"), t.Discovery, time.Second)...)
	return append(errs, atLeast(at.Child("duration"), t.Duration, 2*t.Renew.Duration)...)
}
