package snapshot

import "github.com/dynamo-operator/dynamo-operator/internal/core/dormancy"

// Dormancy is whether a graph that asks to scale to zero sleeps.
type Dormancy struct {
	dormancy.Settings
	dormancy.Decision
	// Unsupported says why it cannot.
	Unsupported string
}

// Asleep says that the graph's workers have no replicas.
func (s Snapshot) Asleep() bool { return s.Dormancy != nil && s.Dormancy.Decision.Asleep() }
