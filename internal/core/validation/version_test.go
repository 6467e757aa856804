package validation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// stored is a graph that was written as v1beta1, as the server stores it.
func stored(t *testing.T, spec string) *v1alpha1.DynamoGraphDeployment {
	t.Helper()
	dgd := &v1beta1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: chat, namespace: lab}\nspec: "+spec), dgd); err != nil {
		t.Fatal(err)
	}
	alpha, _ := conversion.GraphToAlpha(dgd)
	return alpha
}

func TestViolationsAreToldInTheVersionThatWasWritten(t *testing.T) {
	const pod = `podTemplate: {spec: {containers: `
	cases := map[string]struct {
		spec string
		want []string
	}{
		"no component":                                 {`{}`, []string{"FieldValueRequired spec.components"}},
		"a graph's variable":                           {`{env: [{name: ""}], components: [{name: a}]}`, []string{"FieldValueRequired spec.env[0].name"}},
		"names that differ only in case":               {`{components: [{name: a}, {name: A}]}`, []string{"FieldValueDuplicate spec.components[a]"}},
		"replicas":                                     {`{components: [{name: a, replicas: -1}]}`, []string{"FieldValueInvalid spec.components[a].replicas"}},
		"a variable of the main container":             {`{components: [{name: a, ` + pod + `[{name: main, env: [{name: "", value: x}]}]}}}]}`, []string{"FieldValueRequired spec.components[a].podTemplate.spec.containers[main].env[0].name"}},
		"arguments":                                    {`{backendFramework: vllm, components: [{name: a, type: worker, ` + pod + `[{name: main, args: [python3 -m dynamo.sglang]}]}}}]}`, []string{"FieldValueInvalid spec.components[a].podTemplate.spec.containers[main].args"}},
		"another container, by its place":              {`{components: [{name: a, ` + pod + `[{name: x}, {name: main, image: i}, {name: Zz}]}}}]}`, []string{"FieldValueInvalid spec.components[a].podTemplate.spec.containers[2].name"}},
		"whole GPUs":                                   {`{components: [{name: a, ` + pod + `[{name: main, resources: {limits: {nvidia.com/gpu: 500m}}}]}}}]}`, []string{"FieldValueInvalid spec.components[a].podTemplate.spec.containers[main].resources.limits[nvidia.com/gpu]"}},
		"a mount":                                      {`{components: [{name: a, ` + pod + `[{name: main, volumeMounts: [{name: m, mountPath: "a:b"}]}]}}}]}`, []string{"FieldValueInvalid spec.components[a].podTemplate.spec.containers[main].volumeMounts[0].mountPath"}},
		"a mount beside a cache":                       {`{components: [{name: a, compilationCache: {pvcName: c, mountPath: /c}, ` + pod + `[{name: main, volumeMounts: [{name: m, mountPath: "a:b"}]}]}}}]}`, []string{"FieldValueInvalid spec.components[a].podTemplate.spec.containers[main].volumeMounts[0].mountPath"}},
		"a cache that the engine has no place for":     {`{backendFramework: sglang, components: [{name: a, type: worker, compilationCache: {pvcName: c}}]}`, []string{"FieldValueRequired spec.components[a].compilationCache.mountPath"}},
		"a switch on the pod template, once":           {`{components: [{name: a, podTemplate: {metadata: {annotations: {nvidia.com/deployment-strategy: Never}}, spec: {containers: [{name: main}]}}}]}`, []string{"FieldValueNotSupported spec.components[a].podTemplate.metadata.annotations[nvidia.com/deployment-strategy]"}},
		"an order on the pod template":                 {`{components: [{name: a, podTemplate: {metadata: {annotations: {nvidia.com/start-after: b}}, spec: {containers: [{name: main}]}}}]}`, []string{"FieldValueNotFound spec.components[a].podTemplate.metadata.annotations[nvidia.com/start-after]"}},
		"shared memory":                                {`{components: [{name: a, sharedMemorySize: "-1"}]}`, []string{"FieldValueInvalid spec.components[a].sharedMemorySize"}},
		"an endpoint picker":                           {`{components: [{name: a, type: epp}]}`, []string{"FieldValueRequired spec.components[a].eppConfig"}},
		"a frontend sidecar that is no container":      {`{components: [{name: a, frontendSidecar: front, ` + pod + `[{name: main}, {name: proxy}]}}}]}`, []string{"FieldValueInvalid spec.components[a].frontendSidecar"}},
		"a frontend sidecar without a pod template":    {`{components: [{name: a, frontendSidecar: front}]}`, []string{"FieldValueInvalid spec.components[a].frontendSidecar"}},
		"a frontend sidecar that is the main one":      {`{components: [{name: a, frontendSidecar: main, ` + pod + `[{name: main}]}}}]}`, []string{"FieldValueInvalid spec.components[a].frontendSidecar"}},
		"a frontend sidecar is a container":            {`{components: [{name: a, frontendSidecar: front, ` + pod + `[{name: main}, {name: front}]}}}]}`, nil},
		"custom tags, restart and own names are legal": {`{restart: {id: "1"}, components: [{name: a, type: worker, ` + pod + `[{name: main, image: "r@sha256:ab"}]}}}, {name: untyped}]}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, summary(Create(stored(t, c.spec), Scope{}).Problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// A component that stands alone is told the same, with the containers that there are.
func TestAFrontendSidecarIsAContainer(t *testing.T) {
	dcd := &v1beta1.DynamoComponentDeployment{}
	const text = `{metadata: {name: chat, namespace: lab}, spec: {name: chat, type: worker, frontendSidecar: front, podTemplate: {spec: {containers: [{name: main}, {name: proxy}, {name: agent}]}}}}`
	if err := yaml.UnmarshalStrict([]byte(text), dcd); err != nil {
		t.Fatal(err)
	}
	alpha, _ := conversion.ComponentToAlpha(dcd)
	want := `spec.frontendSidecar: Invalid value: "front": names no container of the pod template beside main; those are: agent, proxy`
	if diff := cmp.Diff(want, Create(alpha, Scope{}).Problems.ToAggregate().Error()); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// What some releases of the original refuse and others admitted is told, in the
// version that was written.
func TestWhatReleasesDisagreeAboutIsToldAndAdmitted(t *testing.T) {
	const worker = `{name: w, type: worker, podTemplate: {spec: {containers: [{name: main, args: [python3 -m dynamo.vllm], resources: {limits: {nvidia.com/gpu: 1}}}]}}, experimental: `
	cases := map[string]struct{ spec, want string }{
		"a graph's priority without Grove":    {`{priorityClassName: p, components: [{name: a}]}`, "spec.priorityClassName: has no effect; only Grove"},
		"shared memory of a frontend":         {`{components: [{name: f, type: frontend, experimental: {gpuMemoryService: {}}}]}`, "spec.components[f].experimental.gpuMemoryService: has no effect; only workers"},
		"shared memory without a GPU":         {`{components: [{name: w, type: worker, experimental: {gpuMemoryService: {}}}]}`, "spec.components[w].experimental.gpuMemoryService: the main container has no GPU"},
		"a client that is not there":          {`{components: [` + worker + `{gpuMemoryService: {extraClientContainers: [x]}}}]}`, "spec.components[w].experimental.gpuMemoryService.extraClientContainers: the pod has no container x"},
		"failover without shared memory":      {`{components: [` + worker + `{failover: {}}}]}`, "spec.components[w].experimental.failover: needs gpuMemoryService"},
		"failover in another mode":            {`{components: [` + worker + `{gpuMemoryService: {}, failover: {mode: InterPod}}}]}`, "spec.components[w].experimental.failover.mode: is another"},
		"failover that nobody can tell apart": {`{components: [` + worker + `{gpuMemoryService: {}, failover: {}}}]}`, "spec.components[w].experimental.failover: engines of one pod"},
		"a domain without a topology":         {`{components: [{name: w, topologyConstraint: {packDomain: rack}}]}`, "spec.components[w].topologyConstraint: has no effect without a topologyConstraint of the graph"},
		"another's words for a graph":         {`{providerOverride: {apiVersion: grove.io/v1alpha1, value: {a: 1}}, components: [{name: a}]}`, "spec.providerOverride: has no effect"},
		"another's words for a component":     {`{components: [{name: a, providerOverride: {apiVersion: grove.io/v1alpha1, value: {}}}]}`, "spec.components[a].providerOverride: has no effect"},
		"another's words for a leader":        {`{components: [{name: a, multinode: {nodeCount: 2, leader: {providerOverride: {apiVersion: grove.io/v1alpha1, value: {}}}}}]}`, "spec.components[a].multinode.leader.providerOverride: has no effect"},
		"a group of one node":                 {`{components: [{name: a, experimental: {grove: {forceScalingGroup: true}}}]}`, "spec.components[a].experimental.grove.forceScalingGroup: has no effect"},
		"a checkpoint":                        {`{components: [` + worker + `{checkpoint: {enabled: true}}}]}`, "spec.components[w].experimental.checkpoint: pods start cold"},
		"an executor that nobody knows":       {`{components: [{name: w, type: worker, podTemplate: {metadata: {annotations: {nvidia.com/vllm-distributed-executor-backend: smoke}}, spec: {containers: [{name: main}]}}}]}`, `spec.components[w].podTemplate.metadata.annotations[nvidia.com/vllm-distributed-executor-backend]: "smoke" is not known`},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := stored(t, c.spec)
			if errs := GraphDeployment(dgd); len(errs) > 0 {
				t.Errorf("refused: %v", errs)
			}
			got := GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{Provider: workload.ProviderComponent})
			if !slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, c.want) }) {
				t.Errorf("warnings %q, none is %q", got, c.want)
			}
		})
	}
}

// A rule that the old object broke already does not stand in the way of a move to
// the other version.
func TestAMoveToTheOtherVersionIsJudgedByWhatChanges(t *testing.T) {
	old := &v1alpha1.DynamoGraphDeployment{}
	if err := yaml.UnmarshalStrict([]byte("metadata: {name: chat, namespace: lab}\nspec: {services: {a: {replicas: -1}}}"), old); err != nil {
		t.Fatal(err)
	}
	if v := Update(old, stored(t, `{components: [{name: a, replicas: -1}]}`), Scope{}); len(v.Problems) > 0 {
		t.Errorf("refused: %v", v.Problems)
	}
	v := Update(old, stored(t, `{components: [{name: a, replicas: -2}]}`), Scope{})
	if diff := cmp.Diff([]string{"FieldValueInvalid spec.components[a].replicas"}, summary(v.Problems)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// A request in v1beta1 that leaves the engine open is told how that is chosen.
func TestThoroughRequestsAreToldWhichEngineIsMeasured(t *testing.T) {
	const told = "spec.searchStrategy: with backend auto dynamo-profiler chooses the engine by estimates and measures that one alone; name it to have another measured"
	for rule, c := range map[string]struct {
		spec string
		want []string
	}{
		"estimates":               {`{model: m}`, nil},
		"measurements of one":     {`{model: m, backend: vllm, searchStrategy: thorough}`, nil},
		"measurements of any":     {`{model: m, backend: auto, searchStrategy: thorough}`, []string{told}},
		"measurements by default": {`{model: m, searchStrategy: thorough}`, []string{told}},
	} {
		t.Run(rule, func(t *testing.T) {
			beta := &v1beta1.DynamoGraphDeploymentRequest{}
			if err := yaml.UnmarshalStrict([]byte("metadata: {name: r, namespace: lab}\nspec: "+c.spec), beta); err != nil {
				t.Fatal(err)
			}
			request, _ := conversion.RequestToAlpha(beta)
			if diff := cmp.Diff(c.want, Create(request, Scope{ClusterWide: true}).Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
