package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Scope is which namespaces the operator looks after.
type Scope struct {
	// Namespaces restricts the operator to these; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// ExcludedNamespaces are left alone, for another operator or for nobody.
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`
}

// ClusterWide reports whether the operator looks after the whole cluster.
func (s Scope) ClusterWide() bool { return len(s.Namespaces) == 0 }

// Covers reports whether a namespace is ours to look after.
func (s Scope) Covers(namespace string) bool {
	return !slices.Contains(s.ExcludedNamespaces, namespace) &&
		(s.ClusterWide() || slices.Contains(s.Namespaces, namespace))
}

func (s Scope) validate() field.ErrorList {
	var errs field.ErrorList
	for key, names := range map[string][]string{"namespaces": s.Namespaces, "excludedNamespaces": s.ExcludedNamespaces} {
		for i, name := range names {
			for _, problem := range validation.ValidateNamespaceName(name, false) {
				errs = append(errs, field.Invalid(field.NewPath(key).Index(i), name, problem))
			}
		}
	}
	for i, name := range s.ExcludedNamespaces {
		if slices.Contains(s.Namespaces, name) {
			errs = append(errs, field.Invalid(field.NewPath("excludedNamespaces").Index(i), name, "is also among namespaces"))
		}
	}
	return errs
}
