package prerequisite

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document
}

var classes = []string{"compute-domain-default-channel.nvidia.com", "gpu.intel.com", "gpu.nvidia.com"}

func TestWhatAManifestNamesIsSupplied(t *testing.T) {
	claim := map[string]any{"accessModes": []any{"ReadWriteMany"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	devices := func(class, request string) map[string]any {
		return map[string]any{"devices": map[string]any{"requests": []any{
			map[string]any{"name": request, "exactly": map[string]any{"deviceClassName": class}},
		}}}
	}
	type supplied map[string]map[string]any // fields by kind and name
	for name, c := range map[string]struct {
		manifest string
		want     supplied
	}{
		"a claim that a service of v1alpha1 mounts, or that a graph lists": {
			`{spec: {pvcs: [{name: a}], services: {w: {volumeMounts: [{name: b, mountPoint: /b}]}}}}`,
			supplied{"PersistentVolumeClaim a": {"spec": claim}, "PersistentVolumeClaim b": {"spec": claim}},
		},
		"a claim that a volume names, and one that is mounted without a volume": {
			`{spec: {components: [{podTemplate: {spec: {containers: [{volumeMounts: [{name: v}, {name: b}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]}}}]}}`,
			supplied{"PersistentVolumeClaim a": {"spec": claim}, "PersistentVolumeClaim b": {"spec": claim}},
		},
		"the claim of compiled kernels": {
			`{spec: {components: [{compilationCache: {pvcName: c}}]}}`,
			supplied{"PersistentVolumeClaim c": {"spec": claim}},
		},
		"Secrets with the keys that are asked for": {
			`{envFromSecret: a, env: [{valueFrom: {secretKeyRef: {name: b, key: k}}}], envFrom: [{secretRef: {name: c}}], volumes: [{secret: {secretName: d, items: [{key: i}]}}]}`,
			supplied{
				"Secret a": {"stringData": map[string]any{"HF_TOKEN": "value", "token": "value"}},
				"Secret b": {"stringData": map[string]any{"HF_TOKEN": "value", "token": "value", "k": "value"}},
				"Secret c": {"stringData": map[string]any{"HF_TOKEN": "value", "token": "value"}},
				"Secret d": {"stringData": map[string]any{"HF_TOKEN": "value", "token": "value", "i": "value"}},
			},
		},
		"ConfigMaps with the keys that are asked for, by subPath too": {
			`{containers: [{env: [{valueFrom: {configMapKeyRef: {name: a, key: k}}}], volumeMounts: [{name: v, subPath: s}]}], volumes: [{name: v, configMap: {name: b}}]}`,
			supplied{"ConfigMap a": {"data": map[string]any{"k": "{}"}}, "ConfigMap b": {"data": map[string]any{"s": "{}"}}},
		},
		"a ConfigMap with the file that a command line names in its folder": {
			`{containers: [{command: [sh, -c], args: ["engine --config=/etc/c/a.yaml --log /var/b.log"], volumeMounts: [{name: v, mountPath: /etc/c/}]}], volumes: [{name: v, configMap: {name: a}}]}`,
			supplied{"ConfigMap a": {"data": map[string]any{"a.yaml": "{}"}}},
		},
		"a file of an engine on several nodes has a rank for each": {
			`{components: [{multinode: {nodeCount: 4}, podTemplate: {spec: {containers: [{command: [bash, -c], args: ["exec python3 -m dynamo.sglang --config /etc/c/a.yaml"], volumeMounts: [{name: v, mountPath: /etc/c}]}], volumes: [{name: v, configMap: {name: a}}]}}}]}`,
			supplied{"ConfigMap a": {"data": map[string]any{"a.yaml": `{"tensor-parallel-size":4}`}}},
		},
		"a file of an engine that has one role says which": {
			`{components: [{type: prefill, podTemplate: {spec: {containers: [{args: [-m, dynamo.sglang, --config, /etc/c/a.yaml], volumeMounts: [{name: v, mountPath: /etc/c}]}], volumes: [{name: v, configMap: {name: a}}]}}}]}`,
			supplied{"ConfigMap a": {"data": map[string]any{"a.yaml": `{"disaggregation-mode":"prefill"}`}}},
		},
		"a file of an engine whose command line says its role says none": {
			`{components: [{type: decode, podTemplate: {spec: {containers: [{args: [-m, dynamo.sglang, --disaggregation-mode=decode, --config, /etc/c/a.yaml], volumeMounts: [{name: v, mountPath: /etc/c}]}], volumes: [{name: v, configMap: {name: a}}]}}}]}`,
			supplied{"ConfigMap a": {"data": map[string]any{"a.yaml": `{}`}}},
		},
		"a file of an engine in a service of v1alpha1": {
			`{services: {w: {componentType: worker, subComponentType: decode, multinode: {nodeCount: 2}, extraPodSpec: {mainContainer: {args: [-m, dynamo.sglang, --config, /etc/c/a.yaml], volumeMounts: [{name: v, mountPath: /etc/c}]}, volumes: [{name: v, configMap: {name: a}}]}}}}`,
			supplied{"ConfigMap a": {"data": map[string]any{"a.yaml": `{"disaggregation-mode":"decode","tensor-parallel-size":2}`}}},
		},
		"what pods are admitted by": {
			`{serviceAccountName: a, runtimeClassName: b, priorityClassName: c}`,
			supplied{"ServiceAccount a": {}, "RuntimeClass b": {"handler": "b"}, "PriorityClass c": {"value": int64(1000)}},
		},
		"a template of a claim is of GPUs": {
			`{containers: [{resources: {claims: [{name: gpu}]}}], resourceClaims: [{name: gpu, resourceClaimTemplateName: some}]}`,
			supplied{"ResourceClaimTemplate some": {"spec": map[string]any{"spec": devices("gpu.nvidia.com", "device")}}},
		},
		"a template of a claim is of the GPUs that the pod is built for, with the request that is named": {
			`{mainContainer: {image: runtime-xpu, resources: {claims: [{name: gpu, request: card}]}}, resourceClaims: [{name: gpu, resourceClaimTemplateName: some}]}`,
			supplied{"ResourceClaimTemplate some": {"spec": map[string]any{"spec": devices("gpu.intel.com", "card")}}},
		},
		"a template of a claim is of channels if its name says so": {
			`{resourceClaims: [{name: x, resourceClaimTemplateName: my-cd-channel}]}`,
			supplied{"ResourceClaimTemplate my-cd-channel": {"spec": map[string]any{"spec": devices("compute-domain-default-channel.nvidia.com", "device")}}},
		},
		"a claim that pods share": {
			`{resourceClaims: [{name: x, resourceClaimName: ours}]}`,
			supplied{"ResourceClaim ours": {"spec": devices("gpu.nvidia.com", "device")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			needs := Of(parse(t, c.manifest))
			objects, err := needs.Objects("ns", classes)
			if err != nil {
				t.Fatal(err)
			}
			got := supplied{}
			for _, o := range objects {
				at := o.GetKind() + " " + o.GetName()
				for _, key := range []string{"apiVersion", "kind", "metadata"} {
					delete(o.Object, key)
				}
				got[at] = o.Object
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAGlobalRouterKnowsTheRoutersOfItsManifest(t *testing.T) {
	needs := Of(
		parse(t, `{containers: [{args: [--config, /c/r.json], volumeMounts: [{name: v, mountPath: /c}]}], volumes: [{name: v, configMap: {name: a}}]}`),
		parse(t, `{containers: [{command: [python3, -m, dynamo.router], args: [--endpoint, ns-p.prefill.generate]}]}`),
		parse(t, `{containers: [{command: [python3, -m, dynamo.router], args: [--endpoint, ns-d.backend.generate]}]}`),
	)
	objects, err := needs.Objects("ns", nil)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	text, _, _ := unstructured.NestedString(objects[0].Object, "data", "r.json")
	var got struct {
		Prefill []string `json:"prefill_pool_dynamo_namespaces"`
		Decode  []string `json:"decode_pool_dynamo_namespaces"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if len(got.Prefill) != 1 || got.Prefill[0] != "ns-p" || len(got.Decode) != 1 || got.Decode[0] != "ns-d" {
		t.Errorf("pools %+v", got)
	}
}

func TestADeviceThatNoClassIsOfIsAnError(t *testing.T) {
	needs := Of(parse(t, `{resourceClaims: [{name: x, resourceClaimTemplateName: my-cd-channel}]}`))
	if _, err := needs.Objects("ns", []string{"gpu.nvidia.com"}); err == nil {
		t.Error("a channel was found among GPUs")
	}
}

func TestNodesThatPodsAskFor(t *testing.T) {
	needs := Of(
		parse(t, `{nodeSelector: {arch: arm64, product: a}, resources: {limits: {x/nic: 1, cpu: 1}}}`),
		parse(t, `{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
			{key: product, operator: In, values: [b, c]}, {key: gpu, operator: Exists}, {key: spot, operator: DoesNotExist}]}]}}}}`),
		parse(t, `{nodeSelector: {zone: z}, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack}]}}}`),
		parse(t, `{nodeSelector: {product: a}, resources: {requests: {custom: {x/ib: 1}}}}`),
		parse(t, `{nodeSelector: "${SELECTOR}"}`),
	)
	if diff := cmp.Diff([]string{"rack"}, needs.Topologies); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x/ib", "x/nic"}, needs.Resources); diff != "" {
		t.Error(diff)
	}
	want := []Pool{
		{Labels: map[string]string{"arch": "arm64", "product": "a", "zone": "z"}, Nodes: 3},
		{Labels: map[string]string{"gpu": "true", "product": "b"}, Nodes: 3},
	}
	if diff := cmp.Diff(want, Merge(needs.Pools(3), 1)); diff != "" {
		t.Error(diff)
	}
	// Those that are used at once have nodes each.
	few, many := Pool{Labels: map[string]string{"zone": "z"}, Nodes: 2}, Pool{Labels: map[string]string{"zone": "z"}, Nodes: 5}
	if diff := cmp.Diff([]Pool{{Labels: many.Labels, Nodes: 10}}, Merge([]Pool{few, many, few, many}, 2)); diff != "" {
		t.Error(diff)
	}
}
