package grove

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
)

// A set cannot get or lose cliques, so a generation of workers is a set:
//
//	<graph>         everything else, and the workers of the first generation
//	<graph>-<id>    the workers of a later one
//
// When nothing is left of the first generation its cliques stay in the graph's set, with
// no replicas. What the workers of a set were last told stands on it, by service, in
// AnnotationStoredWorkers: pod templates do not tell what a user meant by them. A service
// that is not listed there is over, and one without replicas there is made with some all
// the same: these go when they are seen.

// sets are the names of a graph's sets, its own first. That is not there if it would be
// empty beside another.
func sets(g *graph.Graph) []string {
	names := []string{g.CliqueSet}
	for _, c := range g.Components {
		if !slices.Contains(names, c.CliqueSet) {
			names = append(names, c.CliqueSet)
		}
	}
	if len(names) > 1 && !slices.ContainsFunc(g.Components, func(c graph.Component) bool { return c.CliqueSet == g.CliqueSet }) {
		return names[1:]
	}
	return names
}

// part is a graph with what is in one of its sets. Workers of a later generation come one
// after the other, so their gang waits for no more than one.
func part(g *graph.Graph, set string) *graph.Graph {
	one := *g
	one.Components = nil
	for _, c := range g.Components {
		if c.CliqueSet != set {
			continue
		}
		if set != g.CliqueSet {
			c.MinAvailable = nil
		}
		one.Components = append(one.Components, c)
	}
	return &one
}

// generate marks a set by its generation, and puts on it what its workers are told.
func (b Builder) generate(set *grovev1alpha1.PodCliqueSet, whole, g *graph.Graph) error {
	if set.Name != whole.CliqueSet {
		set.Labels[v1alpha1.LabelGeneration] = g.Components[0].Generation
	}
	if !b.Generations || b.Unfit(whole) != "" {
		return nil
	}
	told := map[string]json.RawMessage{}
	for _, c := range g.Components {
		if !c.Role.RunsEngine() {
			continue
		}
		// These are told elsewhere, but for none: a set cannot say that.
		c.Replicas, c.Adapted = min(1, c.Replicas), false
		stored, err := component.Builder{Graph: b.Graph, Defaults: b.Defaults}.Store(c, g.Engine())
		if err != nil {
			return fmt.Errorf("service %s: %w", c.Name, err)
		}
		if told[c.Name], err = json.Marshal(stored); err != nil {
			return fmt.Errorf("service %s: %w", c.Name, err)
		}
	}
	return tell(set, told)
}

// tell puts on a set what its workers are told.
func tell(set *grovev1alpha1.PodCliqueSet, told map[string]json.RawMessage) error {
	text, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("PodCliqueSet %s: %w", set.Name, err)
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[v1alpha1.AnnotationStoredWorkers] = string(text)
	return nil
}

// told reads it back.
func told(set *grovev1alpha1.PodCliqueSet) (by map[string]json.RawMessage, known bool) {
	err := json.Unmarshal([]byte(set.Annotations[v1alpha1.AnnotationStoredWorkers]), &by)
	return by, err == nil
}

// Named implements workload.Generational. Services in front of workers have all
// generations behind them, so nothing but the set has another name.
func (Builder) Named(g *graph.Graph, service, id string, first bool) graph.Membership {
	m := graph.Membership{Generation: id, ObjectName: graph.ComponentName(g.Name, service), CliqueSet: g.GenerationSet(id)}
	if first {
		m.CliqueSet = g.CliqueSet
	}
	return m
}

// Unfit implements workload.Generational.
func (Builder) Unfit(g *graph.Graph) string {
	switch {
	case g.Contract != graph.ContractV1:
		return "generations need the 1.x contract"
	case g.Adopted != "":
		return "the workers were taken over without a generation"
	case len(generation.Cells(g)) > 1:
		return "workers that split the work and such as do all of it are in one graph"
	case g.GenerationSet("00000000") == "":
		return "the names of the services leave no room for a generation in that of a PodCliqueSet"
	case g.UpdateStrategy != "":
		return "the annotation " + v1alpha1.AnnotationGroveUpdateStrategy + " has Grove replace pods"
	case g.Topology != nil:
		return "the graph is packed into a topology"
	case slices.ContainsFunc(g.Components, graph.Component.SharesAcrossPods):
		return "pods share the memory of GPUs"
	default:
		return ""
	}
}

// Whole implements workload.Generational: Grove makes no clique without replicas.
func (Builder) Whole() bool { return true }

// Members implements workload.Generational.
func (b Builder) Members(g *graph.Graph, s snapshot.Snapshot) []workload.Member {
	var all []workload.Member
	for _, object := range s.Owned {
		set, ok := object.(*grovev1alpha1.PodCliqueSet)
		if !ok || set.DeletionTimestamp != nil {
			continue
		}
		stored, known := told(set)
		for _, c := range g.Components {
			at := slices.IndexFunc(set.Spec.Template.Cliques, func(t *grovev1alpha1.PodCliqueTemplateSpec) bool { return serviceOf(t) == c.Name })
			if at < 0 || !c.Role.RunsEngine() {
				continue
			}
			text, runs := stored[c.Name]
			if known && !runs {
				continue // it is over
			}
			m := b.member(set, set.Spec.Template.Cliques[at], s)
			m.Service, m.Name.ObjectName = c.Name, graph.ComponentName(g.Name, c.Name)
			if known {
				m.Stored, m.Foreign = b.read(g, m, text)
				// A number that was set since is somebody's.
				m.Unasked = !m.Foreign && m.Stored.Replicas == 0 && (m.Scaled == nil || m.Scaled.GetGeneration() <= 1)
			}
			if m.Foreign && m.Replicas == 0 && set.Name != c.CliqueSet {
				continue // what an operator without generations has left of it
			}
			all = append(all, m)
		}
	}
	return all
}

// member is a worker of a set, by its first clique. Before Grove has made that, the
// number of replicas is what the set says.
func (Builder) member(set *grovev1alpha1.PodCliqueSet, clique *grovev1alpha1.PodCliqueTemplateSpec, s snapshot.Snapshot) workload.Member {
	id := clique.Labels[v1alpha1.LabelGeneration]
	m := workload.Member{
		Generation: id, Object: set, Replicas: clique.Spec.Replicas, Foreign: true, Name: graph.Membership{Generation: id, CliqueSet: set.Name},
	}
	for _, group := range set.Spec.Template.PodCliqueScalingGroupConfigs {
		if !slices.Contains(group.CliqueNames, clique.Name) {
			continue
		}
		m.Replicas = 1
		if group.Replicas != nil {
			m.Replicas = *group.Replicas
		}
		if live, found := snapshot.Find[*grovev1alpha1.PodCliqueScalingGroup](s, liveName(set.Name, group.Name)); found && live.DeletionTimestamp == nil {
			m.Scaled, m.Replicas = live, live.Spec.Replicas
		}
		return m
	}
	if live, found := snapshot.Find[*grovev1alpha1.PodClique](s, liveName(set.Name, clique.Name)); found && live.DeletionTimestamp == nil {
		m.Scaled, m.Replicas = live, live.Spec.Replicas
	}
	return m
}

// read is a worker as it was last told to be. What cannot be read is somebody else's.
func (b Builder) read(g *graph.Graph, m workload.Member, text json.RawMessage) (stored graph.Component, foreign bool) {
	dcd := &v1alpha1.DynamoComponentDeployment{}
	if err := json.Unmarshal(text, dcd); err != nil || m.Generation == "" {
		return graph.Component{}, true
	}
	dcd.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: g.Name, Controller: new(true)}}
	one, err := graph.FromComponentDeployment(dcd, b.Defaults)
	if err != nil || one.Contract != graph.ContractV1 {
		return graph.Component{}, true
	}
	return one.Components[0], false
}

// Carry implements workload.Generational: a set that exists keeps the cliques of workers
// which are not rendered in it, as they are, and one that does not waits for them.
func (b Builder) Carry(g *graph.Graph, desired []graph.Desired, c workload.Carried, s snapshot.Snapshot) []graph.Desired {
	var all []graph.Desired
	for _, d := range desired {
		set, extended, ok := typed(d.Object)
		if !ok {
			all = append(all, d)
			continue
		}
		live, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, set.Name)
		if !found || live.DeletionTimestamp != nil {
			live = &grovev1alpha1.PodCliqueSet{}
		}
		b.carry(g, set, live, c)
		if len(set.Spec.Template.Cliques) > 0 || len(g.Components) == 0 {
			if extended != nil {
				retype(extended, set)
			}
			all = append(all, d)
		}
	}
	return all
}

// typed is a set as our module for Grove's API knows it, and the same with what later
// versions know; nil if it needs none of that.
func typed(object graph.Object) (set *grovev1alpha1.PodCliqueSet, extended *unstructured.Unstructured, ok bool) {
	if set, ok = object.(*grovev1alpha1.PodCliqueSet); ok {
		return set, nil, true
	}
	if extended, ok = object.(*unstructured.Unstructured); !ok || extended.GroupVersionKind() != grovev1alpha1.SchemeGroupVersion.WithKind("PodCliqueSet") {
		return nil, nil, false
	}
	set = &grovev1alpha1.PodCliqueSet{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(extended.Object, set)
	return set, extended, err == nil
}

// retype brings the cliques and groups of a set into the one that is written: its own
// where it has them, with all that they say.
func retype(extended *unstructured.Unstructured, set *grovev1alpha1.PodCliqueSet) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return // what came as JSON can be encoded
	}
	for _, list := range []string{"cliques", "podCliqueScalingGroups"} {
		path := []string{"spec", "template", list}
		own, _, _ := unstructured.NestedSlice(extended.Object, path...)
		all, _, _ := unstructured.NestedSlice(content, path...)
		for i, item := range all {
			if at := slices.IndexFunc(own, func(o any) bool { return o.(map[string]any)["name"] == item.(map[string]any)["name"] }); at >= 0 {
				all[i] = own[at]
			}
		}
		if len(all) > 0 {
			_ = unstructured.SetNestedSlice(extended.Object, all, path...) // it was there
		}
	}
	if delay := set.Spec.Template.TerminationDelay; delay != nil {
		_ = unstructured.SetNestedField(extended.Object, delay.Duration.String(), "spec", "template", "terminationDelay") // it was there
	}
}

func (b Builder) carry(g *graph.Graph, set, live *grovev1alpha1.PodCliqueSet, c workload.Carried) {
	goes := func(service string) bool { // to another set
		return slices.ContainsFunc(g.Components, func(o graph.Component) bool {
			return o.Name == service && o.Role.RunsEngine() && o.CliqueSet != set.Name
		})
	}
	stays := func(service string) bool { // as it is stored
		return goes(service) || slices.Contains(c.Left, service)
	}
	rolls := func(t *grovev1alpha1.PodCliqueTemplateSpec) bool { return slices.Contains(c.Rolling, serviceOf(t)) }
	was := &live.Spec.Template
	if !slices.ContainsFunc(slices.Concat(was.Cliques, set.Spec.Template.Cliques), func(t *grovev1alpha1.PodCliqueTemplateSpec) bool {
		return stays(serviceOf(t)) || rolls(t)
	}) {
		return
	}
	wanted := set.Spec.Template
	now := &set.Spec.Template
	now.Cliques, now.PodCliqueScalingGroupConfigs = nil, nil
	groupAt := func(all []grovev1alpha1.PodCliqueScalingGroupConfig, clique string) int {
		return slices.IndexFunc(all, func(group grovev1alpha1.PodCliqueScalingGroupConfig) bool {
			return slices.Contains(group.CliqueNames, clique)
		})
	}
	add := func(from *grovev1alpha1.PodCliqueSetTemplateSpec, t *grovev1alpha1.PodCliqueTemplateSpec) {
		t = t.DeepCopy()
		before := template(live, t.Name)
		if before != nil && rolls(t) {
			t.Spec.Replicas = before.Spec.Replicas // it is told to what was made from it
		}
		now.Cliques = append(now.Cliques, t)
		if at := groupAt(from.PodCliqueScalingGroupConfigs, t.Name); at >= 0 && groupAt(now.PodCliqueScalingGroupConfigs, t.Name) < 0 {
			group := from.PodCliqueScalingGroupConfigs[at]
			if earlier := groupAt(was.PodCliqueScalingGroupConfigs, t.Name); earlier >= 0 && rolls(t) {
				group.Replicas = was.PodCliqueScalingGroupConfigs[earlier].Replicas
			}
			now.PodCliqueScalingGroupConfigs = append(now.PodCliqueScalingGroupConfigs, group)
		}
	}
	for _, t := range was.Cliques { // in the order that it has
		switch rendered := slices.IndexFunc(wanted.Cliques, func(o *grovev1alpha1.PodCliqueTemplateSpec) bool { return o.Name == t.Name }); {
		case stays(serviceOf(t)):
			add(was, t)
		case rendered >= 0:
			add(&wanted, wanted.Cliques[rendered])
		}
	}
	for _, t := range wanted.Cliques {
		if !stays(serviceOf(t)) && template(live, t.Name) == nil {
			add(&wanted, t)
		}
	}
	if slices.ContainsFunc(now.Cliques, func(t *grovev1alpha1.PodCliqueTemplateSpec) bool { return goes(serviceOf(t)) }) {
		now.TerminationDelay = &metav1.Duration{Duration: never}
	}
	b.retell(set, live, stays, c.Stay)
}

// never is the termination delay of a set whose workers go, have gone, or make room for
// those that are to take their place: Grove ends a gang in which one clique is short of
// pods for that long with all others, and makes it anew as its set says. Frontends would go, and workers of the first generation come back.
// Grove has no word for a gang that is not to be ended.
const never = 10 * 365 * 24 * time.Hour

// retell has a set say of workers that stay as they are what it said of them, while
// their generation runs.
func (b Builder) retell(set, live *grovev1alpha1.PodCliqueSet, stays func(string) bool, stay []workload.Member) {
	now, known := told(set)
	if !b.Generations || !known {
		return
	}
	maps.DeleteFunc(now, func(service string, _ json.RawMessage) bool { return stays(service) })
	before, _ := told(live)
	for service, text := range before {
		if stays(service) && slices.ContainsFunc(stay, func(m workload.Member) bool { return m.Service == service && m.Object.GetName() == set.Name }) {
			now[service] = text
		}
	}
	_ = tell(set, now) // what was read can be written
}

func liveName(set, name string) string { return fmt.Sprintf("%s-0-%s", set, name) }
