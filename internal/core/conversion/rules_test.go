package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	must(t, yaml.UnmarshalStrict([]byte(text), object))
	return object
}

// TestServiceAsComponent: a service of v1alpha1, and the component that shows it.
// Each comes back as it was.
func TestServiceAsComponent(t *testing.T) {
	cases := map[string]struct{ service, component string }{
		"the role prefill is a type":                     {`{componentType: worker, subComponentType: prefill}`, `{type: prefill}`},
		"prefill as a type stays spelled so":             {`{componentType: prefill}`, `{type: prefill}`},
		"another sub-type is kept":                       {`{componentType: worker, subComponentType: encode}`, `{type: worker}`},
		"a word of the user's own is no type":            {`{componentType: main}`, `{}`},
		"disabled shared memory is a size of zero":       {`{sharedMemory: {disabled: true}}`, `{sharedMemorySize: "0"}`},
		"a size of zero is unset":                        {`{sharedMemory: {size: "0"}}`, `{}`},
		"an adapter is enabled by being there":           {`{scalingAdapter: {enabled: true}}`, `{scalingAdapter: {}}`},
		"a disabled adapter is none":                     {`{scalingAdapter: {enabled: false}}`, `{}`},
		"a number of GPUs is a quantity":                 {`{resources: {limits: {gpu: "2"}}}`, `{podTemplate: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "2"}}}]}}}`},
		"a type of GPU names the quantity":               {`{resources: {limits: {gpu: "2", gpuType: amd.com/gpu}}}`, `{podTemplate: {spec: {containers: [{name: main, resources: {limits: {amd.com/gpu: "2"}}}]}}}`},
		"a quantity that is none is left out":            {`{resources: {limits: {cpu: many}}}`, `{}`},
		"mainContainer goes over the service's own":      {`{envs: [{name: A, value: own}, {name: B, value: own}], extraPodSpec: {mainContainer: {env: [{name: B, value: main}, {name: C, value: main}]}}}`, `{podTemplate: {spec: {containers: [{name: main, env: [{name: A, value: own}, {name: B, value: main}, {name: C, value: main}]}]}}}`},
		"the main container is first":                    {`{extraPodSpec: {containers: [{name: helper, image: h}], mainContainer: {image: m}}}`, `{podTemplate: {spec: {containers: [{name: main, image: m}, {name: helper, image: h}]}}}`},
		"a cache alone needs no template":                {`{volumeMounts: [{name: c, useAsCompilationCache: true}]}`, `{compilationCache: {pvcName: c}}`},
		"a cache is mounted where there is a template":   {`{volumeMounts: [{name: c, mountPoint: /c, useAsCompilationCache: true}], envFromSecret: s}`, `{compilationCache: {pvcName: c, mountPath: /c}, podTemplate: {spec: {containers: [{name: main, envFrom: [{secretRef: {name: s}}], volumeMounts: [{name: c, mountPath: /c}]}]}}}`},
		"a frontend sidecar is a container":              {`{frontendSidecar: {image: f, args: [a], envFromSecret: s}}`, `{frontendSidecar: sidecar-frontend, podTemplate: {spec: {containers: [{name: main}, {name: sidecar-frontend, image: f, args: [a], envFrom: [{secretRef: {name: s}}]}]}}}`},
		"modes are spelled with a capital":               {`{gpuMemoryService: {enabled: true, mode: interPod}, failover: {enabled: true, mode: intraPod, numShadows: 1}}`, `{experimental: {gpuMemoryService: {mode: InterPod}, failover: {mode: IntraPod, numShadows: 1}}}`},
		"more shadows than one show as one":              {`{failover: {enabled: true, numShadows: 3}}`, `{experimental: {failover: {numShadows: 1}}}`},
		"what is disabled is not there":                  {`{gpuMemoryService: {enabled: false}, failover: {enabled: false}}`, `{}`},
		"an ingress is kept":                             {`{ingress: {enabled: true, host: h}}`, `{}`},
		"labels and annotations of the service are kept": {`{labels: {a: b}, annotations: {c: d}}`, `{}`},
		"metadata of pods is the template's":             {`{extraPodMetadata: {labels: {a: b}}}`, `{podTemplate: {metadata: {labels: {a: b}}, spec: {containers: [{name: main}]}}}`},
		"a checkpoint is the same":                       {`{checkpoint: {enabled: true, startupPolicy: WaitForCheckpoint}}`, `{experimental: {checkpoint: {enabled: true, startupPolicy: WaitForCheckpoint}}}`},
		"a service that says nothing":                    {`{}`, `{}`},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			alpha := &v1alpha1.DynamoGraphDeployment{}
			alpha.Spec.Services = map[string]*v1alpha1.SharedSpec{"x": read[v1alpha1.SharedSpec](t, c.service)}
			want := read[v1beta1.Component](t, c.component)
			want.Name = "x"
			got, ignored := conversion.GraphToBeta(alpha)
			compareSpec(t, "there", []v1beta1.Component{*want}, got.Spec.Components, ignored)
			back, ignored := conversion.GraphToAlpha(got)
			compareSpec(t, "back", alpha.Spec, back.Spec, ignored)
		})
	}
}

// TestComponentAsService: what only v1beta1 can say comes back.
func TestComponentAsService(t *testing.T) {
	cases := map[string]struct{ component, service string }{
		"what the service has fields for moves there": {
			`{podTemplate: {spec: {containers: [{name: main, image: i, env: [{name: A}], livenessProbe: {periodSeconds: 1}, resources: {limits: {cpu: "1", rdma/ib: "2"}}, volumeMounts: [{name: v, mountPath: /v}]}]}}}`,
			`{envs: [{name: A}], livenessProbe: {periodSeconds: 1}, resources: {limits: {cpu: "1", custom: {rdma/ib: "2"}}}, volumeMounts: [{name: v, mountPoint: /v}], extraPodSpec: {mainContainer: {image: i}}}`,
		},
		"details of a mount are kept": {
			`{podTemplate: {spec: {containers: [{name: main, volumeMounts: [{name: v, mountPath: /v, subPath: s, readOnly: true}]}]}}}`,
			`{volumeMounts: [{name: v, mountPoint: /v}]}`,
		},
		"the order of containers is kept": {
			`{podTemplate: {spec: {containers: [{name: helper}, {name: main, image: i}]}}}`,
			`{extraPodSpec: {containers: [{name: helper}], mainContainer: {image: i}}}`,
		},
		"a template without a main container stays one": {
			`{podTemplate: {spec: {containers: [{name: helper}]}}}`,
			`{extraPodSpec: {containers: [{name: helper}]}}`,
		},
		"a template that says nothing stays one": {`{podTemplate: {spec: {containers: [{name: main}]}}}`, `{}`},
		"a cache that is not mounted stays so": {
			`{compilationCache: {pvcName: c, mountPath: /c}, podTemplate: {spec: {containers: [{name: main, image: i}]}}}`,
			`{volumeMounts: [{name: c, mountPoint: /c, useAsCompilationCache: true}], extraPodSpec: {mainContainer: {image: i}}}`,
		},
		"the account is the pod's": {
			`{podTemplate: {spec: {serviceAccountName: mine, containers: [{name: main}]}}}`,
			`{extraPodSpec: {serviceAccountName: mine}}`,
		},
		"a reference to a sidecar is kept": {
			`{frontendSidecar: side, podTemplate: {spec: {containers: [{name: main}, {name: side, image: i}]}}}`,
			`{extraPodSpec: {containers: [{name: side, image: i}]}}`,
		},
		"metadata of the template beyond labels is kept": {`{podTemplate: {metadata: {name: pod}, spec: {containers: [{name: main}]}}}`, `{}`},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			beta := &v1beta1.DynamoGraphDeployment{}
			beta.Spec.Components = []v1beta1.Component{*read[v1beta1.Component](t, c.component)}
			beta.Spec.Components[0].Name = "x"
			got, ignored := conversion.GraphToAlpha(beta)
			compareSpec(t, "there", map[string]*v1alpha1.SharedSpec{"x": read[v1alpha1.SharedSpec](t, c.service)}, got.Spec.Services, ignored)
			if conversion.WrittenAs(got) != conversion.Beta {
				t.Error("is not marked as written in v1beta1")
			}
			back, ignored := conversion.GraphToBeta(got)
			compareSpec(t, "back", beta.Spec, back.Spec, ignored)
			if len(back.Annotations) > 0 {
				t.Errorf("comes back with annotations %v", back.Annotations)
			}
		})
	}
}

func TestGraphKeepsTheOrderOfComponents(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeployment](t, `{spec: {components: [{name: b}, {name: c}, {name: a}]}}`)
	alpha, _ := conversion.GraphToAlpha(beta)
	alpha.Spec.Services["d"] = &v1alpha1.SharedSpec{}
	delete(alpha.Spec.Services, "c")
	back, _ := conversion.GraphToBeta(alpha)
	var names []string
	for _, c := range back.Spec.Components {
		names = append(names, c.Name)
	}
	if diff := cmp.Diff([]string{"b", "a", "d"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestGroveSettingsSurviveAnEdit: v1alpha1 has no place for them.
func TestGroveSettingsSurviveAnEdit(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeployment](t, `{spec: {components: [
		{name: a, experimental: {grove: {forceScalingGroup: true}}},
		{name: b, experimental: {failover: {mode: IntraPod}, grove: {forceScalingGroup: true}}}]}}`)
	alpha, _ := conversion.GraphToAlpha(beta)
	three := int32(3)
	alpha.Spec.Services["a"].Replicas, alpha.Spec.Services["b"].Failover = &three, nil
	got, _ := conversion.GraphToBeta(alpha)
	want := read[v1beta1.DynamoGraphDeployment](t, `{spec: {components: [
		{name: a, replicas: 3, experimental: {grove: {forceScalingGroup: true}}},
		{name: b, experimental: {grove: {forceScalingGroup: true}}}]}}`)
	compareSpec(t, "edited", want.Spec, got.Spec, nil)
}

func TestAnEditInTheOtherVersionWins(t *testing.T) {
	alpha := read[v1alpha1.DynamoGraphDeployment](t, `{spec: {pvcs: [{name: c}], services: {
		w: {componentType: main, replicas: 1, ingress: {enabled: true, host: h}, envs: [{name: A, value: own}], extraPodSpec: {mainContainer: {env: [{name: B, value: main}]}}}}}}`)
	beta, _ := conversion.GraphToBeta(alpha)
	three := int32(3)
	beta.Spec.Components[0].Replicas = &three
	beta.Spec.Components[0].PodTemplate.Spec.Containers[0].Env[0].Value = "edited"
	beta.Spec.Components[0].Type = "worker"
	got, ignored := conversion.GraphToAlpha(beta)
	want := read[v1alpha1.DynamoGraphDeployment](t, `{spec: {pvcs: [{name: c}], services: {
		w: {componentType: worker, replicas: 3, ingress: {enabled: true, host: h}, envs: [{name: A, value: edited}, {name: B, value: main}], extraPodSpec: {mainContainer: {}}}}}}`)
	compareSpec(t, "edited", want.Spec, got.Spec, nil)
	if diff := cmp.Diff([]string{"service w"}, ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
	if conversion.WrittenAs(got) != conversion.Alpha {
		t.Error("an object of v1alpha1 that is edited in the other version stays one")
	}
}

// TestWhatIsWrittenThoughEmptyComesBack: an apply that finds a field gone writes
// it again, and the generation moves.
func TestWhatIsWrittenThoughEmptyComesBack(t *testing.T) {
	object := `{"apiVersion":"nvidia.com/v1beta1","kind":"DynamoGraphDeployment","metadata":{"name":"g"},"spec":{"components":[{"name":"w","podTemplate":{"spec":{"containers":[{"name":"main","resources":{},"env":[{"name":"A","value":""}]}]}}}]}}`
	there, err := conversion.Convert([]byte(object), "nvidia.com/v1alpha1")
	must(t, err)
	back, err := conversion.Convert(there.JSON, "nvidia.com/v1beta1")
	must(t, err)
	var want, got map[string]any
	must(t, json.Unmarshal([]byte(object), &want))
	must(t, json.Unmarshal(back.JSON, &got))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	// What would mean something is not put in.
	forged := `{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","metadata":{"name":"g","annotations":{"nvidia.com/dgd-spec":"{\"version\":1,\"spec\":{},\"rawJSON\":[{\"path\":[\"components\",\"0\",\"replicas\"],\"raw\":0}]}"}},"spec":{"services":{"w":{}}}}`
	result, err := conversion.Convert([]byte(forged), "nvidia.com/v1beta1")
	must(t, err)
	if strings.Contains(string(result.JSON), "replicas") {
		t.Errorf("a payload scaled to zero: %s", result.JSON)
	}
}

func TestComponentIsNamedAfterItsObject(t *testing.T) {
	alpha := read[v1alpha1.DynamoComponentDeployment](t, `{metadata: {name: lone}, spec: {componentType: worker}}`)
	beta, _ := conversion.ComponentToBeta(alpha)
	if beta.Spec.Name != "lone" {
		t.Errorf("is called %q", beta.Spec.Name)
	}
	back, _ := conversion.ComponentToAlpha(beta)
	compareSpec(t, "back", alpha.Spec, back.Spec, nil)
}

func TestRequestAsBeta(t *testing.T) {
	alpha := read[v1alpha1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, backend: vllm, useMocker: true, enableGpuDiscovery: true,
		deploymentOverrides: {namespace: other},
		profilingConfig: {profilerImage: p, outputPVC: out, nodeSelector: {a: b}, resources: {limits: {cpu: "1"}},
			config: {sla: {ttft: 200, itl: 20.5, isl: 3000}, deployment: {modelCache: {pvcName: c, modelPathInPvc: x}}, planner: {mode: sla}, sweep: {max: 4}}}}}`)
	want := read[v1beta1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, backend: vllm, image: p, autoApply: false,
		sla: {ttft: 200, itl: 20.5}, workload: {isl: 3000}, modelCache: {pvcName: c, pvcModelPath: x},
		features: {planner: {mode: sla}, mocker: {enabled: true}},
		overrides: {profilingJob: {template: {spec: {nodeSelector: {a: b}, containers: [{name: profiler, resources: {limits: {cpu: "1"}}}]}}}}}}`)
	beta, ignored := conversion.RequestToBeta(alpha)
	compareSpec(t, "there", want.Spec, beta.Spec, ignored)
	back, ignored := conversion.RequestToAlpha(beta)
	compareSpec(t, "back", alpha.Spec, back.Spec, ignored)

	// A target that is changed in v1beta1 changes the configuration, and only that
	// part of it.
	faster := 100.0
	beta.Spec.SLA.TTFT = &faster
	edited, _ := conversion.RequestToAlpha(beta)
	var config map[string]any
	must(t, json.Unmarshal(edited.Spec.ProfilingConfig.Config.Raw, &config))
	wantConfig := map[string]any{}
	must(t, yaml.Unmarshal([]byte(`{sla: {ttft: 100, itl: 20.5, isl: 3000}, deployment: {modelCache: {pvcName: c, modelPathInPvc: x}}, planner: {mode: sla}, sweep: {max: 4}}`), &wantConfig))
	if diff := cmp.Diff(wantConfig, config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestRequestAsAlphaShowsOverrides(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, autoApply: true, hardware: {gpuSku: h100_sxm}, searchStrategy: thorough,
		overrides: {profilingJob: {backoffLimit: 2, template: {spec: {serviceAccountName: mine, tolerations: [{key: k}]}}}, dgd: {kind: DynamoGraphDeployment}}}}`)
	alpha, _ := conversion.RequestToAlpha(beta)
	if alpha.Spec.Overrides == nil || alpha.Spec.Overrides.ProfilingJob.Template.Spec.ServiceAccountName != "mine" || alpha.Spec.Overrides.DGD == nil {
		t.Errorf("the account and the graph are not visible: %s", indent(t, alpha))
	}
	if strings.Contains(alpha.Annotations[v1alpha1.AnnotationRequestPayload], "mine") {
		t.Errorf("the account stands in the payload: %s", alpha.Annotations[v1alpha1.AnnotationRequestPayload])
	}
	back, ignored := conversion.RequestToBeta(alpha)
	compareSpec(t, "back", beta.Spec, back.Spec, ignored)
}

// TestARequestWithoutAnImage passes the schema of v1alpha1, which wants one, and
// has none again in v1beta1.
func TestARequestWithoutAnImage(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeploymentRequest](t, `{apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeploymentRequest, metadata: {name: r}, spec: {model: m, backend: auto, autoApply: true}}`)
	alpha, _ := conversion.RequestToAlpha(beta)
	if image := alpha.Spec.ProfilingConfig.ProfilerImage; image != conversion.DefaultProfiler {
		t.Errorf("its profiler is %q", image)
	}
	schema, known, err := crdschema.Of(alpha.Kind)
	if err != nil || !known {
		t.Fatal(err)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(alpha)
	if err != nil {
		t.Fatal(err)
	}
	if errs := schema.Check(fields); len(errs) > 0 {
		t.Errorf("v1alpha1 refuses it: %v", errs)
	}
	back, _ := conversion.RequestToBeta(alpha)
	if diff := cmp.Diff(beta, back); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	alpha.Spec.ProfilingConfig.ProfilerImage = "mine"
	if edited, _ := conversion.RequestToBeta(alpha); edited.Spec.Image != "mine" {
		t.Errorf("the edit is lost: %q", edited.Spec.Image)
	}
	// Who writes v1alpha1 is told as before.
	alpha.Spec.ProfilingConfig.ProfilerImage = ""
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(alpha); err != nil {
		t.Fatal(err)
	}
	if errs := schema.Check(fields); len(errs) != 1 {
		t.Errorf("v1alpha1 without an image: %v", errs)
	}
}

func TestPhaseOfARequest(t *testing.T) {
	cases := map[string]struct {
		state   v1alpha1.RequestState
		created bool
		phase   v1beta1.RequestPhase
	}{
		"ready without a graph": {"Ready", false, "Ready"},
		"ready with its graph":  {"Ready", true, "Deployed"},
		"its graph was deleted": {"DeploymentDeleted", true, "Ready"},
		"profiling":             {"Profiling", false, "Profiling"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			alpha := &v1alpha1.DynamoGraphDeploymentRequest{}
			alpha.Status.State = c.state
			alpha.Status.Deployment = &v1alpha1.RequestedDeployment{Name: "g", Namespace: "n", Created: c.created}
			beta, _ := conversion.RequestToBeta(alpha)
			if beta.Status.Phase != c.phase || beta.Status.DGDName != "g" {
				t.Errorf("phase %s, graph %s", beta.Status.Phase, beta.Status.DGDName)
			}
			back, _ := conversion.RequestToAlpha(beta)
			if diff := cmp.Diff(alpha.Status, back.Status); diff != "" {
				t.Errorf("back (-want +got):\n%s", diff)
			}
		})
	}
}
