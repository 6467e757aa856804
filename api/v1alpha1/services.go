package v1alpha1

import (
	"iter"
	"maps"
	"slices"
)

// SortedServices yields the services in ascending order of their names. A null
// service is yielded as an empty one, so callers need not test for nil.
func (s *DynamoGraphDeploymentSpec) SortedServices() iter.Seq2[string, *SharedSpec] {
	return func(yield func(string, *SharedSpec) bool) {
		for _, name := range slices.Sorted(maps.Keys(s.Services)) {
			service := s.Services[name]
			if service == nil {
				service = &SharedSpec{}
			}
			if !yield(name, service) {
				return
			}
		}
	}
}
