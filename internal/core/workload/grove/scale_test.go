package grove

import (
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

func TestRescale(t *testing.T) {
	clique := func(name string, replicas int32) *grovev1alpha1.PodClique {
		return &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: grovev1alpha1.PodCliqueSpec{Replicas: replicas}}
	}
	group := func(name string, replicas int32) *grovev1alpha1.PodCliqueScalingGroup {
		return &grovev1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: replicas}}
	}
	leaving := clique("g-0-a", 1)
	leaving.DeletionTimestamp = new(metav1.Unix(1, 0))
	one := graph.Component{CliqueSet: "g", Clique: "a", Name: "A", Nodes: 1, Replicas: 2}
	wide := graph.Component{CliqueSet: "g", Clique: "w", Name: "W", Nodes: 2, Replicas: 0}
	for rule, c := range map[string]struct {
		live []graph.Object
		want []string
	}{
		"nothing was made yet":                 {},
		"a clique with another number":         {live: []graph.Object{clique("g-0-a", 1)}, want: []string{"g-0-a"}},
		"a group with another number":          {live: []graph.Object{group("g-0-w", 1)}, want: []string{"g-0-w"}},
		"what has the number is left alone":    {live: []graph.Object{clique("g-0-a", 2), group("g-0-w", 0)}},
		"what is being deleted is left alone":  {live: []graph.Object{leaving}},
		"a clique of a group is not a service": {live: []graph.Object{clique("g-0-w", 7)}},
	} {
		t.Run(rule, func(t *testing.T) {
			var got []string
			for _, r := range (Builder{}).Rescale([]graph.Component{one, wide}, snapshot.Snapshot{Beneath: c.live}) {
				got = append(got, r.Object.GetName())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestASetIsToldNoFewerReplicasThanItsGangNeeds: Grove refuses it otherwise, and takes no
// other minAvailable later. What a service is scaled down to is told to what was made.
func TestASetIsToldNoFewerReplicasThanItsGangNeeds(t *testing.T) {
	for rule, c := range map[string]struct {
		replicas int32
		least    *int32
		adapted  bool
		want     [2]int32
	}{
		"the user's number":                         {replicas: 4, least: new(int32(2)), want: [2]int32{4, 2}},
		"an adapter's number":                       {replicas: 3, least: new(int32(2)), adapted: true, want: [2]int32{3, 2}},
		"an adapter's number that is too small":     {replicas: 1, least: new(int32(2)), adapted: true, want: [2]int32{2, 2}},
		"an adapter's number where nothing is said": {replicas: 1, adapted: true, want: [2]int32{1, 1}},
		"none":                          {replicas: 0, least: new(int32(2)), want: [2]int32{2, 2}},
		"none where nothing is said":    {replicas: 0, want: [2]int32{1, 1}},
		"what a user got wrong is told": {replicas: 1, least: new(int32(2)), want: [2]int32{1, 2}},
	} {
		t.Run(rule, func(t *testing.T) {
			g := meaning(t, chat())
			for i := range g.Components {
				one := &g.Components[i]
				one.Replicas, one.Adapted, one.MinAvailable = c.replicas, c.adapted, c.least
			}
			set := built(t, Builder{}, g)[0]
			group, clique := set.Spec.Template.PodCliqueScalingGroupConfigs[0], template(set, "prefill").Spec
			if diff := cmp.Diff(c.want, [2]int32{*group.Replicas, *group.MinAvailable}); diff != "" {
				t.Errorf("the group's replicas and minAvailable (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, [2]int32{clique.Replicas, *clique.MinAvailable}); diff != "" {
				t.Errorf("the clique's replicas and minAvailable (-want +got):\n%s", diff)
			}
		})
	}
}
