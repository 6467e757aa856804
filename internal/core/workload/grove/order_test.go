package grove

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// order is what a set says of the start of its cliques.
func order(set *grovev1alpha1.PodCliqueSet) map[string][]string {
	all := map[string][]string{}
	for _, clique := range set.Spec.Template.Cliques {
		all[clique.Name] = clique.Spec.StartsAfter
	}
	if set.Spec.Template.StartupType != nil {
		all["type"] = []string{string(*set.Spec.Template.StartupType)}
	}
	return all
}

// with is the set of live with an order.
func with(kind grovev1alpha1.CliqueStartupType, after map[string][]string) *grovev1alpha1.PodCliqueSet {
	_, set, _ := live()
	set.Spec.Template.StartupType = &kind
	for _, clique := range set.Spec.Template.Cliques {
		clique.Spec.StartsAfter = after[clique.Name]
	}
	return set
}

// TestASetKeepsTheOrderThatItWasMadeWith: Grove refuses another one, and to make the
// set again would stop what runs.
func TestASetKeepsTheOrderThatItWasMadeWith(t *testing.T) {
	const anyOrder, explicit = grovev1alpha1.CliqueStartupTypeAnyOrder, grovev1alpha1.CliqueStartupTypeExplicit
	none := with(anyOrder, nil)
	users := with(explicit, map[string][]string{"a": {"w-ldr", "w-wkr"}})
	engines := with(explicit, map[string][]string{"w-ldr": {"w-wkr"}})
	more := with(explicit, map[string][]string{"a": {"w-ldr", "w-wkr"}})
	more.Spec.Template.Cliques = append(more.Spec.Template.Cliques, &grovev1alpha1.PodCliqueTemplateSpec{Name: "new"})
	for rule, c := range map[string]struct{ wanted, live, want *grovev1alpha1.PodCliqueSet }{
		"what a new set is made with":                       {users, nil, users},
		"an order that is given later changes nothing":      {users, none, none},
		"an order that is taken away later changes nothing": {none, users, users},
		"what an engine needs among its cliques is wanted":  {engines, users, engines},
		"and so is that it is not needed any more":          {none, engines, none},
		"a set with another service is made anew":           {more, none, more},
	} {
		t.Run(rule, func(t *testing.T) {
			want := order(c.want)
			var s snapshot.Snapshot
			if c.live != nil {
				s.Owned = []graph.Object{c.live.DeepCopy()}
			}
			got := Builder{}.InOrder(nil, []graph.Desired{{Object: c.wanted.DeepCopy()}}, s)
			if diff := cmp.Diff(want, order(got[0].Object.(*grovev1alpha1.PodCliqueSet))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnExtendedSetKeepsItsOrder: it does as another does, with what it says beside.
func TestAnExtendedSetKeepsItsOrder(t *testing.T) {
	const anyOrder, explicit = grovev1alpha1.CliqueStartupTypeAnyOrder, grovev1alpha1.CliqueStartupTypeExplicit
	none := with(anyOrder, nil)
	users := with(explicit, map[string][]string{"a": {"w-ldr", "w-wkr"}})
	for rule, c := range map[string]struct{ wanted, live, want *grovev1alpha1.PodCliqueSet }{
		"what a new set is made with":                       {users, nil, users},
		"an order that is given later changes nothing":      {users, none, none},
		"an order that is taken away later changes nothing": {none, users, users},
	} {
		t.Run(rule, func(t *testing.T) {
			var s snapshot.Snapshot
			if c.live != nil {
				s.Owned = []graph.Object{c.live.DeepCopy()}
			}
			more := extension{strategy: "OnDelete", topology: packed("racks", "zone")}
			more.cliques = set(more.cliques, 0, "topologyConstraint", packed("racks", "rack"))
			wanted, err := more.extend(c.wanted.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			want, err := more.extend(c.want.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			got := Builder{}.InOrder(nil, []graph.Desired{{Object: wanted}}, s)
			if diff := cmp.Diff(want, got[0].Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestASetKeepsHowManyNodesItsGangsNeed: earlier releases of the original needed one node
// beside the leader, Grove takes no other number, and to make the set again would stop
// what runs. Another number of nodes is another gang.
func TestASetKeepsHowManyNodesItsGangsNeed(t *testing.T) {
	for rule, c := range map[string]struct {
		nodes, least, want int32
	}{
		"as many nodes": {nodes: 3, least: 1, want: 1},
		"more nodes":    {nodes: 2, least: 1, want: 3},
	} {
		t.Run(rule, func(t *testing.T) {
			g, was, _ := live()
			_, wanted, _ := live()
			for _, set := range []*grovev1alpha1.PodCliqueSet{was, wanted} {
				set.Spec.Template.Cliques[0].Spec.MinAvailable = new(int32(1))
				set.Spec.Template.Cliques[1].Spec.MinAvailable = new(int32(1))
			}
			was.Spec.Template.Cliques[2].Spec.Replicas, was.Spec.Template.Cliques[2].Spec.MinAvailable = c.nodes, &c.least
			wanted.Spec.Template.Cliques[2].Spec.Replicas, wanted.Spec.Template.Cliques[2].Spec.MinAvailable = 3, new(int32(3))
			wanted.Spec.Template.Cliques[0].Spec.MinAvailable = new(int32(2)) // a user's
			got := Builder{}.InOrder(g, []graph.Desired{{Object: wanted}}, snapshot.Snapshot{Owned: []graph.Object{was}})
			var least []int32
			for _, clique := range got[0].Object.(*grovev1alpha1.PodCliqueSet).Spec.Template.Cliques {
				least = append(least, *clique.Spec.MinAvailable)
			}
			if diff := cmp.Diff([]int32{2, 1, c.want}, least); diff != "" {
				t.Errorf("minAvailable (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAServiceThatWaitsSaysForWhom, and does not count as stuck.
func TestAServiceThatWaitsSaysForWhom(t *testing.T) {
	stopped := func(below []graph.Object, names ...string) {
		for _, object := range below {
			for _, name := range names {
				clique, ok := object.(*grovev1alpha1.PodClique)
				if ok && clique.Name == name {
					clique.Status.ReadyReplicas = 0
				}
			}
			if group, ok := object.(*grovev1alpha1.PodCliqueScalingGroup); ok {
				group.Status.AvailableReplicas = 0
			}
		}
	}
	for rule, c := range map[string]struct {
		stopped []string
		why     string
		stuck   bool
	}{
		"it waits for a group that is not ready":       {[]string{"g-0-a", "g-0-w-0-w-ldr", "g-0-w-0-w-wkr"}, "waiting for W to be ready", false},
		"all of whose nodes are":                       {[]string{"g-0-a", "g-0-w-0-w-wkr"}, "waiting for W to be ready", false},
		"not for one that is":                          {[]string{"g-0-a"}, "0 of 2 replicas ready", true},
		"nor when it runs and the group stopped later": {[]string{"g-0-w-0-w-ldr"}, "", false},
	} {
		t.Run(rule, func(t *testing.T) {
			g, _, below := live()
			set := with(grovev1alpha1.CliqueStartupTypeExplicit, map[string][]string{"a": {"w-ldr", "w-wkr"}})
			stopped(below, c.stopped...)
			s := snapshot.Snapshot{Owned: []graph.Object{set}, Beneath: below, Taken: time.Unix(100, 0).Add(time.Hour)}
			p := Builder{Deadline: time.Minute}.Progress(g, s)[0]
			if p.Why != c.why || p.Stuck != c.stuck {
				t.Errorf("says %q, stuck %v; want %q, %v", p.Why, p.Stuck, c.why, c.stuck)
			}
		})
	}
}
