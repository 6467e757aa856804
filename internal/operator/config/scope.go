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

// systemNamespaces are the cluster's own: nothing of ours may stand in the way of
// mending it, nor run there.
var systemNamespaces = []string{"kube-node-lease", "kube-public", "kube-system"}

// Excluded are the namespaces that are left alone, by webhooks and controllers
// alike, unless the operator is there for them.
func (c Config) Excluded() []string {
	all := slices.Concat(systemNamespaces, c.ExcludedNamespaces, c.Webhook.ExceptNamespaces)
	all = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(c.Namespaces, name) })
	slices.Sort(all)
	return slices.Compact(all)
}

// Covers reports whether a namespace is ours to look after.
func (c Config) Covers(namespace string) bool {
	return !slices.Contains(c.Excluded(), namespace) &&
		(c.ClusterWide() || slices.Contains(c.Namespaces, namespace))
}

// reserved are where requests of other namespaces get nothing, whoever consents.
// The operator's own namespace is among them: what runs there could take its token.
func (c Config) reserved() []string {
	reserved := slices.Concat(systemNamespaces, c.Excluded())
	if c.Webhook.Namespace != "" {
		reserved = append(reserved, c.Webhook.Namespace)
	}
	slices.Sort(reserved)
	return slices.Compact(reserved)
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
