package graph

import (
	"maps"
	"slices"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

func images(frontend, worker string) string {
	return `{services: {f: {componentType: frontend, extraPodSpec: {mainContainer: {image: "` + frontend + `"}}}, w: {componentType: worker, extraPodSpec: {mainContainer: {image: "` + worker + `"}}}, p: {componentType: planner, extraPodSpec: {mainContainer: {image: "x:0.1.0"}}}}}`
}

func TestTheContractIsChosen(t *testing.T) {
	const origin = v1alpha1.AnnotationOriginVersion
	cases := map[string]struct {
		spec        string
		annotations map[string]string
		rules       ContractRules
		running     Running
		want        Contract
	}{
		"January's tags":                            {spec: images("r/f:0.8.0", "r/w:0.8.0"), want: ContractSeed},
		"all tags are 1.0 or later":                 {spec: images("r/f:1.0.0", "r/w:v1.4.1"), want: ContractV1},
		"what follows a version is ignored":         {spec: images("r/f:1.2.0-rc1", "r/w:1.2.0.post2+cu13"), want: ContractV1},
		"a tag beside a digest counts":              {spec: images("r/f:1.2.0@sha256:ab", "r:5000/w:1.2.0"), want: ContractV1},
		"one earlier tag":                           {spec: images("r/f:1.2.0", "r/w:0.9.1"), rules: ContractRules{UnknownTags: ContractV1}, want: ContractSeed},
		"one tag that is no version":                {spec: images("r/f:1.2.0", "r/w:my-tag"), want: ContractSeed},
		"unknown tags as configured":                {spec: images("r/f:1.2.0", "r/w:my-tag"), rules: ContractRules{UnknownTags: ContractV1}, want: ContractV1},
		"a version of two numbers is none":          {spec: images("r/f:1.2", "r/w:1.2"), want: ContractSeed},
		"a port is no tag":                          {spec: images("r:1.2.0/f", "r:1.2.0/w"), want: ContractSeed},
		"no image":                                  {spec: `{services: {w: {componentType: worker}}}`, want: ContractSeed},
		"no worker and no frontend":                 {spec: `{services: {p: {componentType: planner, extraPodSpec: {mainContainer: {image: "x:1.2.0"}}}}}`, want: ContractSeed},
		"a field that is newer":                     {spec: `{services: {w: {componentType: worker, frontendSidecar: {image: f}}}}`, want: ContractV1},
		"labels of a graph are newer":               {spec: `{labels: {a: b}, services: {w: {}}}`, want: ContractV1},
		"made under 1.x":                            {spec: images("a", "b"), annotations: map[string]string{origin: "1.1.0"}, want: ContractV1},
		"made before":                               {spec: images("a", "b"), annotations: map[string]string{origin: "0.9.0"}, want: ContractSeed},
		"written as v1beta1":                        {spec: images("a", "b"), annotations: map[string]string{v1alpha1.AnnotationWrittenAs: conversion.Beta}, want: ContractV1},
		"forced to the seed's":                      {spec: images("r/f:1.0.0", "r/w:1.0.0"), rules: ContractRules{Forced: ContractSeed}, want: ContractSeed},
		"forced to 1.x":                             {spec: images("a", "b"), rules: ContractRules{Forced: ContractV1}, want: ContractV1},
		"children show what runs":                   {spec: images("r/f:1.0.0", "r/w:1.0.0"), rules: ContractRules{Forced: ContractV1}, running: Running{Contract: ContractSeed}, want: ContractSeed},
		"the user's own word":                       {spec: images("r/f:1.0.0", "r/w:1.0.0"), annotations: map[string]string{v1alpha1.AnnotationRuntimeContract: "seed"}, running: Running{Contract: ContractV1}, want: ContractSeed},
		"a word that nobody knows":                  {spec: images("r/f:1.0.0", "r/w:1.0.0"), annotations: map[string]string{v1alpha1.AnnotationRuntimeContract: "2.x"}, want: ContractV1},
		"a choice that was made under other images": {spec: images("r/f:1.0.0", "r/w:1.0.0"), annotations: map[string]string{v1alpha1.AnnotationRuntimeContract: "seed", v1alpha1.AnnotationRuntimeContractChoice: "other"}, want: ContractV1},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := readAlpha(t, c.spec)
			dgd.Annotations = c.annotations
			g, err := FromGraphDeployment(dgd, Defaults{Contract: c.rules, Running: c.running})
			if err != nil {
				t.Fatal(err)
			}
			if g.Contract != c.want {
				t.Errorf("contract %s, want %s", g.Contract, c.want)
			}
		})
	}
}

// A graph that was looked at once keeps contract, generation and executor, whatever
// is configured later and however it is scaled. New images choose again.
func TestAContractStands(t *testing.T) {
	const worker = `backendFramework: vllm, services: {w: {componentType: worker, multinode: {nodeCount: 2}, replicas: 1, extraPodSpec: {mainContainer: {image: "r/w:my-tag"}}}}`
	for _, first := range []Contract{ContractSeed, ContractV1} {
		t.Run(string(first), func(t *testing.T) {
			dgd := readAlpha(t, "{"+worker+"}")
			recorded := func(d Defaults) *Graph {
				g, err := FromGraphDeployment(dgd, d)
				if err != nil {
					t.Fatal(err)
				}
				all := maps.Clone(dgd.Annotations)
				if all == nil {
					all = map[string]string{}
				}
				maps.Copy(all, RecordGraph(dgd, g, d.Running))
				dgd.Annotations = all
				return g
			}
			other := ContractSeed
			if first == ContractSeed {
				other = ContractV1
			}
			made := recorded(Defaults{Contract: ContractRules{UnknownTags: first}})
			if made.Contract != first || (made.Generation != "") != (first == ContractV1) || (dgd.Annotations[v1alpha1.AnnotationOriginVersion] != "") != (first == ContractV1) {
				t.Fatalf("%s %q %v", made.Contract, made.Generation, dgd.Annotations)
			}
			later := Defaults{Contract: ContractRules{Forced: other}, Running: Running{Contract: other, Generation: "beef"}}
			dgd.Spec.Services["w"].Replicas = new(int32(4))
			dgd.Spec.Services["w"].Envs = append(dgd.Spec.Services["w"].Envs, readAlpha(t, `{envs: [{name: A, value: b}], services: {}}`).Spec.Envs...)
			before := maps.Clone(dgd.Annotations)
			kept := recorded(later)
			if kept.Contract != first || kept.Generation != made.Generation || kept.Components[0].Executor != made.Components[0].Executor {
				t.Errorf("%s %s %s became %s %s %s", made.Contract, made.Generation, made.Components[0].Executor, kept.Contract, kept.Generation, kept.Components[0].Executor)
			}
			if diff := cmp.Diff(before, dgd.Annotations); diff != "" {
				t.Errorf("the record changed:\n%s", diff)
			}
			dgd.Spec.Services["w"].ExtraPodSpec.MainContainer.Image = "r/w:another"
			if moved := recorded(later); moved.Contract != other {
				t.Errorf("new images are still %s", moved.Contract)
			}
		})
	}
}

func TestRunningIsReadOffChildren(t *testing.T) {
	child := func(labels, annotations map[string]string) Object {
		return &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}}
	}
	named := func(name, service, generation string) Object {
		c := child(map[string]string{v1alpha1.LabelComponent: service, v1alpha1.LabelGeneration: generation}, nil)
		c.(*v1alpha1.DynamoComponentDeployment).Name = name
		return c
	}
	of := func(kind, generation, contract string) Object {
		c := child(map[string]string{v1alpha1.LabelGeneration: generation}, map[string]string{v1alpha1.AnnotationRuntimeContract: contract})
		c.(*v1alpha1.DynamoComponentDeployment).Spec.ComponentType = v1alpha1.ComponentType(kind)
		return c
	}
	set := func(annotations map[string]string) Object {
		return &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	seeds := child(nil, nil)
	const current, earlier = v1alpha1.AnnotationGeneration, v1alpha1.AnnotationEarlierGeneration
	cases := map[string]struct {
		owner    map[string]string
		children []Object
		want     Running
	}{
		"workers that the original named after their generation": {
			map[string]string{current: "12ab"}, []Object{named("g-decode-12ab", "Decode", "12ab"), seeds},
			Running{Contract: ContractV1, Generation: "12ab", Names: map[string]string{"Decode": "g-decode-12ab"}},
		},
		"of two generations the one that is recorded counts": {
			map[string]string{earlier: "34cd"}, []Object{named("g-decode-12ab", "Decode", "12ab"), named("g-decode-34cd", "Decode", "34cd")},
			Running{Contract: ContractV1, Generation: "12ab", Names: map[string]string{"Decode": "g-decode-34cd"}},
		},
		"a record that was taken away is read off the workers": {
			nil, []Object{named("g-decode-12ab", "Decode", "12ab")},
			Running{Contract: ContractV1, Generation: "12ab", Names: map[string]string{"Decode": "g-decode-12ab"}},
		},
		"our own workers have plain names": {
			map[string]string{current: "12ab"}, []Object{named("g-decode", "Decode", "12ab")}, Running{Contract: ContractV1, Generation: "12ab"},
		},
		"no child":                      {nil, nil, Running{}},
		"children of January":           {nil, []Object{seeds}, Running{Contract: ContractSeed}},
		"workers of the original's 1.x": {nil, []Object{seeds, child(map[string]string{v1alpha1.LabelGeneration: "12ab"}, nil)}, Running{Contract: ContractV1, Generation: "12ab"}},
		"a graph that the original's 1.x managed by Grove": {map[string]string{v1alpha1.AnnotationEarlierGeneration: "12ab"}, []Object{seeds}, Running{Contract: ContractV1}},
		"our own set": {nil, []Object{child(nil, (&Graph{Contract: ContractV1, Generation: "34cd"}).Marks())}, Running{Contract: ContractV1, Generation: "34cd"}},
		"a set of Grove that the original's 1.x made": {
			map[string]string{current: "12ab"}, []Object{set(nil)}, Running{Contract: ContractV1, Unmarked: true},
		},
		"one that is being taken over": {
			map[string]string{current: "12ab", v1alpha1.AnnotationRuntimeContractChoice: "x", v1alpha1.AnnotationAdoptedWorkers: "56ef"},
			[]Object{set(nil)}, Running{Contract: ContractV1},
		},
		"one that was taken over, of a graph that was replaced": {
			nil, []Object{set((&Graph{Contract: ContractV1, Generation: "34cd", Adopted: "56ef"}).Marks())},
			Running{Contract: ContractV1, Generation: "34cd", Adopted: "56ef"},
		},
		"our own set of a graph that leaves the seed's contract": {
			map[string]string{current: "12ab", v1alpha1.AnnotationRuntimeContractChoice: "x"}, []Object{set(nil)}, Running{Contract: ContractV1},
		},
		"a set of January": {nil, []Object{set(nil)}, Running{Contract: ContractSeed}},
		"frontends of a generation are paired with its workers": {
			nil, []Object{of("frontend", "12ab", "1.x"), of("worker", "12ab", "1.x")}, Running{Contract: ContractV1, Generation: "12ab", Paired: true},
		},
		"a runtime that knows no generations may be in one": {
			map[string]string{current: "12ab"}, []Object{of("frontend", "12ab", "seed"), of("worker", "", "seed")},
			Running{Contract: ContractSeed, Generation: "12ab", Paired: true, Plain: true},
		},
		"a Service that the graph has for its frontends": {
			nil, []Object{&corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRolloutIsolation: "paired"}}}},
			Running{Contract: ContractSeed, Paired: true},
		},
		"a label that is no id": {nil, []Object{child(map[string]string{v1alpha1.LabelGeneration: "../x"}, nil)}, Running{Contract: ContractSeed}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got := ReadRunning(&v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: c.owner}}, c.children)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWorkersThatWereTakenOverJoinAGenerationWhenTheyChange: pods of Grove that the
// original made know of no generation, and being told of one would replace them.
func TestWorkersThatWereTakenOverJoinAGenerationWhenTheyChange(t *testing.T) {
	const recorded = v1alpha1.AnnotationAdoptedWorkers
	owner := map[string]string{v1alpha1.AnnotationGeneration: "12ab"}
	read := func(image string, running Running) *Graph {
		dgd := readAlpha(t, `{services: {Frontend: {componentType: frontend}, Decode: {componentType: worker, replicas: 2, extraPodSpec: {mainContainer: {image: "`+image+`"}}}}}`)
		dgd.Name, dgd.Annotations = "g", owner
		g, err := FromGraphDeployment(dgd, Defaults{Running: running})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	generationOf := func(g *Graph) string {
		i := slices.IndexFunc(g.Components, func(c Component) bool { return c.Name == "Decode" })
		return g.Components[i].Generation
	}
	first := read("a:1.4.1", Running{Contract: ContractV1, Unmarked: true})
	if first.Adopted == "" || first.Generation != "12ab" || generationOf(first) != "" {
		t.Errorf("taken over: digest %q, generation %q, of the worker %q", first.Adopted, first.Generation, generationOf(first))
	}
	for where, running := range map[string]Running{
		"on the set":   {Contract: ContractV1, Generation: "12ab", Adopted: first.Adopted},
		"on the graph": {Contract: ContractV1},
	} {
		delete(owner, recorded)
		if running.Adopted == "" {
			owner[recorded] = first.Adopted
		}
		if again := read("a:1.4.1", running); again.Adopted != first.Adopted || generationOf(again) != "" {
			t.Errorf("recorded %s, unchanged: digest %q, generation of the worker %q", where, again.Adopted, generationOf(again))
		}
		if changed := read("a:1.4.2", running); changed.Adopted != "" || generationOf(changed) != "12ab" {
			t.Errorf("recorded %s, changed: digest %q, generation of the worker %q, want that of the graph", where, changed.Adopted, generationOf(changed))
		}
	}
}

func TestAComponentKeepsTheNameThatTheOriginalGaveIt(t *testing.T) {
	dgd := readAlpha(t, `{services: {Frontend: {componentType: frontend}, Decode: {componentType: worker, scalingAdapter: {enabled: true}}}}`)
	dgd.Name = "g"
	running := Running{Contract: ContractV1, Generation: "12ab", Names: map[string]string{"Decode": "g-decode-12ab", "Frontend": "g-frontend-12ab"}}
	for rule, c := range map[string]struct {
		running Running
		want    map[string]string
	}{
		"of workers":           {running, map[string]string{"Frontend": "g-frontend", "Decode": "g-decode-12ab"}},
		"and no other has one": {Running{}, map[string]string{"Frontend": "g-frontend", "Decode": "g-decode"}},
	} {
		t.Run(rule, func(t *testing.T) {
			g, err := FromGraphDeployment(dgd, Defaults{Contract: ContractRules{Forced: ContractV1}, Running: c.running})
			if err != nil {
				t.Fatal(err)
			}
			for _, component := range g.Components {
				if want := c.want[component.Name]; component.ObjectName != want || component.ServiceName != want {
					t.Errorf("%s is %s, with Service %s", component.Name, component.ObjectName, component.ServiceName)
				}
			}
			if g.Adapters[0].ObjectName != "g-decode" {
				t.Errorf("the adapter is %s", g.Adapters[0].ObjectName)
			}
		})
	}
}

func TestExecutor(t *testing.T) {
	const origin, wish = v1alpha1.AnnotationOriginVersion, v1alpha1.AnnotationVLLMExecutor
	cases := map[string]struct {
		annotations map[string]string
		contract    Contract
		running     Running
		want        Executor
	}{
		"a new graph of 1.x":            {nil, ContractV1, Running{}, ExecutorMP},
		"a new graph of the seed":       {nil, ContractSeed, Running{}, ExecutorRay},
		"one made by a 1.x release":     {map[string]string{origin: "1.4.1"}, ContractV1, Running{Contract: ContractV1}, ExecutorMP},
		"one taken over without origin": {nil, ContractV1, Running{Contract: ContractV1}, ExecutorRay},
		"one made earlier":              {map[string]string{origin: "0.9.0"}, ContractV1, Running{}, ExecutorRay},
		"the user's wish":               {map[string]string{wish: "ray"}, ContractV1, Running{}, ExecutorRay},
		"a wish that nobody knows":      {map[string]string{wish: "carrier-pigeon"}, ContractV1, Running{}, ExecutorMP},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := readAlpha(t, `{backendFramework: vllm, services: {w: {componentType: worker, multinode: {nodeCount: 2}}}}`)
			dgd.Annotations = c.annotations
			g, err := FromGraphDeployment(dgd, Defaults{Contract: ContractRules{Forced: c.contract}, Running: Running{Contract: c.running.Contract}})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Components[0].Executor; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestAnImageThatDoesNotTellKeepsTheContractOf1x: a graph that was born under 0.x has no
// origin, and its workers of 1.x would be pruned under the seed's contract.
func TestAnImageThatDoesNotTellKeepsTheContractOf1x(t *testing.T) {
	dgd := readAlpha(t, `{services: {w: {componentType: worker, extraPodSpec: {mainContainer: {image: "r/w:0.8.0"}}}}}`)
	for _, step := range []struct {
		image string
		want  Contract
	}{
		{"r/w:0.8.0", ContractSeed},
		{"r/w:1.4.0", ContractV1},
		{"r/w@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ContractV1},
		{"r/w:nightly", ContractV1},
		{"r/w:0.9.0", ContractSeed},
		{"r/w:nightly", ContractSeed},
	} {
		dgd.Spec.Services["w"].ExtraPodSpec.MainContainer.Image = step.image
		g, err := FromGraphDeployment(dgd, Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		if g.Contract != step.want {
			t.Fatalf("%s is under %s, want %s", step.image, g.Contract, step.want)
		}
		// What was made before it was looked at under 1.x is stamped with nothing.
		note := RecordGraph(dgd, g, Running{Contract: g.Contract})
		delete(note, v1alpha1.AnnotationOriginVersion)
		if dgd.Annotations == nil {
			dgd.Annotations = map[string]string{}
		}
		maps.Copy(dgd.Annotations, note)
	}
}

// left is a graph as the original leaves it, with a component of its workers.
func left(t *testing.T, change func(*v1alpha1.DynamoGraphDeployment, *v1alpha1.DynamoComponentDeployment)) (*v1alpha1.DynamoGraphDeployment, []Object) {
	t.Helper()
	dgd := readAlpha(t, images("r/f:1.2.0", "r/w:1.2.0"))
	dgd.Generation = 3
	dgd.Annotations = map[string]string{v1alpha1.AnnotationGeneration: "0a1b2c3d"}
	dgd.Status = v1alpha1.DynamoGraphDeploymentStatus{ObservedGeneration: 3, State: v1alpha1.GraphStateSuccessful}
	worker := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: dgd.Name + "-w-0a1b2c3d", Generation: 2, Labels: map[string]string{v1alpha1.LabelGeneration: "0a1b2c3d", v1alpha1.LabelComponent: "w"},
	}}
	if change != nil {
		change(dgd, worker)
	}
	return dgd, []Object{worker}
}

func TestWhatTheOriginalCarriedOutIsTakenOver(t *testing.T) {
	type (
		dgd = v1alpha1.DynamoGraphDeployment
		dcd = v1alpha1.DynamoComponentDeployment
	)
	for rule, c := range map[string]struct {
		change func(*dgd, *dcd)
		want   string
	}{
		"a graph that serves":               {want: "3"},
		"one of which a pod is not ready":   {change: func(d *dgd, _ *dcd) { d.Status.State = v1alpha1.GraphStatePending }, want: "3"},
		"not one that failed":               {change: func(d *dgd, _ *dcd) { d.Status.State = v1alpha1.GraphStateFailed }},
		"not a change that nobody has seen": {change: func(d *dgd, _ *dcd) { d.Generation = 4 }},
		"nor one that a component has not":  {change: func(_ *dgd, w *dcd) { w.Status.ObservedGeneration = 1 }},
		"a component that says nothing may": {change: func(_ *dgd, w *dcd) { w.Status.ObservedGeneration = 0 }, want: "3"},
		"not a restart that is under way": {change: func(d *dgd, _ *dcd) {
			d.Status.Restart = &v1alpha1.RestartStatus{ObservedID: "1", Phase: v1alpha1.RestartPhaseRestarting}
		}},
		"one that was overtaken has its end": {change: func(d *dgd, _ *dcd) {
			d.Status.Restart = &v1alpha1.RestartStatus{ObservedID: "1", Phase: v1alpha1.RestartPhaseSuperseded}
		}, want: "3"},
		"not an update that is under way": {change: func(d *dgd, _ *dcd) { d.Status.RollingUpdate = &v1alpha1.RollingUpdateStatus{Phase: "InProgress"} }},
		"not what we have reported on": {change: func(d *dgd, _ *dcd) {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, ObservedGeneration: 3}}
		}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd, owned := left(t, c.change)
			g, err := FromGraphDeployment(dgd, Defaults{Running: ReadRunning(dgd, owned)})
			if err != nil {
				t.Fatal(err)
			}
			if g.TakenOver != c.want {
				t.Errorf("taken over at %q, want %q", g.TakenOver, c.want)
			}
		})
	}
}

// TestAComponentWithoutAGraphIsTakenOver as the release made it whose labels its pods have.
func TestAComponentWithoutAGraphIsTakenOver(t *testing.T) {
	type dcd = v1alpha1.DynamoComponentDeployment
	later := map[string]string{v1alpha1.LabelDiscoveryBackend: "kubernetes"}
	for rule, c := range map[string]struct {
		pods     map[string]string
		change   func(*dcd)
		contract Contract
		want     string
	}{
		"as 1.x made it":                    {pods: later, contract: ContractV1, want: "3"},
		"not what earlier releases made":    {contract: ContractSeed},
		"not a change that nobody has seen": {pods: later, change: func(d *dcd) { d.Generation = 4 }, contract: ContractV1},
		"not what we have reported on": {pods: later, change: func(d *dcd) {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAvailable, ObservedGeneration: 3}}
		}, contract: ContractV1},
		"what is on record": {pods: later, change: func(d *dcd) {
			d.Annotations = map[string]string{v1alpha1.AnnotationAdoptedGeneration: "3"}
			d.Status.ObservedGeneration = 0
		}, contract: ContractV1, want: "3"},
	} {
		t.Run(rule, func(t *testing.T) {
			alone := &dcd{ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: "ns", Generation: 3}}
			alone.Spec.ComponentType = v1alpha1.ComponentTypeWorker
			alone.Status.ObservedGeneration = 3
			if c.change != nil {
				c.change(alone)
			}
			runs := &appsv1.Deployment{}
			runs.Spec.Template.Labels = c.pods
			running := ReadRunning(alone, []Object{runs})
			g, err := FromComponentDeployment(alone, Defaults{Running: running})
			if err != nil {
				t.Fatal(err)
			}
			if g.Contract != c.contract || g.TakenOver != c.want {
				t.Errorf("contract %s, taken over at %q; want %s, %q", g.Contract, g.TakenOver, c.contract, c.want)
			}
			if got := RecordComponent(alone, g, running)[v1alpha1.AnnotationAdoptedGeneration]; got != c.want {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

// TestWorkersKeepTheNamesThatTheyHave where the record of their generation says another:
// by other names they would all be made anew, and those that serve deleted.
func TestWorkersKeepTheNamesThatTheyHave(t *testing.T) {
	for rule, c := range map[string]struct {
		annotations map[string]string
		ours        bool
		want        string // the name of the worker
	}{
		"the record is theirs":        {annotations: map[string]string{v1alpha1.AnnotationGeneration: "0a1b2c3d"}, want: "-w-0a1b2c3d"},
		"it is the earlier record":    {annotations: map[string]string{v1alpha1.AnnotationGeneration: "ffffffff", v1alpha1.AnnotationEarlierGeneration: "0a1b2c3d"}, want: "-w-0a1b2c3d"},
		"no record is":                {annotations: map[string]string{v1alpha1.AnnotationGeneration: "ffffffff"}, want: "-w-0a1b2c3d"},
		"what is ours goes by record": {annotations: map[string]string{v1alpha1.AnnotationGeneration: "ffffffff"}, ours: true, want: "-w"},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd, owned := left(t, func(d *v1alpha1.DynamoGraphDeployment, w *v1alpha1.DynamoComponentDeployment) {
				d.Annotations = c.annotations
				if c.ours {
					w.Annotations = map[string]string{v1alpha1.AnnotationRuntimeContract: string(ContractV1)}
				}
			})
			g, err := FromGraphDeployment(dgd, Defaults{Running: ReadRunning(dgd, owned)})
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(g.Components, func(c Component) bool { return c.Name == "w" })
			if diff := cmp.Diff(dgd.Name+c.want, g.Components[at].ObjectName); diff != "" {
				t.Errorf("name (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPodsKeepTheLabelThatTheOriginalGaveThem for their Dynamo namespace: another would
// replace them, and Services find old and new ones by it.
func TestPodsKeepTheLabelThatTheOriginalGaveThem(t *testing.T) {
	for rule, c := range map[string]struct{ label, want string }{
		"after a deprecated field":   {"theirs", "theirs"},
		"nothing is made yet":        {"", "lab-chat"},
		"ours":                       {"lab-chat", "lab-chat"},
		"ours, before it was global": {"dynamo", "lab-chat"},
	} {
		t.Run(rule, func(t *testing.T) {
			dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "lab", Name: "chat-w", OwnerReferences: []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "chat"}},
			}}
			made := &appsv1.Deployment{}
			if c.label != "" {
				made.Spec.Template.Labels = map[string]string{v1alpha1.LabelDynamoNamespace: c.label}
			}
			g, err := FromComponentDeployment(dcd, Defaults{Running: ReadRunning(dcd, []Object{made})})
			if err != nil {
				t.Fatal(err)
			}
			if got := g.Components[0]; got.NamespaceLabel != c.want || got.DynamoNamespace != "lab-chat" {
				t.Errorf("label %q in namespace %q, want %q", got.NamespaceLabel, got.DynamoNamespace, c.want)
			}
		})
	}
}
