package validation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

func TestUpdate(t *testing.T) {
	cases := map[string]struct {
		kind     func() graph.Object
		from, to string
		want     []string
		warned   string
	}{
		"the engine of a graph stays":                {dgd, `{backendFramework: vllm, services: {a: {}}}`, `{backendFramework: sglang, services: {a: {}}}`, []string{"FieldValueInvalid spec.backendFramework"}, ""},
		"it is not set later":                        {dgd, `{services: {a: {}}}`, `{backendFramework: sglang, services: {a: {}}}`, []string{"FieldValueInvalid spec.backendFramework"}, ""},
		"the engine of a component stays":            {dcd, `{backendFramework: vllm}`, `{}`, []string{"FieldValueInvalid spec.backendFramework"}, ""},
		"a component may span nodes later":           {dcd, `{}`, `{multinode: {nodeCount: 2}}`, nil, "spec.multinode: nothing tells"},
		"services come and go":                       {dgd, `{services: {a: {}, b: {}}}`, `{services: {a: {}, c: {}}}`, nil, ""},
		"one node does not become several":           {dgd, `{services: {a: {}}}`, `{services: {a: {multinode: {nodeCount: 2}}}}`, []string{"FieldValueForbidden spec.services[a].multinode"}, "spec.services[a].multinode"},
		"several nodes do not become one":            {dgd, `{services: {a: {multinode: {nodeCount: 2}}}}`, `{services: {a: null}}`, []string{"FieldValueForbidden spec.services[a].multinode"}, ""},
		"a group may grow":                           {dgd, `{services: {a: {multinode: {nodeCount: 2}}}}`, `{services: {a: {multinode: {nodeCount: 4}}}}`, nil, "spec.services[a].multinode"},
		"a created claim keeps its class":            {dgd, claim("s", "1Gi"), claim("t", "1Gi"), []string{"FieldValueInvalid spec.pvcs[0].storageClass"}, ""},
		"it may grow":                                {dgd, claim("s", "1Gi"), claim("s", "2Gi"), nil, ""},
		"it does not shrink":                         {dgd, claim("s", "2Gi"), claim("s", "1Gi"), []string{"FieldValueInvalid spec.pvcs[0].size"}, ""},
		"a model keeps its base":                     {dm, `{modelName: m, baseModelName: b}`, `{modelName: m, baseModelName: c}`, []string{"FieldValueInvalid spec.baseModelName"}, ""},
		"a model keeps its type":                     {dm, `{modelName: m, baseModelName: b, modelType: base}`, `{modelName: m, baseModelName: b, modelType: adapter}`, []string{"FieldValueInvalid spec.modelType"}, ""},
		"a model's name may change":                  {dm, `{modelName: m, baseModelName: b}`, `{modelName: n, baseModelName: b}`, nil, ""},
		"an adapter stays with its service":          {dgdsa, `{replicas: 1, dgdRef: {name: g, serviceName: a}}`, `{replicas: 1, dgdRef: {name: g, serviceName: b}}`, []string{"FieldValueInvalid spec.dgdRef"}, ""},
		"an adapter scales":                          {dgdsa, `{replicas: 1, dgdRef: {name: g, serviceName: a}}`, `{replicas: 5, dgdRef: {name: g, serviceName: a}}`, nil, ""},
		"a request that waits may change":            {dgdr(""), `{model: m, profilingConfig: {profilerImage: p, config: {}}}`, `{model: n, profilingConfig: {profilerImage: p, config: {}}}`, nil, ""},
		"one that is worked on may not":              {dgdr(v1alpha1.RequestStateProfiling), `{model: m, profilingConfig: {profilerImage: p, config: {}}}`, `{model: n, profilingConfig: {profilerImage: p, config: {}}}`, []string{"FieldValueForbidden spec"}, ""},
		"one that failed may":                        {dgdr(v1alpha1.RequestStateFailed), `{model: m, profilingConfig: {profilerImage: p, config: {}}}`, `{model: n, profilingConfig: {profilerImage: p, config: {}}}`, nil, ""},
		"back from an edit without effect it may":    {edited, `{model: m, profilingConfig: {profilerImage: p, config: {}}}`, `{model: n, profilingConfig: {profilerImage: p, config: {}}}`, nil, ""},
		"replicas under an adapter are no effect":    {dgd, `{services: {a: {replicas: 5, scalingAdapter: {enabled: true}}}}`, `{services: {a: {replicas: 1, scalingAdapter: {enabled: true}}}}`, nil, "spec.services[a].replicas: 1 has no effect"},
		"workers that all have other names go first": {dgd, `{services: {a: {componentType: worker}, b: {componentType: worker}}}`, `{services: {c: {componentType: worker}}}`, nil, "spec.services: a, b"},
		"decode by itself does, too":                 {dgd, `{services: {d: {componentType: decode}, p: {componentType: prefill}}}`, `{services: {e: {componentType: decode}, p: {componentType: prefill}}}`, nil, "spec.services: d "},
		"not if one stays":                           {dgd, `{services: {a: {componentType: worker}, b: {componentType: worker}}}`, `{services: {a: {componentType: worker}, c: {componentType: worker}}}`, nil, ""},
		"nor if none of them ran":                    {dgd, `{services: {a: {componentType: worker, replicas: 0}}}`, `{services: {b: {componentType: worker}}}`, nil, ""},
		"nor if none comes in their place":           {dgd, `{services: {a: {componentType: worker}, b: {}}}`, `{services: {b: {}}}`, nil, ""},
		"an old fault is no reason to refuse":        {dgd, `{services: {my_svc: {}, a: {}}}`, `{services: {my_svc: {}, a: {replicas: 2}}}`, nil, ""},
		"a new fault beside it is":                   {dgd, `{services: {my_svc: {}, a: {}}}`, `{services: {my_svc: {}, a: {replicas: -1}}}`, []string{"FieldValueInvalid spec.services[a].replicas"}, ""},
		"an old fault made different is new":         {dgd, `{services: {a: {replicas: -1}}}`, `{services: {a: {replicas: -2}}}`, []string{"FieldValueInvalid spec.services[a].replicas"}, ""},
		"an old fault may be mended":                 {dgd, `{services: {a: {replicas: -1}}}`, `{services: {a: {replicas: 1}}}`, nil, ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			old, now := spec(t, c.kind(), c.from), spec(t, c.kind(), c.to)
			v := Update(old, now, Scope{ClusterWide: true})
			if diff := cmp.Diff(c.want, summary(v.Problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if got := strings.Join(v.Warnings, "\n"); (c.warned == "") != (got == "") || !strings.Contains(got, c.warned) {
				t.Errorf("warnings %q, want %q", got, c.warned)
			}
			leaving := now.DeepCopyObject().(graph.Object)
			leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			if v := Update(old, leaving, Scope{}); len(v.Problems) > 0 {
				t.Errorf("on its way out it is refused: %v", v.Problems)
			}
			labelled := old.DeepCopyObject().(graph.Object)
			labelled.SetLabels(map[string]string{"a": "b"})
			labelled.SetFinalizers(nil)
			if v := Update(old, labelled, Scope{}); len(v.Problems) > 0 {
				t.Errorf("a label is refused: %v", v.Problems)
			}
		})
	}
}

// TestARequestOfBetaIsFrozenAsAWhole: what v1alpha1 has no fields for stands in an
// annotation there, and is no freer for that.
func TestARequestOfBetaIsFrozenAsAWhole(t *testing.T) {
	frozen := []string{"FieldValueForbidden spec"}
	for rule, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"a target of both versions":          {`{model: m, sla: {ttft: 1}}`, `{model: m, sla: {ttft: 2}}`, frozen},
		"the hardware":                       {`{model: m, hardware: {gpuSku: t4}}`, `{model: m, hardware: {gpuSku: l4}}`, frozen},
		"hardware that comes later":          {`{model: m}`, `{model: m, hardware: {totalGpus: 8}}`, frozen},
		"the strategy":                       {`{model: m, backend: vllm}`, `{model: m, backend: vllm, searchStrategy: thorough}`, frozen},
		"how many requests come":             {`{model: m, workload: {concurrency: 1}}`, `{model: m, workload: {concurrency: 2}}`, frozen},
		"how often they come":                {`{model: m, workload: {requestRate: 1}}`, `{model: m, workload: {}}`, frozen},
		"how long they take":                 {`{model: m, sla: {ttft: 1, e2eLatency: 1}}`, `{model: m, sla: {ttft: 1, e2eLatency: 2}}`, frozen},
		"a default that is written out":      {`{model: m}`, `{model: m, searchStrategy: rapid, hardware: {}}`, nil},
		"the version of the runtime is told": {`{model: m, hardware: {gpuSku: t4}}`, `{model: m, hardware: {gpuSku: t4}, runtimeVersionOverride: 1.2.3}`, nil},
		"the graph is wanted after all":      {`{model: m, hardware: {gpuSku: t4}, autoApply: false}`, `{model: m, hardware: {gpuSku: t4}, autoApply: true}`, nil},
	} {
		t.Run(rule, func(t *testing.T) {
			request := func(text string) *v1alpha1.DynamoGraphDeploymentRequest {
				beta := &v1beta1.DynamoGraphDeploymentRequest{}
				if err := yaml.UnmarshalStrict([]byte("spec: "+text), beta); err != nil {
					t.Fatal(err)
				}
				r, _ := conversion.RequestToAlpha(beta)
				r.Status.State, r.Status.ObservedGeneration = v1alpha1.RequestStateProfiling, 1
				r.Status.Accepted = &v1alpha1.AcceptedRequest{Version: conversion.Beta}
				return r
			}
			was, is := request(c.from), request(c.to)
			if diff := cmp.Diff(c.want, summary(Update(was, is, Scope{ClusterWide: true}).Problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			for _, r := range []*v1alpha1.DynamoGraphDeploymentRequest{was, is} {
				delete(r.Annotations, v1alpha1.AnnotationWrittenAs)
				r.Spec = v1alpha1.DynamoGraphDeploymentRequestSpec{}
			}
			if v := Update(was, is, Scope{ClusterWide: true}); len(v.Problems) > 0 {
				t.Errorf("the annotations of one that was written as v1alpha1 are refused: %v", v.Problems)
			}
		})
	}
}

// TestWhatIsSaidIsBounded: whoever writes an object could otherwise fill the
// status, and a status that is too long cannot be written at all.
func TestWhatIsSaidIsBounded(t *testing.T) {
	hostile := &v1alpha1.DynamoGraphDeployment{Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{}}}
	for i := range 200 {
		secret := strings.Repeat("/", 10_000)
		hostile.Spec.Services[strings.Repeat("x", i+1)] = &v1alpha1.SharedSpec{EnvFromSecret: &secret}
	}
	if got := len(Fault(GraphDeployment(hostile)).Error()); got > 32_000 {
		t.Errorf("%d characters", got)
	}
}

func spec(t *testing.T, object graph.Object, text string) graph.Object {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte("spec: "+text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

func dgd() graph.Object { return &v1alpha1.DynamoGraphDeployment{} }
func dcd() graph.Object { return &v1alpha1.DynamoComponentDeployment{} }
func dm() graph.Object  { return &v1alpha1.DynamoModel{} }
func dgdsa() graph.Object {
	return &v1alpha1.DynamoGraphDeploymentScalingAdapter{}
}

func dgdr(state v1alpha1.RequestState) func() graph.Object {
	return func() graph.Object {
		return &v1alpha1.DynamoGraphDeploymentRequest{Status: v1alpha1.DynamoGraphDeploymentRequestStatus{State: state, ObservedGeneration: 1}}
	}
}

func claim(class, size string) string {
	return `{services: {a: {}}, pvcs: [{name: c, create: true, storageClass: ` + class + `, size: ` + size + `, volumeAccessMode: ReadWriteOnce}]}`
}

// edited is a request whose spec was changed after it was accepted.
func edited() graph.Object {
	r := dgdr(v1alpha1.RequestStateProfiling)().(*v1alpha1.DynamoGraphDeploymentRequest)
	r.Generation = 2
	return r
}
