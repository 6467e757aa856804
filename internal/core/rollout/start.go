package rollout

import "slices"

// Start is what was seen of a service that may have to wait for others.
type Start struct {
	Name string
	// After are the services that must be ready before it is first started.
	After []string
	// Made is true once its workload exists. It has started then, and what becomes
	// of others does not stop it.
	Made bool
	// Ready is true when its workload runs in full.
	Ready bool
}

// Waiting are the services that may not be started yet, with those that each of
// them waits for.
func Waiting(services []Start) map[string][]string {
	waiting := map[string][]string{}
	for _, s := range services {
		if s.Made {
			continue
		}
		for _, name := range s.After {
			if !slices.ContainsFunc(services, func(before Start) bool { return before.Name == name && before.Ready }) {
				waiting[s.Name] = append(waiting[s.Name], name)
			}
		}
	}
	return waiting
}
