package conversion_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// limit is what an API server stores of annotations, and large is the largest
// input for which it must be enough.
const (
	limit = 256 << 10
	large = 100 << 10
)

// pick is one of several values.
func pick[T any](c randfill.Continue, of ...T) T { return of[c.Intn(len(of))] }

// filler makes objects that a server could hold: what its schemas exclude, or
// defaulting and the operator's own writing rule out, is left out.
func filler(seed int64) *randfill.Filler {
	texts := []string{"", "a", "b", "main", "profiler", "sidecar-frontend", "cache", "/x", "ü \"\\\n"}
	f := randfill.NewWithSeed(seed).NilChance(0.6).NumElements(0, 3).MaxDepth(14)
	return f.Funcs(
		func(s *string, c randfill.Continue) { *s = pick(c, texts...) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c, "0", "1", "500m", "0.5", "8Gi", "1e3"))
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte(pick(c, `{}`, `{"a":1,"b":{"c":"d"}}`, `{"sla":{"isl":4000,"ttft":200.5},"x":[1,2.50]}`,
				`{"deployment":{"modelCache":{"modelPathInPvc":"m","pvcName":"p"}},"planner":{"mode":"sla"}}`))
			r.Object = nil
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = pick(c, intstr.FromInt32(8000), intstr.FromString("http"))
		},
		func(v *metav1.Time, c randfill.Continue) { *v = metav1.Unix(int64(c.Intn(1<<30)), 0) },
		func(v *metav1.MicroTime, _ randfill.Continue) { *v = metav1.MicroTime{} },
		func(v *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&v.Name)
			c.Fill(&v.Labels)
			c.Fill(&v.Annotations)
			c.Fill(&v.Finalizers)
		},
		func(v *metav1.TypeMeta, _ randfill.Continue) { *v = metav1.TypeMeta{} },
		func(v *v1alpha1.ResourceItem, c randfill.Continue) {
			quantities := []string{"", "1", "500m", "0.5", "1000m", "nonsense"}
			*v = v1alpha1.ResourceItem{CPU: pick(c, quantities...), Memory: pick(c, quantities...), GPU: pick(c, quantities...), GPUType: pick(c, "", "", "amd.com/gpu", "cpu")}
			if c.Bool() {
				v.Custom = map[string]string{pick(c, "rdma/ib", "nvidia.com/gpu", "cpu"): pick(c, quantities...)}
			}
		},
		func(v *v1alpha1.SharedSpec, c randfill.Continue) {
			c.FillNoCustom(v)
			v.ComponentType = pick[v1alpha1.ComponentType](c, "", "worker", "prefill", "decode", "frontend", "main", "default", "my word")
			v.SubComponentType = pick(c, "", "prefill", "decode", "other")
		},
		func(v *v1alpha1.ServiceReplicaStatus, c randfill.Continue) {
			c.FillNoCustom(v)
			// One name is not listed, and of several the last is the one.
			if v.ComponentNames = nil; c.Bool() {
				v.ComponentNames = []string{"old", "new"}
				v.ComponentName = "new"
			}
		},
		func(v *v1alpha1.DynamoGraphDeploymentRequest, c randfill.Continue) {
			c.FillNoCustom(v)
			v.Status.State = pick[v1alpha1.RequestState](c, "", "Pending", "Profiling", "Deploying", "Ready", "DeploymentDeleted", "Failed")
			if v.Status.Deployment != nil && *v.Status.Deployment == (v1alpha1.RequestedDeployment{}) {
				v.Status.Deployment = nil
			}
			if v.Spec.ProfilingConfig.Config == nil { // is required
				v.Spec.ProfilingConfig.Config = &runtime.RawExtension{Raw: []byte("{}")}
			}
			if o := v.Spec.Overrides; o != nil && o.ProfilingJob == nil && o.DGD == nil {
				v.Spec.Overrides = nil
			}
			// What the configuration says wins over the overrides, which are ours.
			if o := v.Spec.Overrides; o != nil && o.ProfilingJob != nil {
				config, pod := &v.Spec.ProfilingConfig, &o.ProfilingJob.Template.Spec
				config.Resources, config.NodeSelector, config.Tolerations = nil, nil, nil
				pod.NodeSelector, pod.Tolerations = nil, nil
				for i := range pod.Containers {
					pod.Containers[i].Resources = corev1.ResourceRequirements{}
				}
			}
		},
		func(v *v1beta1.Component, c randfill.Continue) {
			c.FillNoCustom(v)
			v.Type = pick[v1beta1.ComponentType](c, "", "worker", "prefill", "decode", "frontend", "planner", "epp")
			if v.Experimental != nil && v.Experimental.Failover != nil {
				v.Experimental.Failover.NumShadows = 1
			}
			if v.PodTemplate != nil {
				v.PodTemplate.Spec.Containers = unique(v.PodTemplate.Spec.Containers)
			}
			v.Name = fmt.Sprintf("%s-%d", pick(c, "a", "B", "c"), c.Uint64())
		},
		func(v *v1beta1.DynamoComponentDeployment, c randfill.Continue) {
			c.FillNoCustom(v)
			v.Spec.Name = pick(c, "", "a", v.Name)
		},
		func(v *v1beta1.Multinode, _ randfill.Continue) { v.NodeCount = 2 },
		func(v *v1beta1.ComponentReplicaStatus, c randfill.Continue) {
			c.FillNoCustom(v)
			v.ComponentNames = pick(c, nil, []string{"a"}, []string{"old", "new"})
		},
		func(v *v1beta1.DynamoGraphDeploymentRequest, c randfill.Continue) {
			c.FillNoCustom(v)
			s := &v.Status
			s.Phase = pick[v1beta1.RequestPhase](c, "", "Pending", "Profiling", "Deploying", "Ready", "Deployed", "Failed")
			if v.Spec.AutoApply == nil {
				yes := true
				v.Spec.AutoApply = &yes
			}
			if v.Spec.SLA != nil {
				v.Spec.SLA.OptimizationType = pick(c, "", "latency", "throughput")
			}
			if s.Deployment != nil {
				// A graph is deleted in one phase only, and created in the other.
				s.Deployment.Deleted, s.Deployment.Created = s.Phase == "Ready", s.Phase == "Deployed"
				if *s.Deployment == (v1beta1.RequestedDeployment{}) {
					s.Deployment = nil
				}
			} else if s.Phase == "Deployed" {
				s.Deployment = &v1beta1.RequestedDeployment{Created: true}
			}
			if r := s.ProfilingResults; r != nil && r.SelectedConfig == nil && r.Reference == "" && len(r.Pareto) == 0 {
				s.ProfilingResults = nil
			}
		},
	)
}

// unique drops containers of a name that was there before.
func unique(all []corev1.Container) []corev1.Container {
	seen := map[string]bool{}
	var kept []corev1.Container
	for _, c := range all {
		if !seen[c.Name] {
			seen[c.Name] = true
			kept = append(kept, c)
		}
	}
	return kept
}

// trip is a way there and back for one kind.
type trip struct {
	name string
	// run makes an object and sends it there, back and there again.
	run func(*randfill.Filler) (start, there, back, again any)
}

func tripOf[A, B any](name string, there func(A) B, back func(B) A, fresh func() A) trip {
	return trip{name, func(f *randfill.Filler) (any, any, any, any) {
		filled, start := fresh(), fresh()
		f.Fill(filled)
		// As a server gives it: no empty lists.
		for range 2 {
			text, err := json.Marshal(filled)
			if err != nil {
				panic(err)
			}
			start = fresh()
			if err := json.Unmarshal(text, start); err != nil {
				panic(err)
			}
			filled = start
		}
		b := there(start)
		a := back(b)
		return start, b, a, there(a)
	}}
}

func first[A, B any](convert func(A) (B, []string)) func(A) B {
	return func(a A) B { b, _ := convert(a); return b }
}

var fromAlpha = []trip{
	tripOf("graph", first(conversion.GraphToBeta), first(conversion.GraphToAlpha), func() *v1alpha1.DynamoGraphDeployment { return &v1alpha1.DynamoGraphDeployment{} }),
	tripOf("component", first(conversion.ComponentToBeta), first(conversion.ComponentToAlpha), func() *v1alpha1.DynamoComponentDeployment { return &v1alpha1.DynamoComponentDeployment{} }),
	tripOf("request", first(conversion.RequestToBeta), first(conversion.RequestToAlpha), func() *v1alpha1.DynamoGraphDeploymentRequest { return &v1alpha1.DynamoGraphDeploymentRequest{} }),
	tripOf("adapter", conversion.AdapterToBeta, conversion.AdapterToAlpha, func() *v1alpha1.DynamoGraphDeploymentScalingAdapter {
		return &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
	}),
}

var fromBeta = []trip{
	tripOf("graph", first(conversion.GraphToAlpha), first(conversion.GraphToBeta), func() *v1beta1.DynamoGraphDeployment { return &v1beta1.DynamoGraphDeployment{} }),
	tripOf("component", first(conversion.ComponentToAlpha), first(conversion.ComponentToBeta), func() *v1beta1.DynamoComponentDeployment { return &v1beta1.DynamoComponentDeployment{} }),
	tripOf("request", first(conversion.RequestToAlpha), first(conversion.RequestToBeta), func() *v1beta1.DynamoGraphDeploymentRequest { return &v1beta1.DynamoGraphDeploymentRequest{} }),
	tripOf("adapter", conversion.AdapterToAlpha, conversion.AdapterToBeta, func() *v1beta1.DynamoGraphDeploymentScalingAdapter {
		return &v1beta1.DynamoGraphDeploymentScalingAdapter{}
	}),
}

func checkTrip(t *testing.T, way trip, seed int64) {
	t.Helper()
	if t.Failed() {
		return // one failure is enough to read
	}
	start, there, back, again := way.run(filler(seed))
	if diff := cmp.Diff(canonical(t, start), canonical(t, back)); diff != "" {
		t.Errorf("%s, seed %d: there and back (-want +got):\n%s\nbetween: %s", way.name, seed, diff, indent(t, there))
	}
	if diff := cmp.Diff(indent(t, there), indent(t, again)); diff != "" {
		t.Errorf("%s, seed %d: the second way differs from the first (-first +second):\n%s", way.name, seed, diff)
	}
	input, err := json.Marshal(start)
	must(t, err)
	if size := annotationBytes(there); len(input) < large && size > limit {
		t.Errorf("%s, seed %d: %d bytes of annotations from %d bytes of object", way.name, seed, size, len(input))
	}
	checkJSON(t, way.name, seed, start.(runtime.Object), back.(runtime.Object), there.(runtime.Object))
}

// checkJSON makes the same trip as the webhook does, in JSON.
func checkJSON(t *testing.T, name string, seed int64, start, back, there runtime.Object) {
	t.Helper()
	here := start.DeepCopyObject()
	gvk := back.GetObjectKind().GroupVersionKind() // the start's is empty
	here.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(here)
	must(t, err)
	other, err := conversion.Convert(text, there.GetObjectKind().GroupVersionKind().GroupVersion().String())
	must(t, err)
	home, err := conversion.Convert(other.JSON, gvk.GroupVersion().String())
	must(t, err)
	var want, got any
	must(t, json.Unmarshal(text, &want))
	must(t, json.Unmarshal(home.JSON, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, seed %d: there and back as JSON (-want +got):\n%s\nbetween: %s", name, seed, diff, other.JSON)
	}
	encoded, err := json.Marshal(there)
	must(t, err)
	if diff := cmp.Diff(unannotatedJSON(t, encoded), unannotatedJSON(t, other.JSON)); diff != "" {
		t.Errorf("%s, seed %d: as JSON it is another object (-typed +JSON):\n%s", name, seed, diff)
	}
	if size := annotationsIn(t, other.JSON); len(text) < large && size > limit {
		t.Errorf("%s, seed %d: %d bytes of annotations from %d bytes of JSON", name, seed, size, len(text))
	}
}

// unannotatedJSON is an object without what a conversion keeps beside it.
func unannotatedJSON(t *testing.T, raw []byte) any {
	t.Helper()
	var object map[string]any
	must(t, json.Unmarshal(raw, &object))
	if meta, ok := object["metadata"].(map[string]any); ok {
		delete(meta, "annotations")
	}
	return object
}

func annotationsIn(t *testing.T, raw []byte) int {
	t.Helper()
	var object metav1.PartialObjectMetadata
	must(t, json.Unmarshal(raw, &object))
	return annotationBytes(&object)
}

func annotationBytes(object any) int {
	size := 0
	for key, value := range object.(metav1.Object).GetAnnotations() {
		size += len(key) + len(value)
	}
	return size
}

// canonical is an object as a person would see it who does not care which
// version it is stored in.
func canonical(t *testing.T, object any) string {
	t.Helper()
	o := object.(runtime.Object).DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // an empty one is filled in
	return indent(t, o)
}

func indent(t *testing.T, object any) string {
	t.Helper()
	text, err := json.MarshalIndent(object, "", " ")
	must(t, err)
	return string(text)
}

func TestRoundTripsLoseNothing(t *testing.T) {
	for from, ways := range map[string][]trip{"v1alpha1": fromAlpha, "v1beta1": fromBeta} {
		for _, way := range ways {
			t.Run(from+" "+way.name, func(t *testing.T) {
				random := rand.New(rand.NewSource(1))
				for range 300 {
					checkTrip(t, way, random.Int63())
				}
			})
		}
	}
}

// TestForgedPayloadsChangeNothingVisible gives an object the payload of another:
// whatever it says, the object is the same when it comes back.
func TestForgedPayloadsChangeNothingVisible(t *testing.T) {
	random := rand.New(rand.NewSource(2))
	for range 300 {
		forge(t, random.Int63())
	}
}

func FuzzForgedPayload(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) { forge(t, seed) })
}

func forge(t *testing.T, seed int64) {
	t.Helper()
	if t.Failed() {
		return
	}
	fill := filler(seed)
	var alpha, otherAlpha v1alpha1.DynamoGraphDeployment
	var beta, otherBeta v1beta1.DynamoGraphDeployment
	for _, object := range []any{&alpha, &otherAlpha, &beta, &otherBeta} {
		fill.Fill(object)
	}
	alpha, beta = *served(t, &alpha), *served(t, &beta)
	// The payloads are about services and components that are there.
	forgedBeta, forgedAlpha := v1beta1.DynamoGraphDeploymentSpec{}, v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{}}
	i := 0
	for name := range alpha.Spec.SortedServices() {
		if i < len(otherBeta.Spec.Components) {
			c := otherBeta.Spec.Components[i]
			c.Name = name
			forgedBeta.Components = append(forgedBeta.Components, c)
		}
		i++
	}
	i = 0
	for _, service := range otherAlpha.Spec.SortedServices() {
		if i < len(beta.Spec.Components) {
			forgedAlpha.Services[beta.Spec.Components[i].Name] = service
		}
		i++
	}
	annotateForged(t, &alpha.ObjectMeta, forgedBeta)
	annotateForged(t, &beta.ObjectMeta, forgedAlpha)

	there, _ := conversion.GraphToBeta(&alpha)
	back, _ := conversion.GraphToAlpha(there)
	if diff := cmp.Diff(indent(t, alpha.Spec), indent(t, back.Spec)); diff != "" {
		t.Errorf("seed %d: v1alpha1 with a forged payload (-want +got):\n%s", seed, diff)
	}
	down, _ := conversion.GraphToAlpha(&beta)
	up, _ := conversion.GraphToBeta(down)
	if diff := cmp.Diff(indent(t, beta.Spec), indent(t, up.Spec)); diff != "" {
		t.Errorf("seed %d: v1beta1 with a forged payload (-want +got):\n%s", seed, diff)
	}
}

// served is an object as a server gives it: no empty lists.
func served[T any](t *testing.T, in *T) *T {
	t.Helper()
	for range 2 {
		text, err := json.Marshal(in)
		must(t, err)
		in = new(T)
		must(t, json.Unmarshal(text, in))
	}
	return in
}

func annotateForged(t *testing.T, meta *metav1.ObjectMeta, spec any) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"version": 1, "spec": spec})
	must(t, err)
	meta.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: string(text)}
}

// FuzzAnyBytes: no payload and no object makes a conversion panic.
func FuzzAnyBytes(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","spec":{"services":{"a":null}}}`), `{"version":1,"spec":{"components":[{"name":"a"}]}}`)
	f.Add([]byte(`{"apiVersion":"nvidia.com/v1beta1","kind":"DynamoGraphDeploymentRequest","spec":{"overrides":{"profilingJob":{}}}}`), `{"version":1,"spec":{"profilingConfig":{"config":[1]}}}`)
	f.Add([]byte(`{"apiVersion":"nvidia.com/v1beta1","kind":"DynamoComponentDeployment","spec":{"podTemplate":{"spec":{"containers":[{"name":"main"}]}}}}`), `{"version":1,"spec":{"extraPodSpec":{}},"absent":["serviceName"]}`)
	f.Fuzz(func(t *testing.T, object []byte, payload string) {
		var fields map[string]any
		if json.Unmarshal(object, &fields) == nil && fields != nil {
			fields["metadata"] = map[string]any{"name": "x", "annotations": map[string]any{
				v1alpha1.AnnotationGraphPayload: payload, v1alpha1.AnnotationComponentPayload: payload, v1alpha1.AnnotationRequestPayload: payload,
			}}
			if text, err := json.Marshal(fields); err == nil {
				object = text
			}
		}
		for _, version := range []string{"nvidia.com/v1alpha1", "nvidia.com/v1beta1"} {
			result, err := conversion.Convert(object, version)
			if err != nil {
				continue
			}
			if !json.Valid(result.JSON) {
				t.Errorf("no JSON: %s", result.JSON)
			} else if size := annotationsIn(t, result.JSON); len(object) < large && size > limit {
				t.Errorf("%d bytes of annotations from %d bytes of object", size, len(object))
			}
		}
	})
}

func FuzzFromAlpha(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) {
		for _, way := range fromAlpha {
			checkTrip(t, way, seed)
		}
	})
}

func FuzzFromBeta(f *testing.F) {
	f.Add(int64(1))
	f.Fuzz(func(t *testing.T, seed int64) {
		for _, way := range fromBeta {
			checkTrip(t, way, seed)
		}
	})
}
