package conversion_test

import (
	"encoding/json"
	"maps"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// TestARequestKeepsItsHardware: a request of v1beta1 whose v1alpha1 form is given
// what v1beta1 has no field for stays one of v1beta1, and what only v1beta1 can say
// stays in force, also where our word for it was left out by whoever wrote it again.
func TestARequestKeepsItsHardware(t *testing.T) {
	for what, fields := range map[string]string{
		"hardware":          `hardware: {gpuSku: h200_sxm}`,
		"a thorough search": `searchStrategy: thorough`,
		"a rate":            `workload: {requestRate: 2}`,
		"a concurrency":     `workload: {concurrency: 2}`,
		"a whole latency":   `sla: {e2eLatency: 100}`,
	} {
		for who, forget := range map[string]bool{"by who keeps annotations": false, "by who does not know our annotation": true} {
			t.Run(what+", "+who, func(t *testing.T) {
				written := read[v1beta1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, autoApply: true, `+fields+`}}`)
				stored, _ := conversion.RequestToAlpha(written)
				stored.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{Namespace: "other"}
				again, _ := conversion.RequestToBeta(stored)
				compareSpec(t, "after the edit", written.Spec, again.Spec, nil)
				if forget {
					delete(again.Annotations, v1alpha1.AnnotationWrittenAs)
				}
				again.Spec.Model = "n"
				back, _ := conversion.RequestToAlpha(again)
				if as := conversion.WrittenAs(back); as != conversion.Beta {
					t.Errorf("counts as written in %s", as)
				}
				if o := back.Spec.DeploymentOverrides; o == nil || o.Namespace != "other" {
					t.Errorf("the namespace is lost: %s", indent(t, back))
				}
				shown, _ := conversion.RequestToBeta(back)
				compareSpec(t, "shown at last", again.Spec, shown.Spec, nil)
			})
		}
	}
}

// TestAGraphOfBetaStaysOne: the same for graphs and components.
func TestAGraphOfBetaStaysOne(t *testing.T) {
	for what, template := range map[string]string{
		"details of a mount":            `{spec: {containers: [{name: main, volumeMounts: [{name: v, mountPath: /v, subPath: s}]}]}}`,
		"the name of a pod":             `{metadata: {name: pod}, spec: {containers: [{name: main}]}}`,
		"a template without a main one": `{spec: {containers: [{name: helper, image: i}]}}`,
	} {
		t.Run(what, func(t *testing.T) {
			component := *read[v1beta1.Component](t, `{name: w, podTemplate: `+template+`}`)
			dgd := &v1beta1.DynamoGraphDeployment{Spec: v1beta1.DynamoGraphDeploymentSpec{Components: []v1beta1.Component{component}}}
			graph, _ := conversion.GraphToAlpha(dgd)
			graph.Spec.Services["w"].Ingress = &v1alpha1.IngressSpec{Enabled: true}
			again, _ := conversion.GraphToBeta(graph)
			compareSpec(t, "graph", dgd.Spec, again.Spec, nil)
			delete(again.Annotations, v1alpha1.AnnotationWrittenAs)
			if graph, _ = conversion.GraphToAlpha(again); conversion.WrittenAs(graph) != conversion.Beta || graph.Spec.Services["w"].Ingress == nil {
				t.Errorf("%s", indent(t, graph))
			}

			dcd := &v1beta1.DynamoComponentDeployment{Spec: v1beta1.DynamoComponentDeploymentSpec{Component: component}}
			stored, _ := conversion.ComponentToAlpha(dcd)
			stored.Spec.Ingress = &v1alpha1.IngressSpec{Enabled: true}
			lone, _ := conversion.ComponentToBeta(stored)
			compareSpec(t, "component", dcd.Spec, lone.Spec, nil)
			delete(lone.Annotations, v1alpha1.AnnotationWrittenAs)
			if stored, _ = conversion.ComponentToAlpha(lone); conversion.WrittenAs(stored) != conversion.Beta || stored.Spec.Ingress == nil {
				t.Errorf("%s", indent(t, stored))
			}
		})
	}
}

// TestAnEditOfAMountWins: a mount that v1alpha1 describes in detail, in its
// mainContainer, is not the one that the payload remembers.
func TestAnEditOfAMountWins(t *testing.T) {
	beta := &v1beta1.DynamoGraphDeployment{Spec: v1beta1.DynamoGraphDeploymentSpec{Components: []v1beta1.Component{*read[v1beta1.Component](t,
		`{name: w, podTemplate: {spec: {containers: [{name: main, image: i, volumeMounts: [{name: v, mountPath: /v, subPath: s}, {name: u, mountPath: /u, subPath: s}]}]}}}`)}}}
	alpha, _ := conversion.GraphToAlpha(beta)
	w := alpha.Spec.Services["w"]
	w.VolumeMounts = w.VolumeMounts[1:]
	w.ExtraPodSpec.MainContainer.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: true}}
	again, _ := conversion.GraphToBeta(alpha)
	want := []corev1.VolumeMount{{Name: "v", MountPath: "/v", ReadOnly: true}, {Name: "u", MountPath: "/u", SubPath: "s"}}
	if diff := cmp.Diff(want, again.Spec.Components[0].PodTemplate.Spec.Containers[0].VolumeMounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An edit changes an object of v1alpha1, and one of v1beta1 to the same. One that
// v1beta1 cannot say leaves that as it is.
type edit[A, B any] struct {
	alpha func(A)
	beta  func(B)
}

// service and component are those that an edit is about, if there are any.
func serviceOf(g *v1alpha1.DynamoGraphDeployment) *v1alpha1.SharedSpec {
	for _, s := range g.Spec.SortedServices() {
		return s
	}
	return &v1alpha1.SharedSpec{}
}

func componentOf(g *v1beta1.DynamoGraphDeployment) *v1beta1.Component {
	var first *v1beta1.Component
	for i := range g.Spec.Components {
		if c := &g.Spec.Components[i]; first == nil || c.Name < first.Name {
			first = c
		}
	}
	if first == nil {
		return &v1beta1.Component{}
	}
	return first
}

// mainOf is the main container of a component, unless it has none.
func mainOf(c *v1beta1.Component) *corev1.Container {
	if c.PodTemplate != nil {
		for i := range c.PodTemplate.Spec.Containers {
			if main := &c.PodTemplate.Spec.Containers[i]; main.Name == v1beta1.MainContainer {
				return main
			}
		}
	}
	return &corev1.Container{}
}

// whereMain makes an edit where there is a main container that says something: a
// service has no other way to tell of one.
func whereMain(change func(*v1alpha1.SharedSpec)) func(*v1alpha1.SharedSpec) {
	return func(s *v1alpha1.SharedSpec) {
		if s.ExtraPodSpec != nil && s.ExtraPodSpec.MainContainer != nil {
			change(s)
		}
	}
}

var componentEdits = map[string]edit[*v1alpha1.SharedSpec, *v1beta1.Component]{
	"replicas": {
		func(s *v1alpha1.SharedSpec) { s.Replicas = new(int32(77)) },
		func(c *v1beta1.Component) { c.Replicas = new(int32(77)) },
	},
	"multinode": {
		func(s *v1alpha1.SharedSpec) { s.Multinode = &v1alpha1.Multinode{NodeCount: 7} },
		func(c *v1beta1.Component) { c.Multinode = &v1beta1.Multinode{NodeCount: 7} },
	},
	"type": {
		func(s *v1alpha1.SharedSpec) { s.ComponentType, s.SubComponentType = "worker", "decode" },
		func(c *v1beta1.Component) { c.Type = v1beta1.ComponentTypeDecode },
	},
	"scaling adapter": {
		func(s *v1alpha1.SharedSpec) { s.ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true} },
		func(c *v1beta1.Component) { c.ScalingAdapter = &v1beta1.ScalingAdapter{} },
	},
	"ingress":     {alpha: func(s *v1alpha1.SharedSpec) { s.Ingress = &v1alpha1.IngressSpec{Enabled: true, Host: "h"} }},
	"labels":      {alpha: func(s *v1alpha1.SharedSpec) { s.Labels = map[string]string{"edited": "yes"} }},
	"annotations": {alpha: func(s *v1alpha1.SharedSpec) { s.Annotations = map[string]string{"edited": "yes"} }},
	"namespace":   {alpha: func(s *v1alpha1.SharedSpec) { s.DynamoNamespace = new(string) }},
}

var graphEdits = map[string]edit[*v1alpha1.DynamoGraphDeployment, *v1beta1.DynamoGraphDeployment]{
	"claims":  {alpha: func(g *v1alpha1.DynamoGraphDeployment) { g.Spec.PVCs = []v1alpha1.PVC{{}} }},
	"nothing": {alpha: func(*v1alpha1.DynamoGraphDeployment) {}},
	"env": {
		func(g *v1alpha1.DynamoGraphDeployment) { g.Spec.Envs = []corev1.EnvVar{{Name: "EDITED"}} },
		func(g *v1beta1.DynamoGraphDeployment) { g.Spec.Env = []corev1.EnvVar{{Name: "EDITED"}} },
	},
	"image of a main container": {
		func(g *v1alpha1.DynamoGraphDeployment) {
			whereMain(func(s *v1alpha1.SharedSpec) { s.ExtraPodSpec.MainContainer.Image = "edited" })(serviceOf(g))
		},
		func(g *v1beta1.DynamoGraphDeployment) {
			stored, _ := conversion.GraphToAlpha(g)
			whereMain(func(*v1alpha1.SharedSpec) { mainOf(componentOf(g)).Image = "edited" })(serviceOf(stored))
		},
	},
	"a mount more": {
		func(g *v1alpha1.DynamoGraphDeployment) {
			whereMain(func(s *v1alpha1.SharedSpec) {
				s.VolumeMounts = append(s.VolumeMounts, v1alpha1.VolumeMount{Name: "edited", MountPoint: "/edited"})
			})(serviceOf(g))
		},
		func(g *v1beta1.DynamoGraphDeployment) {
			stored, _ := conversion.GraphToAlpha(g)
			whereMain(func(*v1alpha1.SharedSpec) {
				main := mainOf(componentOf(g))
				main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "edited", MountPath: "/edited"})
			})(serviceOf(stored))
		},
	},
}

var requestEdits = map[string]edit[*v1alpha1.DynamoGraphDeploymentRequest, *v1beta1.DynamoGraphDeploymentRequest]{
	"namespace": {alpha: func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{Namespace: "other"}
	}},
	"claim for the output": {alpha: func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.OutputPVC = "out" }},
	"discovery":            {alpha: func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.EnableGPUDiscovery = true }},
	"rest of the configuration": {alpha: func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		var config map[string]json.RawMessage
		if json.Unmarshal(r.Spec.ProfilingConfig.Config.Raw, &config) != nil {
			return
		}
		config["sweep"] = json.RawMessage(`{"max":4}`)
		text, err := json.Marshal(config)
		if err == nil {
			r.Spec.ProfilingConfig.Config = &runtime.RawExtension{Raw: text}
		}
	}},
	"model": {
		func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.Model = "edited" },
		func(r *v1beta1.DynamoGraphDeploymentRequest) { r.Spec.Model = "edited" },
	},
	"image": {
		func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.ProfilerImage = "edited" },
		func(r *v1beta1.DynamoGraphDeploymentRequest) { r.Spec.Image = "edited" },
	},
	"node selector": {
		func(r *v1alpha1.DynamoGraphDeploymentRequest) {
			r.Spec.ProfilingConfig.NodeSelector = map[string]string{"edited": "yes"}
		},
		func(r *v1beta1.DynamoGraphDeploymentRequest) {
			stored, _ := conversion.RequestToAlpha(r)
			stored.Spec.ProfilingConfig.NodeSelector = map[string]string{"edited": "yes"}
			stored.Annotations = nil
			shown, _ := conversion.RequestToBeta(stored) // makes the job, if there is none
			r.Spec.Overrides = shown.Spec.Overrides
		},
	},
}

var adapterEdits = map[string]edit[*v1alpha1.DynamoGraphDeploymentScalingAdapter, *v1beta1.DynamoGraphDeploymentScalingAdapter]{
	"replicas": {
		func(a *v1alpha1.DynamoGraphDeploymentScalingAdapter) { a.Spec.Replicas = 77 },
		func(a *v1beta1.DynamoGraphDeploymentScalingAdapter) { a.Spec.Replicas = 77 },
	},
	"service": {
		func(a *v1alpha1.DynamoGraphDeploymentScalingAdapter) { a.Spec.DGDRef.ServiceName = "edited" },
		func(a *v1beta1.DynamoGraphDeploymentScalingAdapter) { a.Spec.DGDRef.ComponentName = "edited" },
	},
}

// object is what edits of one kind are made to.
type object interface {
	metav1.Object
	runtime.Object
}

// checkEdits makes each edit to the v1alpha1 form of an object that was written as
// v1beta1. It shows as if it had been made there, nothing else changes, and it is
// still there after the next writing as v1beta1.
func checkEdits[A, B object](t *testing.T, seed int64, fresh func() B, down func(B) A, up func(A) B, edits map[string]edit[A, B]) {
	t.Helper()
	if t.Failed() {
		return // one failure is enough to read
	}
	filled := fresh()
	filler(seed).Fill(filled)
	written := servedAs(t, filled, fresh)
	for what, e := range edits {
		want := written.DeepCopyObject().(B)
		if e.beta != nil {
			e.beta(want)
		}
		stored := down(written)
		as := conversion.WrittenAs(stored)
		e.alpha(stored)
		shown := up(stored)
		if diff := cmp.Diff(unannotated(t, want), unannotated(t, shown)); diff != "" {
			t.Errorf("seed %d, edit of %s in v1alpha1, shown as v1beta1 (-want +got):\n%s", seed, what, diff)
		}
		shown.SetLabels(map[string]string{"edited": "again"})
		back := down(shown)
		stored.SetLabels(map[string]string{"edited": "again"})
		if diff := cmp.Diff(unannotated(t, stored), unannotated(t, back)); diff != "" {
			t.Errorf("seed %d, edit of %s in v1alpha1, stored after the next write in v1beta1 (-want +got):\n%s", seed, what, diff)
		}
		if now := conversion.WrittenAs(back); now != as {
			t.Errorf("seed %d, edit of %s: written as %s before, %s after", seed, what, as, now)
		}
		if diff := cmp.Diff(unannotated(t, shown), unannotated(t, up(back))); diff != "" {
			t.Errorf("seed %d, edit of %s in v1alpha1, shown at last (-want +got):\n%s", seed, what, diff)
		}
	}
}

// servedAs is an object as a server gives it, with nothing of an earlier conversion.
func servedAs[T object](t *testing.T, in T, fresh func() T) T {
	t.Helper()
	in.SetAnnotations(nil)
	for range 2 {
		text, err := json.Marshal(in)
		must(t, err)
		in = fresh()
		must(t, json.Unmarshal(text, in))
	}
	return in
}

// unannotated is an object without what a conversion keeps beside it.
func unannotated(t *testing.T, o object) string {
	t.Helper()
	copied := o.DeepCopyObject().(object)
	copied.SetAnnotations(nil)
	return canonical(t, copied)
}

func editsOf(t *testing.T, seed int64) {
	t.Helper()
	graph, lone := map[string]edit[*v1alpha1.DynamoGraphDeployment, *v1beta1.DynamoGraphDeployment]{}, map[string]edit[*v1alpha1.DynamoComponentDeployment, *v1beta1.DynamoComponentDeployment]{}
	maps.Copy(graph, graphEdits)
	for what, e := range componentEdits {
		g := edit[*v1alpha1.DynamoGraphDeployment, *v1beta1.DynamoGraphDeployment]{alpha: func(g *v1alpha1.DynamoGraphDeployment) { e.alpha(serviceOf(g)) }}
		c := edit[*v1alpha1.DynamoComponentDeployment, *v1beta1.DynamoComponentDeployment]{alpha: func(c *v1alpha1.DynamoComponentDeployment) { e.alpha(&c.Spec.SharedSpec) }}
		if e.beta != nil {
			g.beta = func(g *v1beta1.DynamoGraphDeployment) { e.beta(componentOf(g)) }
			c.beta = func(c *v1beta1.DynamoComponentDeployment) { e.beta(&c.Spec.Component) }
		}
		graph[what], lone[what] = g, c
	}
	checkEdits(t, seed, func() *v1beta1.DynamoGraphDeployment { return &v1beta1.DynamoGraphDeployment{} }, first(conversion.GraphToAlpha), first(conversion.GraphToBeta), graph)
	checkEdits(t, seed, func() *v1beta1.DynamoComponentDeployment { return &v1beta1.DynamoComponentDeployment{} }, first(conversion.ComponentToAlpha), first(conversion.ComponentToBeta), lone)
	checkEdits(t, seed, func() *v1beta1.DynamoGraphDeploymentRequest { return &v1beta1.DynamoGraphDeploymentRequest{} }, first(conversion.RequestToAlpha), first(conversion.RequestToBeta), requestEdits)
	checkEdits(t, seed, func() *v1beta1.DynamoGraphDeploymentScalingAdapter {
		return &v1beta1.DynamoGraphDeploymentScalingAdapter{}
	}, conversion.AdapterToAlpha, conversion.AdapterToBeta, adapterEdits)
}

// TestEditsOfTheOtherVersionSurvive is FuzzEdits for a few objects.
func TestEditsOfTheOtherVersionSurvive(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	for range 200 {
		editsOf(t, random.Int63())
	}
}

func FuzzEdits(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) { editsOf(t, seed) })
}

// TestLosingOurWordMakesNoBeta: an object that was written as v1alpha1 is one, also
// if whoever writes its v1beta1 form keeps the payload alone, as the original does.
func TestLosingOurWordMakesNoBeta(t *testing.T) {
	random := rand.New(rand.NewSource(4))
	for range 300 {
		forgetful(t, random.Int63())
	}
}

func FuzzForgetful(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) { forgetful(t, seed) })
}

func forgetful(t *testing.T, seed int64) {
	t.Helper()
	fill := filler(seed)
	var graph v1alpha1.DynamoGraphDeployment
	var lone v1alpha1.DynamoComponentDeployment
	var request v1alpha1.DynamoGraphDeploymentRequest
	for _, object := range []any{&graph, &lone, &request} {
		fill.Fill(object)
	}
	g, _ := conversion.GraphToBeta(served(t, &graph))
	c, _ := conversion.ComponentToBeta(served(t, &lone))
	r, _ := conversion.RequestToBeta(served(t, &request))
	for _, o := range []metav1.Object{g, c, r} {
		delete(o.GetAnnotations(), v1alpha1.AnnotationWrittenAs)
	}
	graphBack, _ := conversion.GraphToAlpha(g)
	loneBack, _ := conversion.ComponentToAlpha(c)
	requestBack, _ := conversion.RequestToAlpha(r)
	for kind, o := range map[string]metav1.Object{"graph": graphBack, "component": loneBack, "request": requestBack} {
		if conversion.WrittenAs(o) != conversion.Alpha {
			t.Errorf("seed %d: the %s became one of v1beta1", seed, kind)
		}
	}
}
