package snapshot

import (
	"slices"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// AccountUsers are the graphs and components of a namespace, which share
// ServiceAccounts.
type AccountUsers struct {
	Graphs     []v1alpha1.DynamoGraphDeployment
	Components []v1alpha1.DynamoComponentDeployment
}

// Any reports whether there is anybody: a planner's account is made for every
// graph, whether or not it has a planner yet.
func (u AccountUsers) Any() bool { return len(u.Graphs)+len(u.Components) > 0 }

// Runs reports whether somebody has a component of a type.
func (u AccountUsers) Runs(kind v1alpha1.ComponentType) bool {
	return slices.ContainsFunc(u.Graphs, func(dgd v1alpha1.DynamoGraphDeployment) bool {
		for _, s := range dgd.Spec.SortedServices() {
			if s != nil && s.ComponentType == kind {
				return true
			}
		}
		return false
	}) || slices.ContainsFunc(u.Components, func(dcd v1alpha1.DynamoComponentDeployment) bool { return dcd.Spec.ComponentType == kind })
}
