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
	// PolicyPrefix is what the names of the installation's
	// ValidatingAdmissionPolicies begin with, and those of their bindings.
	PolicyPrefix string `json:"policyPrefix,omitempty"`
	// AssumePolicies is said to an operator for single namespaces, which may not
	// read them: they are enforced, by the installation of another.
	AssumePolicies bool `json:"assumePolicies,omitempty"`
}

// Policy is a ValidatingAdmissionPolicy that comes with the installation of an
// operator for the whole cluster.
type Policy string

const (
	PolicyNamespaceScope   Policy = "namespace-scope"
	PolicyRequestNamespace Policy = "request-namespace"
	PolicyGraphIngress     Policy = "graph-ingress"
	PolicyComponentIngress Policy = "component-ingress"
	PolicyScalingAdapter   Policy = "scaling-adapter"
	PolicyWorkerMetadata   Policy = "worker-metadata"
)

// Policies are all of them.
var Policies = []Policy{
	PolicyNamespaceScope, PolicyRequestNamespace, PolicyGraphIngress, PolicyComponentIngress, PolicyScalingAdapter, PolicyWorkerMetadata,
}

// PolicyName is the name of a policy and of its binding.
func (t Tenancy) PolicyName(p Policy) string { return t.PolicyPrefix + "-" + string(p) }

func (t Tenancy) validate(clusterWide bool, at *field.Path) field.ErrorList {
	errs := atLeast(at.Child("renew"), t.Renew, time.Second)
	if t.AssumePolicies && clusterWide {
		errs = append(errs, field.Forbidden(at.Child("assumePolicies"), "an operator for the whole cluster reads the policies itself"))
	}
	if t.PolicyPrefix == "" {
		errs = append(errs, field.Required(at.Child("policyPrefix"), "policies have names"))
	}
	errs = append(errs, atLeast(at.Child("discovery"), t.Discovery, time.Second)...)
	for _, problem := range validation.ValidateNamespaceName(t.ClusterNamespace, false) {
		errs = append(errs, field.Invalid(at.Child("clusterNamespace"), t.ClusterNamespace, problem))
	}
	return append(errs, atLeast(at.Child("duration"), t.Duration, 2*t.Renew.Duration)...)
}
