package config

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/budget"
)

// Scaling is what bounds the replicas of graphs, whoever asks for them.
type Scaling struct {
	// GPUs is the most that the pods of all graphs have together; 0 is no limit.
	GPUs int `json:"gpus,omitempty"`
	// Namespaces are the most of those of one namespace.
	Namespaces map[string]int `json:"namespaces,omitempty"`
}

func (s Scaling) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.GPUs < 0 {
		errs = append(errs, field.Invalid(at.Child("gpus"), s.GPUs, "must not be negative"))
	}
	for _, namespace := range slices.Sorted(maps.Keys(s.Namespaces)) {
		if n := s.Namespaces[namespace]; n < 1 {
			errs = append(errs, field.Invalid(at.Child("namespaces").Key(namespace), n, "must be at least 1"))
		}
	}
	return errs
}

// Budgets is what the configuration says to those who grant replicas.
func (s Scaling) Budgets() budget.Budgets {
	return budget.Budgets{Cluster: s.GPUs, Namespaces: s.Namespaces}
}
