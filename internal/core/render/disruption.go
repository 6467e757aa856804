package render

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// disruptionBudgets have those who evict pods, such as a drain of a node, leave as many
// replicas of what serves as a rollout has to. A service of which all may be missing has
// none, nor have those that cannot serve without it.
func disruptionBudgets(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, everywhere bool) []graph.Object {
	said, _ := policy.Parse(dgd.Annotations) // validation tells of what cannot be read
	if on := said.DisruptionBudgets; on == nil && !everywhere || on != nil && !*on {
		return nil
	}
	var all []graph.Object
	for _, part := range servingTogether(g) {
		var roles []generation.Role
		for _, c := range part {
			asked := c
			if s, rolls := g.Serving[c.Name]; rolls {
				asked.Replicas = s.Desired
			}
			_, unavailable := world.Tolerance(asked)
			roles = append(roles, generation.Role{Desired: int(asked.Replicas), Unavailable: unavailable})
		}
		for i, floor := range generation.Floor(roles) {
			if floor > 0 {
				all = append(all, disruptionBudget(g, part[i], int32(floor)))
			}
		}
	}
	return all
}

// servingTogether are the services that serve requests, with those they need to.
func servingTogether(g *graph.Graph) [][]graph.Component {
	var all [][]graph.Component
	cell := map[string]int{}
	for i, of := range generation.Cells(g) {
		all = append(all, nil)
		for _, name := range of.Services {
			cell[name] = i
		}
	}
	for _, c := range g.Components {
		if i, works := cell[c.Name]; works {
			all[i] = append(all[i], c)
		} else if c.Role == graph.RoleFrontend || c.Role == graph.RoleEPP {
			all = append(all, []graph.Component{c})
		}
	}
	return all
}

// disruptionBudget keeps a floor of replicas. A replica that spans nodes is gone with its
// first pod, so of all their pods no more may go than replicas. While generations are
// exchanged only those count that are complete: the pods of another serve nobody.
func disruptionBudget(g *graph.Graph, c graph.Component, floor int32) *policyv1.PodDisruptionBudget {
	labels := map[string]string{v1alpha1.LabelGraphName: c.Graph, v1alpha1.LabelComponent: c.Name}
	// There is always one expression: a selector belongs to whoever writes it as a whole, so
	// a part that is left out would not be missed.
	among := metav1.LabelSelectorRequirement{Key: v1alpha1.LabelComponent, Operator: metav1.LabelSelectorOpExists}
	replicas := c.Replicas
	if s, rolls := g.Serving[c.Name]; rolls {
		replicas = s.Replicas
		switch plain := slices.Contains(s.Generations, ""); {
		case !plain:
			among = metav1.LabelSelectorRequirement{Key: v1alpha1.LabelGeneration, Operator: metav1.LabelSelectorOpIn, Values: s.Generations}
		case len(s.Others) > 0: // what has no label is In nothing
			among = metav1.LabelSelectorRequirement{Key: v1alpha1.LabelGeneration, Operator: metav1.LabelSelectorOpNotIn, Values: s.Others}
		}
	}
	selector := &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: []metav1.LabelSelectorRequirement{among}}
	least := floor + max(replicas, floor)*(max(1, c.Nodes)-1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: graph.ComponentName(g.Name, c.Name), Labels: labels},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(least)),
			Selector:     selector,
			// One that is not ready keeps no floor, and must not keep a node.
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
