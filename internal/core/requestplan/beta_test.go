package requestplan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/crdschema"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
)

// written is a request that was written as v1beta1, as a server keeps it.
func written(t *testing.T, spec string) *v1alpha1.DynamoGraphDeploymentRequest {
	t.Helper()
	var fields map[string]any
	text := `{apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeploymentRequest, metadata: {name: goal, namespace: team, generation: 1}, spec: ` + spec + `}`
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	schema, known, err := crdschema.OfVersion(v1alpha1.KindDynamoGraphDeploymentRequest, conversion.Beta)
	if err != nil || !known {
		t.Fatal(err)
	}
	schema.Default(fields)
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	converted, err := conversion.Convert(raw, v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	r := &v1alpha1.DynamoGraphDeploymentRequest{}
	if err := json.Unmarshal(converted.JSON, r); err != nil {
		t.Fatal(err)
	}
	return r
}

var h200s = []Node{{Product: "NVIDIA-H200", GPUs: 8, MemoryMiB: 143771}, {Product: "NVIDIA-H200", GPUs: 8, MemoryMiB: 143771}}

const h200JSON = `"hardware":{"gpuSku":"h200_sxm","vramMb":143771,"totalGpus":16,"numGpusPerNode":8,"rdma":false}`

// TestWhatAProfilerIsToldOfABetaRequest: the spec, complete.
func TestWhatAProfilerIsToldOfABetaRequest(t *testing.T) {
	for name, test := range map[string]struct {
		spec  string
		nodes []Node
		image string
		want  string
	}{
		"the model alone": {
			spec: `{model: m}`, nodes: h200s,
			want: `{"model":"m","backend":"auto","image":"dynamo-profiler:dev",` + h200JSON + `,"searchStrategy":"rapid","autoApply":true}`,
		},
		"the operator has a profiler for those who name none": {
			spec: `{model: m, autoApply: false}`, nodes: h200s, image: "registry.example/dynamo-planner:1.4.1",
			want: `{"model":"m","backend":"auto","image":"registry.example/dynamo-planner:1.4.1",` + h200JSON + `,"searchStrategy":"rapid","autoApply":false}`,
		},
		"what is given of the hardware counts": {
			spec: `{model: m, backend: vllm, image: i, hardware: {totalGpus: 4, gpuSku: h200_sxm}}`, nodes: h200s,
			want: `{"model":"m","backend":"vllm","image":"i","hardware":{"gpuSku":"h200_sxm","vramMb":143771,"totalGpus":4,"numGpusPerNode":8,"rdma":false},"searchStrategy":"rapid","autoApply":true}`,
		},
		"nodes with another GPU than the named one tell nothing of it": {
			spec: `{model: m, backend: vllm, image: i, hardware: {totalGpus: 4, gpuSku: l40s}}`, nodes: h200s,
			want: `{"model":"m","backend":"vllm","image":"i","hardware":{"gpuSku":"l40s","totalGpus":4},"searchStrategy":"rapid","autoApply":true}`,
		},
		"of several kinds of nodes those with the named GPU tell": {
			spec: `{model: m, backend: vllm, image: i, hardware: {gpuSku: l40s}}`, nodes: append(slices.Clone(h200s), Node{Product: "NVIDIA-L40S", GPUs: 2, MemoryMiB: 46068}),
			want: `{"model":"m","backend":"vllm","image":"i","hardware":{"gpuSku":"l40s","vramMb":46068,"totalGpus":2,"numGpusPerNode":2,"rdma":false},"searchStrategy":"rapid","autoApply":true}`,
		},
		"where there is no node the GPU is enough": {
			spec: `{model: m, backend: vllm, image: i, hardware: {gpuSku: h100_sxm}, searchStrategy: thorough}`,
			want: `{"model":"m","backend":"vllm","image":"i","hardware":{"gpuSku":"h100_sxm"},"searchStrategy":"thorough","autoApply":true}`,
		},
		"targets, load, cache and planner": {
			spec: `{model: m, backend: sglang, image: i, hardware: {gpuSku: h100_sxm}, workload: {requestRate: 2}, sla: {ttft: 100, e2eLatency: 5000},
				modelCache: {pvcName: c, pvcModelPath: p}, features: {planner: {mode: disagg, nested: {x: [1]}}, mocker: {enabled: true}}}`,
			want: `{"model":"m","backend":"sglang","image":"i","modelCache":{"pvcName":"c","pvcModelPath":"p","pvcMountPath":"/opt/model-cache"},"hardware":{"gpuSku":"h100_sxm"},
				"workload":{"isl":4000,"osl":1000,"requestRate":2},"sla":{"ttft":100,"e2eLatency":5000},
				"features":{"planner":{"mode":"disagg","nested":{"x":[1]}},"mocker":{"enabled":true}},"searchStrategy":"rapid","autoApply":true}`,
		},
		"the graph's overrides are not the profiler's": {
			spec: `{model: m, image: i, hardware: {gpuSku: t4}, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, spec: {}}}}`,
			want: `{"model":"m","backend":"auto","image":"i","hardware":{"gpuSku":"t4"},"searchStrategy":"rapid","autoApply":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy
			p.DefaultImage = test.image
			r := written(t, test.spec)
			if errs := validation.Request(r, p.Scope); len(errs) > 0 {
				t.Fatal(errs)
			}
			step := Next(r, Sight{Nodes: test.nodes}, p, noon)
			if !step.Begins || step.Record.Version != conversion.Beta {
				t.Fatalf("it does not begin: %+v", step)
			}
			if diff := cmp.Diff(object(t, test.want), object(t, step.Record.Config)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return fields
}

func TestABetaRequestWaitsForHardware(t *testing.T) {
	for name, nodes := range map[string][]Node{"no node": nil, "a GPU without a sku": {{Product: "Voodoo-2", GPUs: 1}}} {
		step := Next(written(t, `{model: m}`), Sight{Nodes: nodes}, policy, noon)
		if f, _ := step.Finding(v1alpha1.ConditionValidation); step.Begins || f.Reason != v1alpha1.ReasonHardwareNotFound {
			t.Errorf("%s: %+v", name, step)
		}
	}
	if !Looks(written(t, `{model: m, hardware: {gpuSku: h100_sxm}}`)) {
		t.Error("nodes are not looked at for what is missing")
	}
	if Looks(written(t, `{model: m, hardware: {gpuSku: h100_sxm, vramMb: 1, totalGpus: 1, numGpusPerNode: 1, rdma: false}}`)) {
		t.Error("nodes are looked at for nothing")
	}
}

func TestSKUOfAProduct(t *testing.T) {
	for product, want := range map[string]string{
		"NVIDIA-H200": "h200_sxm", "NVIDIA-H100-80GB-HBM3": "h100_sxm", "NVIDIA-H100-PCIe": "h100_pcie", "NVIDIA-A100-80GB-PCIe": "a100_pcie",
		"NVIDIA-A100-SXM4-80GB": "a100_sxm", "NVIDIA-L40S": "l40s", "NVIDIA-L4": "l4", "NVIDIA-GB200": "gb200_sxm", "Tesla-T4": "t4", "Voodoo-2": "",
	} {
		if got := SKU(product); got != want {
			t.Errorf("%s: %q, want %q", product, got, want)
		}
	}
}

// accepted is a request after its work began.
func accepted(t *testing.T, r *v1alpha1.DynamoGraphDeploymentRequest, p Policy) Record {
	t.Helper()
	step := Next(r, Sight{Nodes: h200s}, p, noon)
	if !step.Begins {
		t.Fatalf("it does not begin: %+v", step.Findings)
	}
	r.Status.Accepted, r.Status.ObservedGeneration, r.Status.State = step.Record.Accepted(r.Generation), r.Generation, v1alpha1.RequestStateProfiling
	record, err := Recorded(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(step.Record, *record); diff != "" {
		t.Fatalf("the record is another (-made +read):\n%s", diff)
	}
	return *record
}

// profiledBeta is a request whose profiler has left a graph.
func profiledBeta(t *testing.T, r *v1alpha1.DynamoGraphDeploymentRequest, key, output string) Step {
	t.Helper()
	record := accepted(t, r, policy)
	receipt := profileoutput.Receipt{}
	data := map[string]string{key: output}
	receipt.Add("dgdr-output-goal", data)
	record.Receipt = receipt
	done := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "profile-goal"}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: "True"}}}}
	return Next(r, Sight{Record: &record, Job: done, Output: data}, policy, noon)
}

const betaGraph = `apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: vllm-disagg}
spec:
  components:
  - name: Frontend
    type: frontend
    podTemplate: {spec: {containers: [{name: main, image: f}]}}
  - name: Decode
    type: decode
    podTemplate: {spec: {containers: [{name: main, image: w, volumeMounts: [{name: data, mountPath: /d, subPath: s}]}], volumes: [{name: data, configMap: {name: planner-profile-data}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: planner-profile-data}
data: {x: y}
`

func TestTheGraphOfABetaRequest(t *testing.T) {
	for name, test := range map[string]struct{ spec, name, env string }{
		"is named after the request": {`{model: m, image: i}`, "goal-dgd", ""},
		"or as the override says, and stays in its namespace": {
			`{model: m, image: i, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, metadata: {name: mine, namespace: victim}}}}`, "mine", ""},
		"and has what the override says": {
			`{model: m, image: i, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment,
				spec: {components: [{name: Frontend, podTemplate: {spec: {containers: [{name: main, env: [{name: DYN_ROUTER_MODE, value: kv}]}]}}}]}}}}`, "goal-dgd", "kv"},
	} {
		t.Run(name, func(t *testing.T) {
			r := written(t, test.spec)
			step := profiledBeta(t, r, profileoutput.KeyFinalGraph, betaGraph)
			if step.Generated == nil {
				t.Fatalf("no graph: %+v", step.Findings)
			}
			g := step.Generated.Graph
			if g.Name != test.name || g.Namespace != "team" {
				t.Errorf("it is %s/%s", g.Namespace, g.Name)
			}
			if conversion.WrittenAs(g) != conversion.Beta || step.Phase != "Done" || step.JobName != "profile-goal" {
				t.Errorf("written as %s, phase %s, Job %s", conversion.WrittenAs(g), step.Phase, step.JobName)
			}
			var shown v1beta1.DynamoGraphDeployment
			if err := json.Unmarshal(step.Generated.Raw().Raw, &shown); err != nil || shown.APIVersion != "nvidia.com/v1beta1" {
				t.Fatalf("it is shown as %s: %v", shown.APIVersion, err)
			}
			if mount := shown.Spec.Components[1].PodTemplate.Spec.Containers[0].VolumeMounts; len(mount) != 1 || mount[0].SubPath != "s" {
				t.Errorf("the mount is lost: %+v", mount)
			}
			if volume := shown.Spec.Components[1].PodTemplate.Spec.Volumes[0].ConfigMap.Name; volume != "goal-planner-profile-data" {
				t.Errorf("the volume leads to %s", volume)
			}
			if env := shown.Spec.Components[0].PodTemplate.Spec.Containers[0].Env; test.env != "" && (len(env) != 1 || env[0].Value != test.env) {
				t.Errorf("the override is lost: %+v", env)
			}
		})
	}
	step := profiledBeta(t, written(t, `{model: m, image: i, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, spec: {components: [{name: Evil}]}}}}`), profileoutput.KeyFinalGraph, betaGraph)
	if f, _ := step.Finding(v1alpha1.ConditionSpecGenerated); step.State != v1alpha1.RequestStateFailed || f.Reason != v1alpha1.ReasonSpecGenerationFailed {
		t.Errorf("an override of nothing: %+v", step)
	}
}

// TestForgedOverridesBecomeNoIngress: the payload of an override is the author's
// word, and what it comes to mean is judged as that of a graph.
func TestForgedOverridesBecomeNoIngress(t *testing.T) {
	r := written(t, `{model: m, image: i, overrides: {dgd: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment,
		metadata: {annotations: {nvidia.com/written-as: v1alpha1, nvidia.com/dgd-spec: '{"version":1,"spec":{"services":{"Frontend":{"ingress":{"enabled":true,"host":"bank.example"}}}}}'}}}}}`)
	step := profiledBeta(t, r, profileoutput.KeyFinalGraph, betaGraph)
	if step.Generated != nil && step.Generated.Graph.Spec.Services["Frontend"].Ingress != nil {
		t.Errorf("it has an ingress: %+v", step.Generated.Graph.Spec.Services["Frontend"].Ingress)
	}
}

// TestForgedPayloadOfARequest: hardware and strategy are all that the annotation of
// a request can say, and what was accepted stays when it changes.
func TestForgedPayloadOfARequest(t *testing.T) {
	r := written(t, `{model: m, image: i, hardware: {gpuSku: h100_sxm}}`)
	r.Annotations[v1alpha1.AnnotationRequestPayload] = `{"version":1,"spec":{"model":"evil","image":"evil","backend":"sglang","hardware":{"gpuSku":"t4"},
		"modelCache":{"pvcName":"evil"},"overrides":{"profilingJob":{"template":{"spec":{"containers":[],"serviceAccountName":"admin"}}},"dgd":{"metadata":{"name":"evil"}}}}}`
	record := accepted(t, r, policy)
	q, ok := record.Question()
	if !ok || q.Model != "m" || q.Image != "i" || q.Overrides != nil || q.ModelCache != nil && q.ModelCache.PVCName != "" || GraphKey(r, record.Spec).Name != "goal-dgd" {
		t.Errorf("the payload decides: %s", record.Config)
	}
	r.Annotations[v1alpha1.AnnotationRequestPayload] = `{"version":1,"spec":{"hardware":{"gpuSku":"a30"}}}`
	delete(r.Annotations, v1alpha1.AnnotationWrittenAs)
	step := Next(r, Sight{Record: &record}, policy, noon)
	if f, _ := step.Finding(v1alpha1.ConditionValidation); f.Reason != v1alpha1.ReasonSpecChangeRejected || step.Record.Config != record.Config {
		t.Errorf("the change counts: %+v", step)
	}
	if name := GraphKey(r, record.Spec).Name; name != "goal-dgd" {
		t.Errorf("the graph is %s now", name)
	}
}

func TestABetaRequestMayBeAppliedLater(t *testing.T) {
	r := written(t, `{model: m, image: i, autoApply: false}`)
	step := profiledBeta(t, r, profileoutput.KeyFinalGraph, betaGraph)
	if step.State != v1alpha1.RequestStateReady {
		t.Fatalf("it is %s", step.State)
	}
	record := step.Record
	r.Status.GeneratedDeployment, r.Status.State = step.Generated.Raw(), step.State
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSpecGenerated, Status: metav1.ConditionTrue})
	if step = Next(r, Sight{Record: &record}, policy, noon); step.State != v1alpha1.RequestStateReady || step.Wants != Nothing {
		t.Errorf("it goes on by itself: %+v", step)
	}
	old := r.DeepCopy()
	r.Spec.AutoApply, r.Generation = true, 2
	if errs := validation.Update(old, r, policy.Scope).Problems; len(errs) > 0 {
		t.Errorf("the webhook refuses it: %v", errs)
	}
	step = Next(r, Sight{Record: &record}, policy, noon)
	if step.Wants != Graph || !step.Accepted || step.Generated.Graph.Name != "goal-dgd" {
		t.Fatalf("it is not made: %+v", step)
	}
	if diff := cmp.Diff(object(t, string(r.Status.GeneratedDeployment.Raw)), object(t, string(step.Generated.Raw().Raw))); diff != "" {
		t.Errorf("it is shown otherwise now (-was +is):\n%s", diff)
	}
	r.Spec.Model = "other"
	if step = Next(r, Sight{Record: &record}, policy, noon); step.Accepted {
		t.Error("another model is accepted")
	}
}

func TestADeletedGraphFailsABetaRequest(t *testing.T) {
	r := written(t, `{model: m, image: i}`)
	record := accepted(t, r, policy)
	made(r)
	r.Status.State = v1alpha1.RequestStateReady
	step := Next(r, Sight{Record: &record}, policy, noon)
	if f, _ := step.Finding(v1alpha1.ConditionDeploymentReady); step.State != v1alpha1.RequestStateFailed || f.Reason != v1alpha1.ReasonDeploymentDeleted {
		t.Errorf("it is %s: %+v", step.State, f)
	}
}

func TestPhaseOfAProfiler(t *testing.T) {
	for name, test := range map[string]struct {
		output map[string]string
		want   string
	}{
		"nothing yet":           {nil, "Initializing"},
		"ours ranks":            {map[string]string{profileoutput.KeyProgress: profileoutput.Progress{Stage: profileoutput.StageRanking}.Text()}, "SelectingConfig"},
		"ours writes":           {map[string]string{profileoutput.KeyProgress: profileoutput.Progress{Stage: profileoutput.StageWriting}.Text()}, "GeneratingDGD"},
		"one of others says so": {map[string]string{profileoutput.KeyPhase: "BuildingCurves"}, "BuildingCurves"},
		"a word of nobody's":    {map[string]string{profileoutput.KeyPhase: "owned"}, "Initializing"},
	} {
		if got := phaseOf(test.output); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestAnAlphaRequestForAProfilerOfOne is run by the contract that its image knows.
func TestAnAlphaRequestForAProfilerOfOne(t *testing.T) {
	for image, one := range map[string]bool{"r/dynamo-planner:1.4.0": true, "r/sglang-runtime:0.9.1": false, "r/vllm:my-tag": false, "dynamo-profiler:1.0.0": false} {
		r := asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.ProfilerImage = image })
		step := Next(r, Sight{Nodes: h200s}, policy, noon)
		if _, got := step.Record.Question(); got != one || step.Record.Image() != image {
			t.Errorf("%s: %v, image %s", image, got, step.Record.Image())
		}
		if name := GraphKey(r, r.Spec).Name; name != "goal" {
			t.Errorf("%s: the graph is %s", image, name)
		}
	}
}

// configured is a request of v1alpha1 for a profiler of 1.x, with a configuration.
func configured(t *testing.T, config string) *v1alpha1.DynamoGraphDeploymentRequest {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		r.Spec.ProfilingConfig.ProfilerImage = "r/dynamo-planner:1.4.1"
		r.Spec.ProfilingConfig.Config.Raw = raw
	})
}

// TestWhatAProfilerOfOneIsToldOfAnAlphaRequest: what its configuration says and v1beta1
// has a place for. The rest is told.
func TestWhatAProfilerOfOneIsToldOfAnAlphaRequest(t *testing.T) {
	const rest = `"model":"m","backend":"vllm","image":"r/dynamo-planner:1.4.1","searchStrategy":"rapid","autoApply":true`
	for rule, test := range map[string]struct {
		config, want, unused string
		nodes                []Node
	}{
		"the GPU, by its system":            {config: `{sweep: {aicSystem: h100_pcie}}`, want: `"hardware":{"gpuSku":"h100_pcie"}`},
		"the GPU, by its product":           {config: `{hardware: {gpu_type: NVIDIA-L40S, num_gpus_per_node: 4}}`, want: `"hardware":{"gpuSku":"l40s","numGpusPerNode":4}`},
		"a system goes first":               {config: `{sweep: {aic_system: h200_sxm}, hardware: {gpuType: l40s}}`, want: `"hardware":{"gpuSku":"h200_sxm"}`},
		"in the words of v1beta1":           {config: `{hardware: {gpuSku: t4, totalGpus: 2, vramMb: 16000, rdma: true}}`, want: `"hardware":{"gpuSku":"t4","totalGpus":2,"vramMb":16000,"rdma":true}`},
		"a GPU that nobody knows is judged": {config: `{hardware: {gpuType: voodoo}}`, want: `"hardware":{"gpuSku":"voodoo"}`},
		"what nodes tell lies under it":     {config: `{hardware: {gpuType: h200_sxm, numGpusPerNode: 4}}`, nodes: h200s, want: `"hardware":{"gpuSku":"h200_sxm","vramMb":143771,"totalGpus":16,"numGpusPerNode":4,"rdma":false}`},
		"where its cache is mounted": {
			config: `{sweep: {aicSystem: t4}, deployment: {modelCache: {pvcName: c, mountPath: /models}}}`,
			want:   `"hardware":{"gpuSku":"t4"},"modelCache":{"pvcName":"c","pvcMountPath":"/models"}`,
		},
		"what has no place is named": {
			config: `{sla: {ttft: 200}, sweep: {aicSystem: t4, useAiConfigurator: true, prefillInterpolationGranularity: 16}, engine: {backend: vllm, maxContextLength: 100}, hardware: {maxNumGpusPerEngine: 4}, extra: 1}`,
			want:   `"hardware":{"gpuSku":"t4"},"sla":{"ttft":200}`,
			unused: "of profilingConfig.config these have no effect with a profiler of 1.x: engine.maxContextLength, extra, hardware.maxNumGpusPerEngine, sweep.prefillInterpolationGranularity",
		},
		"estimates are made in any case": {
			config: `{sweep: {aicSystem: t4, useAiConfigurator: false}}`, want: `"hardware":{"gpuSku":"t4"}`,
			unused: "of profilingConfig.config these have no effect with a profiler of 1.x: sweep.useAiConfigurator",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			r := configured(t, test.config)
			step := Next(r, Sight{Nodes: test.nodes}, policy, noon)
			if !step.Begins {
				t.Fatalf("it does not begin: %+v", step.Findings)
			}
			if diff := cmp.Diff(object(t, "{"+rest+","+test.want+"}"), object(t, step.Record.Config)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			later := Next(r, Sight{Record: &step.Record}, policy, noon)
			for when, step := range map[string]Step{"at first": step, "later": later} {
				if f, _ := step.Finding(v1alpha1.ConditionValidation); !f.OK || f.Message != test.unused {
					t.Errorf("%s it says %q, want %q", when, f.Message, test.unused)
				}
			}
		})
	}
}

// TestAnAlphaRequestIsToldWhereItsHardwareGoes: spec.hardware is a field of v1beta1.
func TestAnAlphaRequestIsToldWhereItsHardwareGoes(t *testing.T) {
	for name, nodes := range map[string][]Node{"no node": nil, "a GPU without a sku": {{Product: "Voodoo-2", GPUs: 1}}} {
		for r, where := range map[*v1alpha1.DynamoGraphDeploymentRequest]string{
			configured(t, `{}`): "describe the hardware in profilingConfig.config.hardware", written(t, `{model: m}`): "describe the hardware in spec.hardware",
		} {
			step := Next(r, Sight{Nodes: nodes}, policy, noon)
			if f, _ := step.Finding(v1alpha1.ConditionValidation); f.Reason != v1alpha1.ReasonHardwareNotFound || !strings.Contains(f.Message, where) {
				t.Errorf("%s: %s, want %s", name, f.Message, where)
			}
		}
	}
}

// TestWorkersOfAnAlphaRequestHaveTheirImage, which a profiler of 1.x cannot be told.
// What overrides the graph counts over it.
func TestWorkersOfAnAlphaRequestHaveTheirImage(t *testing.T) {
	for rule, test := range map[string]struct {
		config, image, override string
		mock                    bool
		want                    string
	}{
		"as the profiler chose":         {config: `{}`, want: "w"},
		"as the request says":           {config: `{}`, image: "mine:1", want: "mine:1"},
		"as its configuration says":     {config: `{deployment: {dgdImage: mine:2}}`, want: "mine:2"},
		"the request goes first":        {config: `{deployment: {dgd_image: mine:2}}`, image: "mine:1", want: "mine:1"},
		"an override goes over both":    {config: `{}`, image: "mine:1", override: `{"apiVersion":"nvidia.com/v1alpha1","kind":"DynamoGraphDeployment","spec":{"services":{"Decode":{"extraPodSpec":{"mainContainer":{"image":"over"}}}}}}`, want: "over"},
		"mock engines are in their own": {config: `{}`, image: "mine:1", mock: true, want: "w"},
	} {
		t.Run(rule, func(t *testing.T) {
			r := configured(t, test.config)
			r.Spec.UseMocker = test.mock
			if test.image != "" {
				r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{WorkersImage: test.image}
			}
			if test.override != "" {
				r.Spec.Overrides = &v1alpha1.RequestOverrides{DGD: &runtime.RawExtension{Raw: []byte(test.override)}}
			}
			step := profiledBeta(t, r, profileoutput.KeyFinalGraph, betaGraph)
			if step.Generated == nil {
				t.Fatalf("no graph: %+v", step.Findings)
			}
			images := map[string]string{}
			for name, s := range step.Generated.Graph.Spec.SortedServices() {
				images[name] = s.ExtraPodSpec.MainContainer.Image
			}
			if diff := cmp.Diff(map[string]string{"Frontend": "f", "Decode": test.want}, images); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARequestThatTheOriginalBegan: its status names the graph, with the dots that
// names of ours have not, and no namespace, and nothing that was accepted.
func TestARequestThatTheOriginalBegan(t *testing.T) {
	const valid = "\nValidation True ValidationPassed"
	live := ofGraph(v1alpha1.GraphStateSuccessful)
	live.Name, live.Labels[v1alpha1.LabelRequestName], live.Spec.BackendFramework = "goal.1-dgd", "goal.1", "sglang"
	for rule, test := range map[string]struct {
		phase v1beta1.RequestPhase
		graph *v1alpha1.DynamoGraphDeployment
		want  string
	}{
		"follows the graph that was made":      {v1beta1.RequestPhaseDeployed, live, "Ready" + valid + "\nDeploymentReady True DeploymentReady"},
		"takes the one that was being made":    {v1beta1.RequestPhaseDeploying, live, "Deploying wants graph" + valid},
		"makes the one that was to be made":    {v1beta1.RequestPhaseDeploying, nil, "Deploying wants graph" + valid},
		"says where the one was that was made": {v1beta1.RequestPhaseDeployed, nil, "Failed" + valid + "\nDeploymentReady False DeploymentDeleted graph team/goal.1-dgd was deleted and is not made again; make another request for another one"},
	} {
		t.Run(rule, func(t *testing.T) {
			beta := &v1beta1.DynamoGraphDeploymentRequest{}
			text := `{metadata: {name: goal.1, namespace: team, uid: u1}, spec: {model: m, image: i}, status: {dgdName: goal.1-dgd, conditions: [{type: SpecGenerated, status: "True"}], profilingResults: {
				selectedConfig: {apiVersion: nvidia.com/v1beta1, kind: DynamoGraphDeployment, metadata: {name: goal.1-dgd}, spec: {components: [{name: Frontend, type: frontend}]}}}}}`
			if err := yaml.Unmarshal([]byte(text), beta); err != nil {
				t.Fatal(err)
			}
			beta.Status.Phase = test.phase
			r, _ := conversion.RequestToAlpha(beta)
			if diff := cmp.Diff("team/goal.1-dgd", GraphKey(r, r.Spec).String()); diff != "" {
				t.Errorf("its graph (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, told(Next(r, Sight{Graph: test.graph}, policy, noon))); diff != "" {
				t.Errorf("the step (-want +got):\n%s", diff)
			}
		})
	}
}
