package render_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// FuzzGraph renders whatever can be decoded as a graph: nothing panics, what
// validation admits can be rendered, and twice the same gives the same bytes.
func FuzzGraph(f *testing.F) {
	for _, spec := range []string{
		`services: {a: {}}`,
		`services: {a: null, B: {componentType: frontend, ingress: {enabled: true, host: h}}}`,
		`services: {a: {componentType: worker, replicas: 2, resources: {limits: {gpu: "1", custom: {x/y: 1Gi}}}}}`,
		`services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: ["python3 -m dynamo.vllm -tp 16"]}}}}`,
		`services: {a: {componentType: worker, multinode: {nodeCount: 2}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {command: [python3, -m, dynamo.vllm], args: [-dp, "16"]}}}}`,
		`services: {a: {componentType: prefill, multinode: {nodeCount: 3}, extraPodSpec: {mainContainer: {command: [bash, -lc], args: ["A=1 python3 -m dynamo.sglang | tee l"]}}}}`,
		`services: {a: {componentType: decode, multinode: {nodeCount: 2}, resources: {requests: {gpu: "4"}}, extraPodSpec: {mainContainer: {command: [numactl, python3, -m, dynamo.trtllm]}}}}`,
		`services: {a: {componentType: epp, eppConfig: {config: {plugins: [{type: x}], schedulingProfiles: [{plugins: [{}]}]}}}}`,
		`services: {a: {componentType: epp, eppConfig: {configMapRef: {name: x}}}}`,
		`{backendFramework: vllm, pvcs: [{name: x, create: true, size: 1Gi, storageClass: s, volumeAccessMode: ReadWriteOnce}], services: {a: {componentType: worker, modelRef: {name: m}, scalingAdapter: {enabled: true}, volumeMounts: [{name: x, useAsCompilationCache: true}]}}}`,
		`{envs: [{name: DYN_DEPLOYMENT_CONFIG, value: '{"a":{"ServiceArgs":{"workers":2,"resources":{"cpu":"1"}}}}'}], services: {a: {componentType: frontend}}}`,
		`services: {a: {annotations: {nvidia.com/deployment-strategy: Recreate}, labels: {x: y}, envs: [{name: A, value: $(B)}, {name: B}], extraPodSpec: {containers: [{name: s}], volumes: [{name: v}], mainContainer: {livenessProbe: {periodSeconds: 1}}}}}`,
	} {
		f.Add([]byte(spec))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := yaml.Unmarshal(text, &dgd.Spec); err != nil {
			return
		}
		for _, s := range dgd.Spec.Services {
			if s != nil && s.Multinode != nil && s.Multinode.NodeCount < 2 {
				return // the schema does not let it in
			}
		}
		dgd.Name, dgd.Namespace = "chat", "lab"
		validation.GraphDeploymentWarnings(dgd, validation.IngressRules{}, validation.Orchestration{})
		if len(validation.GraphDeployment(dgd)) > 0 {
			return
		}
		first, second := renderText(t, dgd), renderText(t, dgd.DeepCopy())
		if !bytes.Equal(first, second) {
			t.Errorf("two renderings differ:\n%s\n%s", first, second)
		}
	})
}

func renderText(t *testing.T, dgd *v1alpha1.DynamoGraphDeployment) []byte {
	t.Helper()
	top, below, err := renderBoth(dgd)
	if err != nil {
		t.Fatalf("validation admits it, rendering does not: %v", err)
	}
	cliques, err := renderGraph(dgd, workload.ProviderGrove)
	if err != nil {
		t.Fatalf("validation admits it, rendering for Grove does not: %v", err)
	}
	text, err := json.Marshal(manifests(t, append(append([]level{top}, below...), cliques)...))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
