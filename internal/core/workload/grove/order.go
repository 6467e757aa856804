package grove

import (
	"slices"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// Grove starts a clique once the least available number of pods of each clique in
// its startsAfter is ready, in a PodCliqueSet of the startup type Explicit. Neither
// can change in a set that exists.

// startsAfter are the cliques of the components that one is to be started after.
// Those without replicas are never ready, and nobody waits for them.
func startsAfter(g *graph.Graph, c graph.Component) []string {
	var names []string
	for _, before := range g.Components {
		if slices.Contains(c.StartAfter, before.Name) && before.Replicas > 0 {
			names = append(names, cliqueNames(before)...)
		}
	}
	return names
}

// cliqueNames are the names of a component's cliques in the set.
func cliqueNames(c graph.Component) []string {
	switch {
	case c.SharesAcrossPods():
		var names []string
		for rank := range int(c.Nodes) {
			names = append(names, serverClique(c, rank), engineClique(c, rank))
		}
		return names
	case c.Multinode():
		return []string{c.LeaderClique(), c.WorkerClique()}
	default:
		return []string{c.Clique}
	}
}

// InOrder leaves a PodCliqueSet that exists the order that it was made with:
// what a user says later is for services that have yet to start. What an engine
// asks for among its own cliques is not the user's, and a set that lacks it is
// made again. How many nodes of a group its gang needs is nobody's wish, and earlier
// releases needed one: a set that was made so stays so, as Grove takes no other.
func (Builder) InOrder(g *graph.Graph, wanted []graph.Desired, s snapshot.Snapshot) []graph.Desired {
	for _, w := range wanted {
		set, extended, ok := typed(w.Object)
		if !ok {
			continue
		}
		live, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, set.Name)
		if !found || live.DeletionTimestamp != nil || !sameGroups(set, live) {
			continue
		}
		set.Spec.Template.StartupType = live.Spec.Template.StartupType
		for _, clique := range set.Spec.Template.Cliques {
			was := template(live, clique.Name)
			clique.Spec.StartsAfter = was.Spec.StartsAfter
			if g != nil && follows(g, clique.Name) && was.Spec.Replicas == clique.Spec.Replicas && was.Spec.MinAvailable != nil {
				clique.Spec.MinAvailable = was.Spec.MinAvailable
			}
		}
		if extended != nil {
			reorder(extended, set)
		}
	}
	return wanted
}

// follows reports whether a clique are the nodes of groups that follow a leader.
func follows(g *graph.Graph, clique string) bool {
	return slices.ContainsFunc(g.Components, func(c graph.Component) bool { return c.Multinode() && c.WorkerClique() == clique })
}

// reorder brings the order of a set into the one that is written.
func reorder(extended *unstructured.Unstructured, set *grovev1alpha1.PodCliqueSet) {
	content := extended.Object["spec"].(map[string]any)["template"].(map[string]any)
	delete(content, "cliqueStartupType")
	if kind := set.Spec.Template.StartupType; kind != nil {
		content["cliqueStartupType"] = string(*kind)
	}
	cliques, _ := content["cliques"].([]any)
	for i, clique := range set.Spec.Template.Cliques { // it was read from these
		spec := cliques[i].(map[string]any)["spec"].(map[string]any)
		delete(spec, "startsAfter")
		var names []any
		for _, name := range clique.Spec.StartsAfter {
			names = append(names, name)
		}
		if names != nil {
			spec["startsAfter"] = names
		}
		if least := clique.Spec.MinAvailable; least != nil {
			spec["minAvailable"] = int64(*least)
		}
	}
}

// sameGroups reports whether two sets have the same cliques, in the same order
// within each component.
func sameGroups(a, b *grovev1alpha1.PodCliqueSet) bool {
	if len(a.Spec.Template.Cliques) != len(b.Spec.Template.Cliques) {
		return false
	}
	for _, clique := range a.Spec.Template.Cliques {
		other := template(b, clique.Name)
		if other == nil || !slices.Equal(within(a, clique), within(b, other)) {
			return false
		}
	}
	return true
}

// within are the cliques of its own component that a clique starts after.
func within(set *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodCliqueTemplateSpec) []string {
	return slices.DeleteFunc(slices.Clone(clique.Spec.StartsAfter), func(name string) bool {
		return serviceOf(template(set, name)) != serviceOf(clique)
	})
}

// before are the services that those cliques of a set start after which belong to
// a component.
func before(c graph.Component, set *grovev1alpha1.PodCliqueSet) []string {
	var services []string
	for _, clique := range set.Spec.Template.Cliques {
		if serviceOf(clique) != c.Name {
			continue
		}
		for _, name := range clique.Spec.StartsAfter {
			if service := serviceOf(template(set, name)); service != c.Name && !slices.Contains(services, service) {
				services = append(services, service)
			}
		}
	}
	return services
}

// waitsFor are the services that hold a component back: those before it that have a
// clique which is not ready, while no pod of its own is.
func waitsFor(c graph.Component, set *grovev1alpha1.PodCliqueSet, s snapshot.Snapshot) []string {
	if slices.ContainsFunc(cliquesOf(c, s), func(live *grovev1alpha1.PodClique) bool { return live.Status.ReadyReplicas > 0 }) {
		return nil
	}
	return slices.DeleteFunc(before(c, set), func(service string) bool {
		live := cliquesOf(graph.Component{Name: service, CliqueSet: set.Name}, s)
		return !slices.ContainsFunc(set.Spec.Template.Cliques, func(clique *grovev1alpha1.PodCliqueTemplateSpec) bool {
			return serviceOf(clique) == service && !slices.ContainsFunc(live, func(l *grovev1alpha1.PodClique) bool {
				return l.Spec.RoleName == clique.Spec.RoleName && enough(l)
			})
		})
	})
}

// enough reports whether a clique has as many ready pods as those after it wait for.
func enough(live *grovev1alpha1.PodClique) bool {
	least := live.Spec.Replicas
	if live.Spec.MinAvailable != nil {
		least = min(least, *live.Spec.MinAvailable)
	}
	return live.Status.ReadyReplicas >= least
}

func template(set *grovev1alpha1.PodCliqueSet, name string) *grovev1alpha1.PodCliqueTemplateSpec {
	at := slices.IndexFunc(set.Spec.Template.Cliques, func(t *grovev1alpha1.PodCliqueTemplateSpec) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	return set.Spec.Template.Cliques[at]
}

// serviceOf is the service that a clique of a set belongs to; empty for none.
func serviceOf(clique *grovev1alpha1.PodCliqueTemplateSpec) string {
	if clique == nil {
		return ""
	}
	return clique.Labels[v1alpha1.LabelComponent]
}
