package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Topology is what pods are told of where they are.
type Topology struct {
	// NodeLabels are the labels of nodes that pods may have. Pods whose graph has a
	// policy for transfers of KV caches are given them. None means that the operator
	// writes to no pod.
	NodeLabels []string `json:"nodeLabels,omitempty"`
}

// shown are the labels for validation, to which none and not known are two things.
func (t Topology) shown() []string { return append([]string{}, t.NodeLabels...) }

func (t Topology) validate(at *field.Path) (errs field.ErrorList) {
	at = at.Child("nodeLabels")
	for i, key := range t.NodeLabels {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			errs = append(errs, field.Invalid(at.Index(i), key, strings.Join(problems, "; ")))
		}
	}
	return errs
}
