package grove

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/change"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

var defaults = graph.Defaults{Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractRules{Forced: graph.ContractV1}}

// chat is a graph of a frontend, prefill on one node and decode on two.
func chat() *v1alpha1.DynamoGraphDeployment {
	dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "chat", UID: "u"}}
	dgd.Spec.BackendFramework = v1alpha1.BackendFrameworkVLLM
	dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{}
	for _, kind := range []v1alpha1.ComponentType{"frontend", "prefill", "decode"} {
		dgd.Spec.Services[string(kind)] = &v1alpha1.SharedSpec{
			ComponentType: kind, Replicas: new(int32(2)),
			ExtraPodSpec: &v1alpha1.ExtraPodSpec{MainContainer: &corev1.Container{
				Image: "example.com/engine:1.0.0", Command: []string{"python3", "-m", "dynamo.vllm"}, Env: []corev1.EnvVar{{Name: "B", Value: "b"}, {Name: "A", Value: "a"}},
			}},
		}
	}
	dgd.Spec.Services["decode"].Multinode = &v1alpha1.Multinode{NodeCount: 2}
	dgd.Spec.Services["decode"].Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "4"}}
	return dgd
}

func plain(c graph.Component, _ engine.Group) (corev1.PodTemplateSpec, error) {
	labels := map[string]string{v1alpha1.LabelComponent: c.Name}
	if c.Generation != "" {
		labels[v1alpha1.LabelGeneration] = c.Generation
	}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, nil
}

// built are the sets of a graph, as the API server keeps them.
func built(t *testing.T, b Builder, g *graph.Graph) []*grovev1alpha1.PodCliqueSet {
	t.Helper()
	objects, err := b.Build(g, plain)
	if err != nil {
		t.Fatal(err)
	}
	var all []*grovev1alpha1.PodCliqueSet
	for _, o := range objects {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		set := &grovev1alpha1.PodCliqueSet{}
		if err := json.Unmarshal(text, set); err != nil {
			t.Fatal(err)
		}
		all = append(all, set)
	}
	return all
}

func meaning(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment) *graph.Graph {
	t.Helper()
	g, err := graph.FromGraphDeployment(dgd, defaults)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestTheWorkersOfASetAreReadBackAsTheyWereTold: a graph that nobody changed must not
// start a generation, and its replicas are those of what Grove has made.
func TestTheWorkersOfASetAreReadBackAsTheyWereTold(t *testing.T) {
	dgd := chat()
	g := meaning(t, dgd)
	b := Builder{Graph: dgd, Defaults: defaults, Generations: true}
	set := built(t, b, g)[0]
	group := &grovev1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "chat-0-decode"}, Spec: grovev1alpha1.PodCliqueScalingGroupSpec{Replicas: 3}}
	clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "chat-0-prefill"}, Spec: grovev1alpha1.PodCliqueSpec{Replicas: 0}}
	for name, c := range map[string]struct {
		beneath []graph.Object
		annotate,
		want map[string]string
	}{
		"before Grove has made anything": {want: map[string]string{"prefill": "chat 2", "decode": "chat 2"}},
		"from then on":                   {beneath: []graph.Object{group, clique}, want: map[string]string{"prefill": "chat-0-prefill 0", "decode": "chat-0-decode 3"}},
		"one that is over":               {annotate: map[string]string{v1alpha1.AnnotationStoredWorkers: "{}"}, want: map[string]string{}},
		"another operator's":             {annotate: map[string]string{}, want: map[string]string{"prefill": "chat 2 foreign", "decode": "chat 2 foreign"}},
		"what cannot be read": {annotate: map[string]string{v1alpha1.AnnotationStoredWorkers: `{"decode":{"spec":{"replicas":"x"}}}`},
			want: map[string]string{"decode": "chat 2 foreign"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := set.DeepCopy()
			if c.annotate != nil {
				set.Annotations = c.annotate
			}
			got := map[string]string{}
			for _, m := range b.Members(g, snapshot.Snapshot{Owned: []graph.Object{set}, Beneath: c.beneath}) {
				text := []string{m.Runs(), strconv.Itoa(int(m.Replicas))}
				if m.Foreign {
					text = append(text, "foreign")
				}
				got[m.Service] = strings.Join(text, " ")
				at := slices.IndexFunc(g.Components, func(o graph.Component) bool { return o.Name == m.Service })
				if fields := change.Breaking(m.Stored, g.Components[at]); !m.Foreign && len(fields) > 0 {
					t.Errorf("%s: as if these had changed: %v", m.Service, fields)
				}
				if want := b.Named(g, m.Service, g.Generation, true); m.Name != want {
					t.Errorf("%s is %+v, want %+v", m.Service, m.Name, want)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAWorkerThatIsToHaveNoneIsMadeUnasked: Grove makes no set without one of it, and the
// planner must not take that for what was told.
func TestAWorkerThatIsToHaveNoneIsMadeUnasked(t *testing.T) {
	dgd := chat()
	dgd.Spec.Services["prefill"].Replicas = new(int32(0))
	g := meaning(t, dgd)
	b := Builder{Graph: dgd, Defaults: defaults, Generations: true}
	set := built(t, b, g)[0]
	clique := func(generation int64, replicas int32) graph.Object {
		return &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{Name: "chat-0-prefill", Generation: generation}, Spec: grovev1alpha1.PodCliqueSpec{Replicas: replicas}}
	}
	for name, c := range map[string]struct {
		beneath []graph.Object
		// want are the replicas that there are, and those that were told.
		want [2]int32
	}{
		"before Grove has made it":  {nil, [2]int32{1, 0}},
		"as Grove has made it":      {[]graph.Object{clique(1, 1)}, [2]int32{1, 0}},
		"as it was told since":      {[]graph.Object{clique(2, 0)}, [2]int32{0, 0}},
		"as somebody has scaled it": {[]graph.Object{clique(2, 3)}, [2]int32{3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range b.Members(g, snapshot.Snapshot{Owned: []graph.Object{set}, Beneath: c.beneath}) {
				want := [2]int32{2, 2}
				if m.Service == "prefill" {
					want = c.want
				}
				if diff := cmp.Diff(want, [2]int32{m.Replicas, m.Told()}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", m.Service, diff)
				}
			}
		})
	}
}

// TestWithoutGenerationsASetIsAsBefore, whatever else is in the graph.
func TestWithoutGenerationsASetIsAsBefore(t *testing.T) {
	dgd := chat()
	g := meaning(t, dgd)
	with, without := built(t, Builder{Graph: dgd, Defaults: defaults, Generations: true}, g), built(t, Builder{}, g)
	if _, said := without[0].Annotations[v1alpha1.AnnotationStoredWorkers]; said || len(with) != 1 || len(without) != 1 {
		t.Errorf("%d and %d sets, annotations %v", len(with), len(without), without[0].Annotations)
	}
	delete(with[0].Annotations, v1alpha1.AnnotationStoredWorkers)
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("-without +with:\n%s", diff)
	}
}

// TestASetKeepsTheCliquesOfWorkersThatAreNotRenderedInIt: Grove takes no set that gets or
// loses some.
func TestASetKeepsTheCliquesOfWorkersThatAreNotRenderedInIt(t *testing.T) {
	dgd := chat()
	b := Builder{Graph: dgd, Defaults: defaults, Generations: true, TerminationDelay: 15 * time.Minute}
	first := meaning(t, dgd)
	live := built(t, b, first)[0]
	workers := []string{"decode", "prefill"}
	s := snapshot.Snapshot{Owned: []graph.Object{live}}
	stay := b.Members(first, s)
	moved := func(id string) *graph.Graph {
		of := map[string]graph.Membership{}
		for _, service := range workers {
			of[service] = b.Named(first, service, id, false)
		}
		return first.InGenerations(of)
	}
	everything := "decode-ldr decode-wkr frontend prefill"
	for name, c := range map[string]struct {
		graph   *graph.Graph
		carried workload.Carried
		// want are the cliques by set, and stored the workers that are listed there.
		want, stored map[string]string
		// goes says that workers of the graph's own set go, or have gone: it must not be
		// ended as a gang that is short of pods.
		goes bool
	}{
		"a graph that rolls nothing": {
			graph: first,
			want:  map[string]string{"chat": everything}, stored: map[string]string{"chat": "decode prefill"},
		},
		"a candidate whose turn has not come": {
			graph: moved("b"), carried: workload.Carried{Left: workers, Rolling: workers, Stay: stay},
			want: map[string]string{"chat": everything}, stored: map[string]string{"chat": "decode prefill"},
			goes: true, // to make room for it
		},
		"a candidate beside the first": {
			graph: moved("b"), carried: workload.Carried{Rolling: workers, Stay: stay},
			want:   map[string]string{"chat": everything, "chat-b": "decode-ldr decode-wkr prefill"},
			stored: map[string]string{"chat": "decode prefill", "chat-b": "decode prefill"},
			goes:   true,
		},
		"a candidate that was aborted": {
			graph: first, carried: workload.Carried{Left: workers, Rolling: workers, Stay: stay},
			want: map[string]string{"chat": everything}, stored: map[string]string{"chat": "decode prefill"},
		},
		"the first when it goes": {
			graph: moved("b"), carried: workload.Carried{Rolling: workers},
			want:   map[string]string{"chat": everything, "chat-b": "decode-ldr decode-wkr prefill"},
			stored: map[string]string{"chat": "", "chat-b": "decode prefill"},
			goes:   true,
		},
		"when it has gone": {
			graph:  moved("b"),
			want:   map[string]string{"chat": everything, "chat-b": "decode-ldr decode-wkr prefill"},
			stored: map[string]string{"chat": "", "chat-b": "decode prefill"},
			goes:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var desired []graph.Desired
			for _, set := range built(t, b, c.graph) {
				desired = append(desired, graph.Desired{Object: set})
			}
			got, stored := map[string]string{}, map[string]string{}
			for _, d := range b.Carry(c.graph, desired, c.carried, s) {
				set := d.Object.(*grovev1alpha1.PodCliqueSet)
				var names, listed []string
				for _, clique := range set.Spec.Template.Cliques {
					names = append(names, clique.Name)
				}
				by, _ := told(set)
				for service := range by {
					listed = append(listed, service)
				}
				slices.Sort(names)
				slices.Sort(listed)
				if delay, want := set.Spec.Template.TerminationDelay.Duration, map[bool]time.Duration{true: never, false: b.TerminationDelay}[c.goes && set.Name == "chat"]; delay != want {
					t.Errorf("the gang of %s is ended after %s, want %s", set.Name, delay, want)
				}
				got[set.Name], stored[set.Name] = strings.Join(names, " "), strings.Join(listed, " ")
				if groups := set.Spec.Template.PodCliqueScalingGroupConfigs; len(groups) != 1 || groups[0].Name != "decode" {
					t.Errorf("scaling groups of %s: %v", set.Name, groups)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("cliques (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.stored, stored); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSomeGraphsAreLeftToGrove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.DynamoGraphDeployment)
		want   string
	}{
		"none": {func(*v1alpha1.DynamoGraphDeployment) {}, ""},
		"workers of both kinds": {func(dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.Services["all"] = &v1alpha1.SharedSpec{ComponentType: "worker"}
		}, "split the work"},
		"a strategy": {func(dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Annotations = map[string]string{v1alpha1.AnnotationGroveUpdateStrategy: "OnDelete"}
		}, v1alpha1.AnnotationGroveUpdateStrategy},
		"a topology": {func(dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.TopologyConstraint = &v1alpha1.TopologyConstraint{TopologyProfile: "racks"}
		}, "topology"},
		"a long name": {func(dgd *v1alpha1.DynamoGraphDeployment) {
			dgd.Spec.Services[strings.Repeat("d", 29)] = &v1alpha1.SharedSpec{ComponentType: "decode"}
		}, "no room"},
	} {
		t.Run(name, func(t *testing.T) {
			dgd := chat()
			c.change(dgd)
			if got := (Builder{}).Unfit(meaning(t, dgd)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestASetThatLaterVersionsOfGroveKnowMoreOfKeepsItsCliques: it has become one since.
func TestASetThatLaterVersionsOfGroveKnowMoreOfKeepsItsCliques(t *testing.T) {
	dgd := chat()
	b := Builder{Graph: dgd, Defaults: defaults, Generations: true}
	live := built(t, b, meaning(t, dgd))[0]
	live.Annotations[v1alpha1.AnnotationStoredWorkers] = "{}"
	dgd.Annotations = map[string]string{v1alpha1.AnnotationGroveUpdateStrategy: "OnDelete"}
	g := meaning(t, dgd)
	g = g.InGenerations(map[string]graph.Membership{"decode": b.Named(g, "decode", "b", false), "prefill": b.Named(g, "prefill", "b", false)})
	objects, err := b.Build(g, plain)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	var desired []graph.Desired
	for _, o := range objects {
		desired = append(desired, graph.Desired{Object: o})
	}
	for _, d := range b.Carry(g, desired, workload.Carried{}, snapshot.Snapshot{Owned: []graph.Object{live}}) {
		set := d.Object.(*unstructured.Unstructured)
		cliques, _, _ := unstructured.NestedSlice(set.Object, "spec", "template", "cliques")
		for _, clique := range cliques {
			got[set.GetName()] = append(got[set.GetName()], clique.(map[string]any)["name"].(string))
		}
		if strategy, _, _ := unstructured.NestedString(set.Object, "spec", "updateStrategy", "type"); strategy != "OnDelete" {
			t.Errorf("strategy %q of %s", strategy, set.GetName())
		}
	}
	want := map[string][]string{"chat": {"decode-ldr", "decode-wkr", "frontend", "prefill"}, "chat-b": {"decode-ldr", "decode-wkr", "prefill"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
