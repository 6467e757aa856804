package validation

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

func TestGraphDeployment(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string // type and path of each violation
	}{
		"an empty service is legal":                     {spec: `services: {a: {}}`},
		"a null service is an empty one":                {spec: `services: {a: null}`},
		"component types are free text":                 {spec: `services: {a: {componentType: main}}`},
		"a mount needs no entry in pvcs":                {spec: `services: {a: {volumeMounts: [{name: x, mountPoint: /x}]}}`},
		"shared memory without a size has the default":  {spec: `services: {a: {sharedMemory: {}}}`},
		"a graph has a service":                         {spec: `{}`, want: []string{"FieldValueRequired spec.services"}},
		"names that differ only in case collide":        {spec: `services: {a: {}, A: {}}`, want: []string{"FieldValueDuplicate spec.services[a]"}},
		"a name has to fit an object's name":            {spec: `services: {my_svc: {}}`, want: []string{"FieldValueInvalid spec.services[my_svc]"}},
		"replicas are not negative":                     {spec: `services: {a: {replicas: -1}}`, want: []string{"FieldValueInvalid spec.services[a].replicas"}},
		"an enabled ingress has a host":                 {spec: `services: {a: {ingress: {enabled: true}}}`, want: []string{"FieldValueRequired spec.services[a].ingress.host"}},
		"a mount has a path":                            {spec: `services: {a: {volumeMounts: [{name: x}]}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].mountPoint"}},
		"a mount names a claim":                         {spec: `services: {a: {volumeMounts: [{name: "", mountPoint: /x}]}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].name"}},
		"vLLM has a default place for its cache":        {spec: `{backendFramework: vllm, services: {a: {componentType: worker, volumeMounts: [{name: x, useAsCompilationCache: true}]}}}`},
		"other engines have none":                       {spec: `{backendFramework: sglang, services: {a: {componentType: worker, volumeMounts: [{name: x, useAsCompilationCache: true}]}}}`, want: []string{"FieldValueRequired spec.services[a].volumeMounts[0].mountPoint"}},
		"quantities can be read":                        {spec: `services: {a: {resources: {limits: {cpu: abc, custom: {x/y: "?"}}}}}`, want: []string{"FieldValueInvalid spec.services[a].resources.limits.cpu", "FieldValueInvalid spec.services[a].resources.limits.custom[x/y]"}},
		"two engines in one command need to be told":    {spec: `services: {a: {componentType: worker, extraPodSpec: {mainContainer: {args: ["python -m dynamo.vllm && python -m dynamo.sglang"]}}}}`, want: []string{"FieldValueInvalid spec.services[a].extraPodSpec.mainContainer.args"}},
		"the command and backendFramework agree":        {spec: `{backendFramework: vllm, services: {a: {componentType: worker, extraPodSpec: {mainContainer: {args: ["python -m dynamo.sglang"]}}}}}`, want: []string{"FieldValueInvalid spec.services[a].extraPodSpec.mainContainer.args"}},
		"a size of an engine may be a variable":         {spec: `services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: ['python3 -m dynamo.vllm --tensor-parallel-size "${TP}"']}}}}`},
		"a size of an engine is no other word":          {spec: `services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp many]}}}}`, want: []string{"FieldValueInvalid spec.services[a].extraPodSpec.mainContainer.args"}},
		"a claim that is created is described":          {spec: `{services: {a: {}}, pvcs: [{name: x, create: true}]}`, want: []string{"FieldValueRequired spec.pvcs[0].size", "FieldValueRequired spec.pvcs[0].storageClass", "FieldValueRequired spec.pvcs[0].volumeAccessMode"}},
		"an order names each service once":              {spec: `{services: {a: {}, b: {}}, restart: {id: "1", strategy: {order: [a, a, c]}}}`, want: []string{"FieldValueInvalid spec.restart.strategy.order", "FieldValueDuplicate spec.restart.strategy.order[1]", "FieldValueNotFound spec.restart.strategy.order[2]"}},
		"a parallel restart has no order":               {spec: `{services: {a: {}}, restart: {id: "1", strategy: {type: Parallel, order: [a]}}}`, want: []string{"FieldValueForbidden spec.restart.strategy.order"}},
		"an endpoint picker has a configuration":        {spec: `services: {a: {componentType: epp}}`, want: []string{"FieldValueRequired spec.services[a].eppConfig"}},
		"there is one endpoint picker, on one node":     {spec: `services: {a: {componentType: epp, replicas: 2, multinode: {nodeCount: 2}, eppConfig: {config: {}}}, b: {componentType: epp, eppConfig: {config: {}}}}`, want: []string{"FieldValueForbidden spec.services", "FieldValueForbidden spec.services[a].multinode", "FieldValueInvalid spec.services[a].replicas"}},
		"a discovery backend is one of two":             {spec: `services: {a: {annotations: {nvidia.com/dynamo-discovery-backend: dns}}}`, want: []string{"FieldValueNotSupported spec.services[a].annotations[nvidia.com/dynamo-discovery-backend]"}},
		"groups of nodes are counted in hundreds":       {spec: `services: {a: {replicas: 2000000000, multinode: {nodeCount: 2000000000}}}`, want: []string{"FieldValueInvalid spec.services[a].multinode.nodeCount", "FieldValueInvalid spec.services[a].replicas"}},
		"replicas in an environment count as well":      {spec: `{envs: [{name: DYN_DEPLOYMENT_CONFIG, value: '{"a":{"ServiceArgs":{"workers":-1}}}'}], services: {a: {}}}`, want: []string{"FieldValueInvalid spec.services[a].envs[DYN_DEPLOYMENT_CONFIG]"}},
		"settings of a service may be null":             {spec: `{envs: [{name: DYN_DEPLOYMENT_CONFIG, value: '{"a":null}'}], services: {a: {componentType: frontend}}}`},
		"all violations are told at once, in one order": {spec: `services: {b: {replicas: -1}, a: {replicas: -1}}`, want: []string{"FieldValueInvalid spec.services[a].replicas", "FieldValueInvalid spec.services[b].replicas"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := &v1alpha1.DynamoGraphDeployment{}
			if err := yaml.UnmarshalStrict([]byte("spec:\n  "+strings.TrimSpace(c.spec)+"\n"), dgd); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, summary(GraphDeployment(dgd))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModel(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string
	}{
		"a base model needs no source":   {`{modelName: m, baseModelName: m}`, nil},
		"both names are given":           {`{}`, []string{"FieldValueRequired spec.baseModelName", "FieldValueRequired spec.modelName"}},
		"a lora has a source":            {`{modelName: m, baseModelName: b, modelType: lora}`, []string{"FieldValueRequired spec.source"}},
		"a source has a place":           {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: ""}}`, []string{"FieldValueRequired spec.source.uri"}},
		"engines do not fetch from HTTP": {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "https://x"}}`, []string{"FieldValueInvalid spec.source.uri"}},
		"they fetch from S3":             {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "s3://x"}}`, nil},
		"from a hub":                     {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "hf://x"}}`, nil},
		"and from a file":                {`{modelName: m, baseModelName: b, modelType: lora, source: {uri: "file:///x"}}`, nil},
		"an adapter acts as a base":      {`{modelName: m, baseModelName: b, modelType: adapter}`, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			model := decode(t, c.spec, &v1alpha1.DynamoModel{})
			if diff := cmp.Diff(c.want, summary(Model(model))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	cases := map[string]struct {
		spec      string
		namespace bool
		want      []string
		warnings  []string
	}{
		"a profiler and its configuration": {spec: `{profilingConfig: {profilerImage: p, config: {}}}`},
		"both are needed": {
			spec: `{profilingConfig: {}}`,
			want: []string{"FieldValueRequired spec.profilingConfig.config", "FieldValueRequired spec.profilingConfig.profilerImage"},
		},
		"a configuration is an object":       {spec: `{profilingConfig: {profilerImage: p, config: [1]}}`, want: []string{"FieldValueInvalid spec.profilingConfig.config"}},
		"a reference has a name":             {spec: `{profilingConfig: {profilerImage: p, config: {}, configMapRef: {name: ""}}}`, want: []string{"FieldValueRequired spec.profilingConfig.configMapRef.name"}},
		"GPUs are discovered in a cluster":   {spec: `{enableGpuDiscovery: true, profilingConfig: {profilerImage: p, config: {}}}`},
		"but not from within a namespace":    {spec: `{enableGpuDiscovery: true, profilingConfig: {profilerImage: p, config: {}}}`, namespace: true, want: []string{"FieldValueForbidden spec.enableGpuDiscovery"}},
		"what agrees is no reason to warn":   {spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: p, config: {engine: {backend: vllm}, deployment: {model: m}}}}`},
		"an empty value is none":             {spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: p, config: {engine: {backend: ""}, deployment: {model: 1}}}}`},
		"a section of it too":                {spec: `{model: m, backend: vllm, profilingConfig: {profilerImage: p, config: {engine: x}}}`, want: []string{"FieldValueInvalid spec.profilingConfig.config.engine"}},
		"a graph goes where the operator is": {spec: `{deploymentOverrides: {name: Not_A_Name, namespace: other}, profilingConfig: {profilerImage: p, config: {}}}`, want: []string{"FieldValueInvalid spec.deploymentOverrides.name"}},
		"but never where the system is":      {spec: `{deploymentOverrides: {namespace: kube-system}, profilingConfig: {profilerImage: p, config: {}}}`, want: []string{"FieldValueForbidden spec.deploymentOverrides.namespace"}},
		"nor is it discovered in the config": {spec: `{profilingConfig: {profilerImage: p, config: {hardware: {enable_gpu_discovery: true}}}}`, namespace: true, want: []string{"FieldValueForbidden spec.profilingConfig.config.hardware.enable_gpu_discovery"}},
		"what will be overwritten is said, refused or not": {
			spec: `{model: m, backend: vllm, profilingConfig: {config: {engine: {backend: sglang}, deployment: {model: other}}}}`,
			want: []string{"FieldValueRequired spec.profilingConfig.profilerImage"},
			warnings: []string{
				`spec.profilingConfig.config.deployment.model: "other" is overwritten by spec.model "m"`,
				`spec.profilingConfig.config.engine.backend: "sglang" is overwritten by spec.backend "vllm"`,
			},
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			request := decode(t, c.spec, &v1alpha1.DynamoGraphDeploymentRequest{})
			if diff := cmp.Diff(c.want, summary(Request(request, Scope{ClusterWide: !c.namespace, Reserved: []string{"kube-system"}}))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, RequestWarnings(request)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScalingAdapter(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string
	}{
		"a number for a service":   {`{replicas: 0, dgdRef: {name: g, serviceName: s}}`, nil},
		"the service is named":     {`{replicas: 1}`, []string{"FieldValueRequired spec.dgdRef.name", "FieldValueRequired spec.dgdRef.serviceName"}},
		"the number is no deficit": {`{replicas: -1, dgdRef: {name: g, serviceName: s}}`, []string{"FieldValueInvalid spec.replicas"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			adapter := decode(t, c.spec, &v1alpha1.DynamoGraphDeploymentScalingAdapter{})
			if diff := cmp.Diff(c.want, summary(ScalingAdapter(adapter))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	cases := map[string]struct {
		spec string
		want []string // path and some words
	}{
		"nothing unusual":                           {`{services: {a: {}}}`, nil},
		"a Dynamo namespace of one's own":           {`{services: {a: {dynamoNamespace: mine}}}`, []string{`spec.services[a].dynamoNamespace: "mine" is no longer used; the service is in "lab-chat"`}},
		"the Dynamo namespace that it has anyway":   {`{services: {a: {dynamoNamespace: lab-chat}}}`, nil},
		"autoscaling":                               {`{services: {a: {autoscaling: {}}}}`, []string{"spec.services[a].autoscaling: is no longer used"}},
		"a revision":                                {`{services: {a: {modelRef: {name: m, revision: r}}}}`, []string{"spec.services[a].modelRef.revision: has no effect"}},
		"an ingress that makes nothing":             {`{services: {a: {ingress: {enabled: true, host: h, useVirtualService: true}}}}`, []string{"spec.services[a].ingress: has neither"}},
		"an order of services":                      {`{services: {a: {}, b: {annotations: {nvidia.com/start-after: a}}}}`, nil},
		"a debug twin":                              {`{services: {a: {annotations: {nvidia.com/enable-debug-mode: "true"}}}}`, []string{"spec.services[a].annotations[nvidia.com/enable-debug-mode]: has no effect"}},
		"GPUs that are requested but not the limit": {`{services: {a: {resources: {requests: {gpu: "1", gpuType: x}, limits: {gpu: "2", gpuType: y}}}}}`, []string{"spec.services[a].resources.requests.gpu: 1 is not used", "spec.services[a].resources.requests.gpuType: x is not used"}},
		"a picker's configuration elsewhere":        {`{services: {a: {eppConfig: {config: {}}}}}`, []string{"spec.services[a].eppConfig: is read only where"}},
		"nodes without an engine":                   {`{services: {a: {multinode: {nodeCount: 2}}}}`, []string{"spec.services[a].multinode: nothing tells the 2 nodes of each other: no engine"}},
		"nodes of a model that fits on one":         {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp 8]}}}}}`, []string{"spec.services[a].multinode: nothing tells the 2 nodes of each other: its arguments"}},
		"nodes of nobody knows how many GPUs":       {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp 16]}}}}}`, []string{"spec.services[a].multinode: nothing tells the 2 nodes of each other: resources"}},
		"nodes of a size that only the pod knows":   {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp $TP]}}}}}`, []string{"spec.services[a].extraPodSpec.mainContainer.args: --tensor-parallel-size $TP is known only when the pod runs"}},
		"nodes of a size that the graph says":       {`{envs: [{name: TP, value: "16"}], services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp $TP]}}}}}`, nil},
		"nodes of a size that the container says":   {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {env: [{name: TP, value: "16"}], args: [python3 -m dynamo.vllm -tp $TP]}}}}}`, nil},
		"GPUs may be given in the container":        {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp 16], resources: {limits: {nvidia.com/gpu: 8}}}}}}}`, nil},
		"a wrapper hides the engine":                {`{backendFramework: sglang, services: {a: {componentType: worker, multinode: {nodeCount: 2}, extraPodSpec: {mainContainer: {args: [./serve.sh]}}}}}`, []string{"spec.services[a].multinode: nothing tells the 2 nodes of each other: the command"}},
		"nodes that are told of each other":         {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.sglang]}}}}}`, nil},
		"surge of groups of nodes":                  {`{services: {a: {componentType: worker, multinode: {nodeCount: 2}, annotations: {nvidia.com/deployment-rolling-update-max-surge: "1", nvidia.com/deployment-strategy: Recreate}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.sglang]}}}}}`, []string{"spec.services[a].annotations[nvidia.com/deployment-rolling-update-max-surge]: has no effect; groups of nodes"}},
		"surge of a service on one node":            {`{services: {a: {annotations: {nvidia.com/deployment-rolling-update-max-surge: "1"}}}}`, nil},
		"surge of a service that is recreated":      {`{services: {a: {annotations: {nvidia.com/deployment-rolling-update-max-surge: "1", nvidia.com/deployment-strategy: Recreate}}}}`, []string{"spec.services[a].annotations[nvidia.com/deployment-rolling-update-max-surge]: has no effect; with"}},
		"a claim that nobody mounts":                {`{pvcs: [{name: models}, {name: made, create: true}], services: {a: {}}}`, []string{"spec.pvcs[0]: has no effect; no service mounts models"}},
		"claims that somebody mounts":               {`{pvcs: [{name: models}, {name: data}], services: {a: {volumeMounts: [{name: models, mountPoint: /m}]}, b: {extraPodSpec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}}}`, nil},
		"a compilation cache of another engine":     {`{backendFramework: sglang, services: {a: {componentType: worker, volumeMounts: [{name: c, mountPoint: /c, useAsCompilationCache: true}]}}}`, []string{"spec.services[a].volumeMounts[0].useAsCompilationCache: c is mounted, but only vLLM"}},
		"a route to a component without a port":     {`{services: {a: {componentType: planner, ingress: {enabled: true, host: h, ingressControllerClassName: c}}}}`, []string{"spec.services[a].ingress: leads nowhere"}},
		"a route to a component with one":           {`{services: {a: {ingress: {enabled: true, host: h, ingressControllerClassName: c}, extraPodSpec: {mainContainer: {ports: [{name: system, containerPort: 80}]}}}}}`, nil},
		"a checkpoint":                              {`{services: {a: {checkpoint: {enabled: true}}}}`, []string{"spec.services[a].checkpoint: pods start cold; nothing captures checkpoints"}},
		"more shadows than a pod has":               {`{services: {a: {componentType: worker, gpuMemoryService: {enabled: true}, failover: {enabled: true, numShadows: 2}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm], resources: {limits: {nvidia.com/gpu: 1}}}}}}}`, []string{"spec.services[a].failover.numShadows: 2 is not used", "spec.services[a].failover: engines of one pod"}},
		"more shadows in pods of their own":         {`{services: {a: {componentType: worker, gpuMemoryService: {enabled: true, mode: interPod}, failover: {enabled: true, mode: interPod, numShadows: 2}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm], resources: {limits: {nvidia.com/gpu: 1}}}}}}}`, nil},
		"settings since January that are honoured":  {`{priorityClassName: p, annotations: {a: b}, labels: {a: b}, topologyConstraint: {}, experimental: {}, services: {a: {minAvailable: 1, runtimeVersionOverride: "1.4"}}}`, nil},
		"a gang of more replicas than there are":    {`{services: {a: {replicas: 2, minAvailable: 3}, b: {minAvailable: 2}}}`, []string{"spec.services[a].minAvailable: is more than replicas, 2; Grove", "spec.services[b].minAvailable: is more than replicas, 1; Grove"}},
		"a gang of as many, of none and an adapter": {`{services: {a: {replicas: 2, minAvailable: 2}, b: {replicas: 0, minAvailable: 2}, c: {minAvailable: 2, scalingAdapter: {enabled: true}}}}`, nil},
		"warnings of all services, in order":        {`{services: {b: {autoscaling: {}}, a: {autoscaling: {}}}}`, []string{"spec.services[a].autoscaling", "spec.services[b].autoscaling"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			dgd := decode(t, c.spec, &v1alpha1.DynamoGraphDeployment{})
			dgd.Namespace, dgd.Name = "lab", "chat"
			got := GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{Provider: workload.Chosen(dgd.Annotations)})
			if len(got) != len(c.want) {
				t.Fatalf("warnings %q, want %q", got, c.want)
			}
			for i, w := range c.want {
				if !strings.HasPrefix(got[i], w) {
					t.Errorf("warning %q, want %q", got[i], w)
				}
			}
		})
	}
	t.Run("where workers do not find out where they are", func(t *testing.T) {
		const at = "spec.experimental.kvTransferPolicy"
		for rule, c := range map[string]struct {
			policy string
			by     Orchestration
			want   []string
		}{
			"nobody knows which labels pods have": {`{labelKey: rack, domain: rack}`, Orchestration{}, nil},
			"a label that they have":              {`{labelKey: rack, domain: rack}`, Orchestration{NodeLabels: []string{"row", "rack"}}, nil},
			"a label that they do not have":       {`{labelKey: rack, domain: rack}`, Orchestration{NodeLabels: []string{"row"}}, []string{at + ".labelKey: workers find no place"}},
			"none at all":                         {`{labelKey: rack, domain: rack}`, Orchestration{NodeLabels: []string{}}, []string{at + ".labelKey: workers find no place"}},
			"one that API servers set":            {`{labelKey: topology.kubernetes.io/zone, domain: zone}`, Orchestration{NodeLabels: []string{}}, nil},
			"a topology of labels that they have": {`{clusterTopologyName: t, domain: rack}`, Orchestration{NodeLabels: []string{"rack"}}, nil},
			"a topology without any":              {`{clusterTopologyName: t, domain: rack}`, Orchestration{NodeLabels: []string{}}, []string{at + ".clusterTopologyName: workers find no place"}},
			"the contract of earlier runtimes":    {`{labelKey: rack, domain: rack}`, Orchestration{Contract: graph.ContractRules{Forced: graph.ContractSeed}, NodeLabels: []string{"rack"}}, []string{at + ": has no effect"}},
		} {
			t.Run(rule, func(t *testing.T) {
				dgd := decode(t, `{experimental: {kvTransferPolicy: `+c.policy+`}, services: {a: {componentType: worker}}}`, &v1alpha1.DynamoGraphDeployment{})
				dgd.Namespace, dgd.Name = "lab", "chat"
				told := Create(dgd, Scope{Contract: c.by.Contract, NodeLabels: c.by.NodeLabels}).Warnings
				for by, got := range map[string][]string{"controller": GraphDeploymentWarnings(dgd, IngressRules{}, c.by), "webhook": told} {
					var words []string
					for i, w := range got {
						if i < len(c.want) && strings.HasPrefix(w, c.want[i]) {
							w = c.want[i]
						}
						words = append(words, w)
					}
					if diff := cmp.Diff(c.want, words); diff != "" {
						t.Errorf("warnings of the %s (-want +got):\n%s", by, diff)
					}
				}
			})
		}
	})
	t.Run("what depends on who runs a graph is said where that is known", func(t *testing.T) {
		const tuned = `{services: {a: {annotations: {nvidia.com/deployment-strategy: Recreate}, extraPodMetadata: {annotations: {nvidia.com/deployment-min-ready-seconds: "3"}}}}}`
		for _, c := range []struct {
			by   Orchestration
			want []string
		}{
			{Orchestration{}, nil},
			{Orchestration{Provider: workload.ProviderComponent}, []string{"metadata.annotations[nvidia.com/kai-scheduler-queue]: has no effect; pods are scheduled"}},
			{Orchestration{Provider: workload.ProviderGrove}, []string{
				"spec.services[a].annotations[nvidia.com/deployment-strategy]: has no effect; provider grove",
				"spec.services[a].extraPodMetadata.annotations[nvidia.com/deployment-min-ready-seconds]: has no effect; provider grove",
			}},
			{Orchestration{Provider: workload.ProviderGrove, WithoutKAI: true}, []string{
				"metadata.annotations[nvidia.com/kai-scheduler-queue]: has no effect; the cluster has no KAI",
				"spec.services[a].annotations[nvidia.com/deployment-strategy]: has no effect; provider grove",
				"spec.services[a].extraPodMetadata.annotations[nvidia.com/deployment-min-ready-seconds]: has no effect; provider grove",
			}},
		} {
			dgd := decode(t, tuned, &v1alpha1.DynamoGraphDeployment{})
			dgd.Annotations = map[string]string{v1alpha1.AnnotationKaiQueue: "q"}
			got := GraphDeploymentWarnings(dgd, IngressRules{}, c.by)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("%+v: warnings %q, want %q", c.by, got, c.want)
			}
		}
	})
	t.Run("what tunes the replacement of workers counts where they come in generations", func(t *testing.T) {
		tune := func(kind, nodes string) string {
			return `{services: {a: {componentType: ` + kind + nodes + `, annotations: {nvidia.com/deployment-rolling-update-max-surge: "0", nvidia.com/deployment-rolling-update-max-unavailable: "1"}, extraPodSpec: {mainContainer: {image: "example.com/engine:1.4.0", args: [python3 -m dynamo.sglang]}}}}}`
		}
		const surge, unavailable = "spec.services[a].annotations[nvidia.com/deployment-rolling-update-max-surge]: has no effect; ", "spec.services[a].annotations[nvidia.com/deployment-rolling-update-max-unavailable]: has no effect; "
		on := func(why string) []string { return []string{surge + why, unavailable + why} }
		const groups = ", multinode: {nodeCount: 2}, resources: {limits: {gpu: \"1\"}}"
		for name, c := range map[string]struct {
			kind, nodes string
			said        map[string]string
			by          Orchestration
			want        []string
		}{
			"of workers on Grove":                  {kind: "decode", by: Orchestration{Provider: workload.ProviderGrove}},
			"of groups of nodes on Grove":          {kind: "worker", nodes: groups, by: Orchestration{Provider: workload.ProviderGrove}},
			"of groups of nodes on components":     {kind: "worker", nodes: groups, by: Orchestration{Provider: workload.ProviderComponent}},
			"of groups of nodes, wherever":         {kind: "worker", nodes: groups},
			"not of a frontend on Grove":           {kind: "frontend", by: Orchestration{Provider: workload.ProviderGrove}, want: on("provider grove")},
			"not with generations off":             {kind: "decode", by: Orchestration{Provider: workload.ProviderGrove, InPlace: true}, want: on("provider grove")},
			"not with generations off, of groups":  {kind: "worker", nodes: groups, by: Orchestration{Provider: workload.ProviderComponent, InPlace: true}, want: on("groups of nodes")},
			"not under the contract before 1.x":    {kind: "decode", by: Orchestration{Provider: workload.ProviderGrove, Contract: graph.ContractRules{Forced: graph.ContractSeed}}, want: on("provider grove")},
			"not under it, of groups":              {kind: "worker", nodes: groups, by: Orchestration{Provider: workload.ProviderComponent, Contract: graph.ContractRules{Forced: graph.ContractSeed}}, want: on("groups of nodes")},
			"not of a graph that Grove replaces":   {kind: "decode", said: map[string]string{v1alpha1.AnnotationGroveUpdateStrategy: "OnDelete"}, by: Orchestration{Provider: workload.ProviderGrove}, want: on("provider grove")},
			"not of one that is found to be unfit": {kind: "decode", by: Orchestration{Provider: workload.ProviderGrove, Unfit: "packed"}, want: on("provider grove")},
			"not where workers are not kept apart": {kind: "decode", said: map[string]string{v1alpha1.AnnotationRolloutIsolation: "none"}, by: Orchestration{Provider: workload.ProviderGrove}, want: on("provider grove")},
			"but a recorded contract counts":       {kind: "decode", said: map[string]string{v1alpha1.AnnotationRuntimeContract: "1.x"}, by: Orchestration{Provider: workload.ProviderGrove, Contract: graph.ContractRules{Forced: graph.ContractSeed}}},
		} {
			t.Run(name, func(t *testing.T) {
				dgd := decode(t, tune(c.kind, c.nodes), &v1alpha1.DynamoGraphDeployment{})
				dgd.Name, dgd.Annotations = "chat", c.said
				if got := GraphDeploymentWarnings(dgd, IngressRules{}, c.by); !slices.EqualFunc(got, c.want, strings.HasPrefix) {
					t.Errorf("warnings %q, want %q", got, c.want)
				}
			})
		}
	})
	t.Run("what is said about rollouts and not done", func(t *testing.T) {
		said := map[string]string{v1alpha1.AnnotationRolloutSteps: "1 5m", v1alpha1.AnnotationRolloutSLO: "errors<1%", v1alpha1.AnnotationRolloutIsolation: "paired"}
		const isolation, slo, steps = "metadata.annotations[nvidia.com/rollout-isolation]: ", "metadata.annotations[nvidia.com/rollout-slo]: ", "metadata.annotations[nvidia.com/rollout-steps]: "
		for _, c := range []struct {
			by   Orchestration
			want []string
		}{
			{Orchestration{Provider: workload.ProviderComponent, InPlace: true}, []string{isolation + "has no effect; pods are replaced in place", slo + "has no effect; pods", steps + "has no effect; pods"}},
			{Orchestration{Provider: workload.ProviderGrove, Unfit: "packed"}, []string{isolation + "has no effect; pods are replaced in place: packed", slo + "has no effect; pods", steps + "has no effect; pods"}},
			{Orchestration{Provider: workload.ProviderGrove, Contract: graph.ContractRules{Forced: graph.ContractSeed}}, []string{isolation + "has no effect; pods are replaced in place: generations need", slo + "has no effect; pods", steps + "has no effect; pods"}},
			{Orchestration{Provider: workload.ProviderGrove, Contract: graph.ContractRules{Forced: graph.ContractV1}}, []string{isolation + "is carried out as auto: frontends of a graph that Grove runs"}},
			{Orchestration{Provider: workload.ProviderComponent, Contract: graph.ContractRules{Forced: graph.ContractV1}}, nil},
			{Orchestration{Provider: workload.ProviderComponent}, nil},
		} {
			dgd := decode(t, `{services: {a: {componentType: frontend}, b: {componentType: worker}}}`, &v1alpha1.DynamoGraphDeployment{})
			dgd.Annotations = said
			if got := GraphDeploymentWarnings(dgd, IngressRules{}, c.by); !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("%+v: warnings %q, want %q", c.by, got, c.want)
			}
		}
	})
	t.Run("a strategy where no service is", func(t *testing.T) {
		strategy := map[string]string{v1alpha1.AnnotationDeploymentStrategy: "Recreate"}
		dgd := decode(t, `{services: {a: {}}}`, &v1alpha1.DynamoGraphDeployment{})
		dgd.Annotations = strategy
		dcd := decode(t, `{}`, &v1alpha1.DynamoComponentDeployment{})
		dcd.Annotations = strategy
		for _, got := range [][]string{GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{}), ComponentDeploymentWarnings(dcd, IngressRules{})} {
			if len(got) != 1 || !strings.HasPrefix(got[0], "metadata.annotations[nvidia.com/deployment-strategy]: has no effect; it belongs in") {
				t.Errorf("warnings %q", got)
			}
		}
	})
	t.Run("an order that orders nothing", func(t *testing.T) {
		order := map[string]string{v1alpha1.AnnotationStartAfter: "a"}
		dgd := decode(t, `{services: {a: {}}}`, &v1alpha1.DynamoGraphDeployment{})
		dgd.Annotations = order
		dcd := decode(t, `{}`, &v1alpha1.DynamoComponentDeployment{})
		dcd.Spec.Annotations = order
		for _, got := range [][]string{GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{}), ComponentDeploymentWarnings(dcd, IngressRules{})} {
			if len(got) != 1 || !strings.Contains(got[0], "annotations[nvidia.com/start-after]: has no effect") {
				t.Errorf("warnings %q", got)
			}
		}
	})
	t.Run("a component of a graph warns nobody", func(t *testing.T) {
		dcd := decode(t, `{autoscaling: {}}`, &v1alpha1.DynamoComponentDeployment{})
		if got := ComponentDeploymentWarnings(dcd, IngressRules{}); len(got) != 1 {
			t.Errorf("standing alone: %q", got)
		}
		dcd.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "chat"}}
		if got := ComponentDeploymentWarnings(dcd, IngressRules{}); got != nil {
			t.Errorf("in a graph: %q", got)
		}
	})
}

// decode reads a spec.
func decode[T any](t *testing.T, spec string, into *T) *T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte("spec: "+spec), into); err != nil {
		t.Fatal(err)
	}
	return into
}

func summary(errs field.ErrorList) []string {
	var lines []string
	for _, e := range errs {
		lines = append(lines, string(e.Type)+" "+e.Field)
	}
	return lines
}

// TestRolloutAnnotationsCanBeRead: one that cannot be read is refused rather than taken
// for none, and what can be is admitted.
func TestRolloutAnnotationsCanBeRead(t *testing.T) {
	dgd := decode(t, `{services: {a: {}}}`, &v1alpha1.DynamoGraphDeployment{})
	dgd.Annotations = map[string]string{v1alpha1.AnnotationRolloutSteps: "25% 10", v1alpha1.AnnotationRolloutSLO: "errors<1%", v1alpha1.AnnotationRolloutPaused: "yes"}
	want := []string{
		"FieldValueInvalid metadata.annotations[nvidia.com/rollout-paused]",
		"FieldValueInvalid metadata.annotations[nvidia.com/rollout-steps]",
	}
	if diff := cmp.Diff(want, summary(GraphDeployment(dgd))); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	old := dgd.DeepCopy()
	old.Annotations = map[string]string{v1alpha1.AnnotationRolloutSteps: "25% 10m"}
	if problems := Update(old, dgd, Scope{}).Problems; len(problems) != 2 {
		t.Errorf("a change of annotations alone has the problems %v", problems)
	}
}

// TestAnnotationsOfAGraphAreChecked: what Grove would refuse later is refused, and what
// would do nothing is told.
// TestWhatIsRefusedWhenItIsWrittenStopsNoGraphThatHasIt: it ran with it, and an operator
// that came later must not leave it alone for that.
func TestWhatIsRefusedWhenItIsWrittenStopsNoGraphThatHasIt(t *testing.T) {
	for rule, c := range map[string]struct {
		spec, strategy string
		want           []string
	}{
		"a label of nodes is a label":         {spec: `{services: {a: {}}, experimental: {kvTransferPolicy: {labelKey: "my rack", domain: rack}}}`, want: []string{"FieldValueInvalid spec.experimental.kvTransferPolicy.labelKey"}},
		"and may have a prefix":               {spec: `{services: {a: {}}, experimental: {kvTransferPolicy: {labelKey: example.com/rack, domain: rack}}}`},
		"a topology needs no label":           {spec: `{services: {a: {}}, experimental: {kvTransferPolicy: {clusterTopologyName: dc, domain: rack}}}`},
		"a strategy that Grove does not know": {spec: `{services: {a: {}}}`, strategy: "Foo", want: []string{"FieldValueNotSupported metadata.annotations[nvidia.com/grove-update-strategy]"}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decode(t, c.spec, &v1alpha1.DynamoGraphDeployment{})
			dgd.Name, dgd.Annotations = "chat", map[string]string{v1alpha1.AnnotationGroveUpdateStrategy: c.strategy}
			if diff := cmp.Diff(c.want, summary(Create(dgd, Scope{}).Problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if stopped := GraphDeployment(dgd); len(stopped) > 0 {
				t.Errorf("a graph that runs is stopped for %v", stopped)
			}
		})
	}
}

func TestAnnotationsOfAGraphAreChecked(t *testing.T) {
	for rule, c := range map[string]struct {
		key, value     string
		want, warnings []string
	}{
		"Grove replaces pods one by one":       {key: v1alpha1.AnnotationGroveUpdateStrategy, value: "RollingRecreate"},
		"or as they are deleted":               {key: v1alpha1.AnnotationGroveUpdateStrategy, value: "OnDelete\n"},
		"or all at once":                       {key: v1alpha1.AnnotationGroveUpdateStrategy, value: "Coherent"},
		"a strategy that Grove does not know":  {key: v1alpha1.AnnotationGroveUpdateStrategy, value: "Foo", want: []string{"FieldValueNotSupported metadata.annotations[nvidia.com/grove-update-strategy]"}},
		"containers register":                  {key: v1alpha1.AnnotationDiscoveryMode, value: v1alpha1.DiscoveryModeContainer},
		"neither pods nor containers register": {key: v1alpha1.AnnotationDiscoveryMode, value: "foo", warnings: []string{`metadata.annotations[nvidia.com/dynamo-kube-discovery-mode]: "foo" is not known and has no effect; known are [pod container]`}},
		"an executor that no runtime knows":    {key: v1alpha1.AnnotationVLLMExecutor, value: "smoke", warnings: []string{`metadata.annotations[nvidia.com/vllm-distributed-executor-backend]: "smoke" is not known and has no effect; known are [mp ray]`}},
		"a queue that no pod is given":         {key: v1alpha1.AnnotationVolcanoQueue, value: "q", warnings: []string{"metadata.annotations[nvidia.com/volcano-queue]: has no effect; pods are given no queue of Volcano"}},
	} {
		t.Run(rule, func(t *testing.T) {
			dgd := decode(t, `{services: {a: {}, b: {}}}`, &v1alpha1.DynamoGraphDeployment{})
			dgd.Name, dgd.Annotations = "chat", map[string]string{c.key: c.value}
			if diff := cmp.Diff(c.want, summary(Create(dgd, Scope{}).Problems)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.warnings, GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{})); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAGraphSaysAboutItsPlanner(t *testing.T) {
	for _, x := range []struct {
		rule, value string
		planner     bool
		warns       bool
	}{
		{"native replaces a planner", v1alpha1.PlannerNative, true, false},
		{"another word is none", "ours", true, true},
		{"without a planner nothing is replaced", v1alpha1.PlannerNative, false, true},
	} {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		dgd.Name, dgd.Annotations = "g", map[string]string{v1alpha1.AnnotationPlanner: x.value}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {ComponentType: v1alpha1.ComponentTypeFrontend}}
		if x.planner {
			dgd.Spec.Services["b"] = &v1alpha1.SharedSpec{ComponentType: v1alpha1.ComponentTypePlanner}
		}
		if got := GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{}); (len(got) > 0) != x.warns {
			t.Errorf("%s: %v", x.rule, got)
		}
	}
	tokenless := &v1alpha1.DynamoGraphDeployment{}
	tokenless.Name, tokenless.Annotations = "g", map[string]string{v1alpha1.AnnotationScaleToZeroAfter: "15m"}
	tokenless.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {
		ComponentType: v1alpha1.ComponentTypeFrontend,
		ExtraPodSpec:  &v1alpha1.ExtraPodSpec{PodSpec: &corev1.PodSpec{AutomountServiceAccountToken: new(false)}},
	}}
	if got := GraphDeploymentWarnings(tokenless, IngressRules{}, Orchestration{}); len(got) != 1 || !strings.Contains(got[0], "service a mounts no token") {
		t.Errorf("a frontend that may not write its Lease: %v", got)
	}
	for _, x := range []struct {
		rule, after, timeout string
		role                 v1alpha1.ComponentType
		provider             workload.Provider
		warns                bool
	}{
		{"a graph may scale to zero", "15m", "", v1alpha1.ComponentTypeFrontend, workload.ProviderComponent, false},
		{"and hold requests", "15m", "5m", v1alpha1.ComponentTypeFrontend, "", false},
		{"a time that is none", "soon", "", v1alpha1.ComponentTypeFrontend, "", true},
		{"a time that is too short", "1s", "", v1alpha1.ComponentTypeFrontend, "", true},
		{"a graph without a frontend", "15m", "", v1alpha1.ComponentTypeWorker, "", true},
		{"a graph of Grove", "15m", "", v1alpha1.ComponentTypeFrontend, workload.ProviderGrove, true},
		{"requests that are held for ever", "15m", "5h", v1alpha1.ComponentTypeFrontend, "", true},
		{"requests that nobody holds", "", "5m", v1alpha1.ComponentTypeFrontend, "", true},
	} {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		dgd.Name, dgd.Annotations = "g", map[string]string{}
		for key, value := range map[string]string{v1alpha1.AnnotationScaleToZeroAfter: x.after, v1alpha1.AnnotationActivationTimeout: x.timeout} {
			if value != "" {
				dgd.Annotations[key] = value
			}
		}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {ComponentType: x.role}}
		if got := GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{Provider: x.provider}); (len(got) > 0) != x.warns {
			t.Errorf("%s: %v", x.rule, got)
		}
	}
	for value, warns := range map[string]bool{"8": false, "0": true, "-1": true, "eight": true, "8 GPUs": true} {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		dgd.Name, dgd.Annotations = "g", map[string]string{v1alpha1.AnnotationGPUBudget: value, v1alpha1.AnnotationScalingPriority: "-3"}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{"a": {ComponentType: v1alpha1.ComponentTypeFrontend}}
		if got := GraphDeploymentWarnings(dgd, IngressRules{}, Orchestration{}); (len(got) > 0) != warns {
			t.Errorf("a budget of %q: %v", value, got)
		}
	}
}
