package lws

import (
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Turns has the groups of a component take a change one after the other, as the
// pods of a Deployment do: each group has a set of its own, and none of those
// knows of the others.
//
//	every group serves        one takes the change
//	one does not serve        it takes the change, the others stay as they are
//
// Whoever asks for the strategy Recreate has all of them take it at once.
func Turns(c graph.Component, wanted []graph.Desired, s snapshot.Snapshot) []graph.Desired {
	if c.Recreated() {
		return wanted
	}
	serving, groups := map[string]bool{}, 0
	for _, w := range wanted {
		if set, ok := w.Object.(*lwsv1.LeaderWorkerSet); ok {
			groups++
			if live, found := snapshot.Find[*lwsv1.LeaderWorkerSet](s, set.Name); found && serves(live) {
				serving[set.Name] = true
			}
		}
	}
	for i, w := range wanted {
		switch w.Object.(type) {
		case *lwsv1.LeaderWorkerSet, *PodGroup:
			switch {
			case len(serving) == groups:
				wanted[i].UpdatePolicy = graph.UpdateOneAtATime
			case serving[w.GetName()]:
				wanted[i].UpdatePolicy = graph.UpdateNever
			}
		}
	}
	return wanted
}

// serves reports whether a set's groups are up, whatever they were made from.
func serves(set *lwsv1.LeaderWorkerSet) bool {
	if set.DeletionTimestamp != nil || set.Spec.LeaderWorkerTemplate.Size == nil {
		return false
	}
	groups := int32(1)
	if set.Spec.Replicas != nil {
		groups = *set.Spec.Replicas
	}
	return missing(set, *set.Spec.LeaderWorkerTemplate.Size, groups) == ""
}
