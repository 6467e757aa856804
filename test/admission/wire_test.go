package admission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestWhatIsStored(t *testing.T) {
	cases := map[string]struct {
		kind, spec, want string
	}{
		"a null service stays": {
			kind: graph,
			spec: `{services: {A: null, B: {}}}`,
			want: `{services: {A: null, B: {}}}`,
		},
		"several nodes are two by default": {
			kind: graph,
			spec: `{services: {A: {multinode: {}}}}`,
			want: `{services: {A: {multinode: {nodeCount: 2}}}}`,
		},
		"a restart is sequential by default": {
			kind: graph,
			spec: `{services: {A: {}}, restart: {id: a, strategy: {}}}`,
			want: `{services: {A: {}}, restart: {id: a, strategy: {type: Sequential}}}`,
		},
		"a scaling adapter is off by default": {
			kind: graph,
			spec: `{services: {A: {scalingAdapter: {}}}}`,
			want: `{services: {A: {scalingAdapter: {enabled: false}}}}`,
		},
		"the configuration of an endpoint picker stays as written": {
			kind: graph,
			spec: `{services: {A: {eppConfig: {config: {plugins: [{type: t, parameters: {a: {b: [1, x]}}, extra: 1}], schedulingProfiles: [], featureGates: [f]}}}}}`,
			want: `{services: {A: {eppConfig: {config: {plugins: [{type: t, parameters: {a: {b: [1, x]}}, extra: 1}], schedulingProfiles: [], featureGates: [f]}}}}}`,
		},
		"an unknown field is dropped": {
			kind: graph,
			spec: `{services: {A: {replica: 1}}}`,
			want: `{services: {A: {}}}`,
		},
		"a model is a base model by default": {
			kind: model,
			spec: `{modelName: m, baseModelName: b}`,
			want: `{modelName: m, baseModelName: b, modelType: base}`,
		},
		"a request is careful by default": {
			kind: request,
			spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: i, config: {}, configMapRef: {name: c}}}`,
			want: `{model: m, backend: vllm, autoApply: false, useMocker: false, enableGpuDiscovery: false, profilingConfig: {profilerImage: i, config: {}, configMapRef: {name: c, key: disagg.yaml}}}`,
		},
	}
	server := needServer(t)
	namespace := server.namespace(t)
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			live := object(t, namespace, c.kind, c.spec)
			if err := server.Create(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			want := object(t, namespace, c.kind, c.want)
			if diff := cmp.Diff(asJSON(t, want.Object["spec"]), asJSON(t, live.Object["spec"])); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// Every optional field of a service may be written as null by tools that render
// manifests from templates; server-side apply does not drop nulls on the way.
func TestServerSideApplyAdmitsNull(t *testing.T) {
	nullable := []string{
		"annotations", "labels", "serviceName", "componentType", "subComponentType", "dynamoNamespace",
		"globalDynamoNamespace", "resources", "autoscaling", "envs", "envFromSecret", "volumeMounts", "ingress",
		"modelRef", "sharedMemory", "extraPodMetadata", "extraPodSpec", "livenessProbe", "readinessProbe",
		"replicas", "multinode", "scalingAdapter",
	}
	server := needServer(t)
	namespace := server.namespace(t)
	for _, field := range nullable {
		t.Run(field, func(t *testing.T) {
			name := "null-" + strings.ToLower(field)
			service := map[string]any{field: nil}
			apply(t, server, namespace, component, name, service)
			apply(t, server, namespace, graph, name, map[string]any{"services": map[string]any{"A": service}})
		})
	}
	t.Run("a service", func(t *testing.T) {
		apply(t, server, namespace, graph, "null-service", map[string]any{"services": map[string]any{"A": nil, "B": map[string]any{}}})
		var live v1alpha1.DynamoGraphDeployment
		key := client.ObjectKey{Namespace: namespace, Name: "null-service"}
		if err := server.Get(t.Context(), key, &live); err != nil {
			t.Fatal(err)
		}
		if _, ok := live.Spec.Services["A"]; !ok {
			t.Errorf("service A is lost, there is %v", live.Spec.Services)
		}
	})
}

// A write of the whole typed object must not move the generation: whoever
// applied it would see a change they did not make.
func TestTypedUpdateChangesNothing(t *testing.T) {
	server := needServer(t)
	namespace := server.namespace(t)
	live := object(t, namespace, graph, `
pvcs: [{name: cache}]
restart: {id: a, strategy: {}}
services:
  Frontend: {componentType: frontend, replicas: 0, sharedMemory: {}, scalingAdapter: {}}
  Worker:
    multinode: {}
    volumeMounts: [{name: cache, mountPoint: /cache}]
    eppConfig: {config: {plugins: [{type: t, parameters: {a: 1}}], schedulingProfiles: []}}
    extraPodSpec:
      affinity: {}
      mainContainer: {image: i, ports: [{containerPort: 80}]}
`)
	if err := server.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	var typed v1alpha1.DynamoGraphDeployment
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(live), &typed); err != nil {
		t.Fatal(err)
	}
	typed.Labels = map[string]string{"touched": "yes"}
	if err := server.Update(t.Context(), &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Generation != 1 {
		after := &unstructured.Unstructured{}
		after.SetGroupVersionKind(live.GroupVersionKind())
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(live), after); err != nil {
			t.Fatal(err)
		}
		t.Errorf("generation is %d; spec (-before +after):\n%s", typed.Generation, cmp.Diff(live.Object["spec"], after.Object["spec"]))
	}
}

// Autoscalers and kubectl scale know nothing of the kind but its scale.
func TestAdapterScalesByItsSubresource(t *testing.T) {
	server := needServer(t)
	live := object(t, server.namespace(t), adapter, `{replicas: 1, dgdRef: {name: g, serviceName: A}}`)
	if err := server.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	status := v1alpha1.DynamoGraphDeploymentScalingAdapterStatus{Replicas: 1, Selector: "app=a"}
	live.Object["status"] = asJSON(t, status)
	if err := server.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := server.SubResource("scale").Update(t.Context(), live, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	want := autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=a"}
	if diff := cmp.Diff(want, scale.Status); diff != "" {
		t.Errorf("scale status (-want +got):\n%s", diff)
	}
	var typed v1alpha1.DynamoGraphDeploymentScalingAdapter
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(live), &typed); err != nil {
		t.Fatal(err)
	}
	if typed.Spec.Replicas != 3 {
		t.Errorf("replicas are %d, want 3", typed.Spec.Replicas)
	}
}

func apply(t *testing.T, server *apiServer, namespace, kind, name string, spec map[string]any) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1alpha1",
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       spec,
	}}
	err := server.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"))
	if err != nil {
		t.Errorf("apply %s: %v", kind, err)
	}
}

// asJSON makes values comparable that differ only in the type of their numbers.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var normal any
	if err := json.Unmarshal(raw, &normal); err != nil {
		t.Fatal(err)
	}
	return normal
}
