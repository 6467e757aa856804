package validate

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/operator/config"
	"github.com/dynamo-operator/dynamo-operator/test/corpus"
)

// judge runs the command over a text.
func judge(t *testing.T, text string) (out, notes string, err error) {
	t.Helper()
	documents, err := input.Parse("graph.yaml", []byte(text))
	if err != nil {
		return "", "", err
	}
	var stdout, stderr bytes.Buffer
	err = run(documents, config.Default().Rules(), &stdout, &stderr)
	return stdout.String(), stderr.String(), err
}

func graphOf(spec string) string {
	return "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: chat}\nspec: " + spec + "\n"
}

func TestEveryBadInputIsAnErrorOfAField(t *testing.T) {
	worker := func(rest string) string {
		return graphOf("{services: {w: {componentType: worker, " + rest + "}}}")
	}
	cases := map[string]struct{ text, path string }{
		"an unknown field":                           {graphOf(`{services: {a: {envz: []}}}`), "spec.services[a].envz"},
		"a value of another type":                    {graphOf(`{services: {a: {replicas: two}}}`), "spec.services[a].replicas"},
		"an unknown engine":                          {graphOf(`{backendFramework: llamacpp, services: {a: {}}}`), "spec.backendFramework"},
		"a quantity that cannot be read":             {graphOf(`{services: {a: {resources: {limits: {memory: lots}}}}}`), "spec.services[a].resources.limits.memory"},
		"a size that cannot be read":                 {graphOf(`{services: {a: {}}, pvcs: [{name: x, create: true, size: lots, storageClass: s, volumeAccessMode: ReadWriteOnce}]}`), "spec.pvcs[0].size"},
		"an access mode that there is none of":       {graphOf(`{services: {a: {}}, pvcs: [{name: x, create: true, size: 1Gi, storageClass: s, volumeAccessMode: Any}]}`), "spec.pvcs[0].volumeAccessMode"},
		"a claim without a name":                     {graphOf(`{services: {a: {}}, pvcs: [{name: ""}]}`), "spec.pvcs[0].name"},
		"a mount without a claim":                    {graphOf(`{services: {a: {volumeMounts: [{name: "", mountPoint: /x}]}}}`), "spec.services[a].volumeMounts[0].name"},
		"a mount of a claim that no volume can name": {graphOf(`{services: {a: {volumeMounts: [{name: my.claim, mountPoint: /x}]}}}`), "spec.services[a].volumeMounts[0].name"},
		"a mount without a path":                     {graphOf(`{services: {a: {volumeMounts: [{name: x}]}}}`), "spec.services[a].volumeMounts[0].mountPoint"},
		"two engines in one command":                 {worker(`extraPodSpec: {mainContainer: {args: ["python -m dynamo.vllm & python -m dynamo.sglang"]}}`), "spec.services[w].extraPodSpec.mainContainer.args"},
		"names that collide":                         {graphOf(`{services: {Foo: {}, foo: {}}}`), "spec.services[foo]"},
		"a name that collides with a group":          {graphOf(`{services: {x: {multinode: {}}, x-0: {}}}`), "spec.services[x-0]"},
		"a service's name that is illegal":           {graphOf(`{services: {x/y: {}}}`), "spec.services[x/y]"},
		"a graph's name that is illegal":             {strings.Replace(graphOf(`{services: {a: {}}}`), "name: chat", "name: my_chat", 1), "metadata.name"},
		"a name that is missing":                     {strings.Replace(graphOf(`{services: {a: {}}}`), "name: chat", "labels: {}", 1), "metadata.name"},
		"a field of metadata that there is none of":  {strings.Replace(graphOf(`{services: {a: {}}}`), "name: chat", "name: chat, label: {}", 1), "metadata"},
		"a type that is no label":                    {graphOf(`{services: {a: {componentType: "my worker"}}}`), "spec.services[a].componentType"},
		"a label that is none":                       {graphOf(`{services: {a: {labels: {a: "b c"}}}}`), "spec.services[a].labels"},
		"a second container called main":             {graphOf(`{services: {a: {extraPodSpec: {containers: [{name: main}]}}}}`), "spec.services[a].extraPodSpec.containers[0].name"},
		"a variable without a name":                  {graphOf(`{services: {a: {envs: [{name: "", value: x}]}}}`), "spec.services[a].envs[0].name"},
		"a deployment config that is no JSON":        {graphOf(`{services: {a: {envs: [{name: DYN_DEPLOYMENT_CONFIG, value: "{"}]}}}`), "spec.services[a].envs[DYN_DEPLOYMENT_CONFIG]"},
		"a deployment config with a bad quantity":    {graphOf(`{services: {a: {envs: [{name: DYN_DEPLOYMENT_CONFIG, value: '{"a":{"ServiceArgs":{"resources":{"cpu":"x"}}}}'}]}}}`), "spec.services[a].envs[DYN_DEPLOYMENT_CONFIG].requests.cpu"},
		"a time to stay ready that is no number":     {graphOf(`{services: {a: {annotations: {nvidia.com/deployment-min-ready-seconds: 30s}}}}`), "spec.services[a].annotations[nvidia.com/deployment-min-ready-seconds]"},
		"a surge that is no number":                  {graphOf(`{services: {a: {annotations: {nvidia.com/deployment-rolling-update-max-surge: some}}}}`), "spec.services[a].annotations[nvidia.com/deployment-rolling-update-max-surge]"},
		"TensorRT-LLM on nodes without GPUs":         {worker(`multinode: {}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.trtllm]}}`), "spec.services[w].resources.limits.gpu"},
		"nodes with nothing to run":                  {worker(`multinode: {}`), "spec.services[w].extraPodSpec.mainContainer.args"},
		"a size that is no number":                   {worker(`extraPodSpec: {mainContainer: {command: [python3, -m, dynamo.vllm], args: [--tensor-parallel-size, abc]}}`), "spec.services[w].extraPodSpec.mainContainer.args"},
		"a picker's configuration that is no object": {graphOf(`{services: {p: {componentType: epp, eppConfig: {config: []}}}}`), "spec.services[p].eppConfig.config"},
		"a version that there is none of":            {"apiVersion: nvidia.com/v9\nkind: DynamoGraphDeployment\nmetadata: {name: x}", "apiVersion"},
		"a kind that there is none of":               {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraph\nmetadata: {name: x}", "kind"},
		"a model without a base":                     {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata: {name: x}\nspec: {modelName: m}", "spec.baseModelName"},
		"an adapter of nowhere":                      {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata: {name: x}\nspec: {modelName: m, baseModelName: b, modelType: lora, source: {uri: http://x}}", "spec.source.uri"},
		"a request without a profiler":               {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeploymentRequest\nmetadata: {name: x}\nspec: {model: m, backend: vllm, profilingConfig: {config: {}}}", "spec.profilingConfig.profilerImage"},
		"a scaling adapter of nothing":               {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeploymentScalingAdapter\nmetadata: {name: x}\nspec: {replicas: 1, dgdRef: {name: g, serviceName: \"\"}}", "spec.dgdRef.serviceName"},
		"no spec at all":                             {"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: x}", "spec"},
		"a spec that is a text":                      {graphOf("hello"), "spec"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, _, err := judge(t, c.text)
			if err == nil {
				t.Fatalf("no error; said:\n%s", out)
			}
			if !strings.Contains(out, ": error: "+c.path+": ") {
				t.Errorf("nothing about %s:\n%s", c.path, out)
			}
		})
	}
}

func TestOutput(t *testing.T) {
	cases := map[string]struct {
		text       string
		out, notes string
		problem    string
	}{
		"all is well": {
			text: graphOf(`{services: {a: {}}}`),
			out:  "graph.yaml: DynamoGraphDeployment chat: ok\n",
		},
		"warnings do not fail": {
			text: graphOf(`{services: {a: {dynamoNamespace: mine, modelRef: {name: m, revision: r}}}}`),
			out: `graph.yaml: DynamoGraphDeployment chat: warning: spec.services[a].dynamoNamespace: "mine" is no longer used; the service is in "<namespace>-chat"
graph.yaml: DynamoGraphDeployment chat: warning: spec.services[a].modelRef.revision: has no effect
graph.yaml: DynamoGraphDeployment chat: ok
`,
		},
		"documents of others are passed over": {
			text:  graphOf(`{services: {a: {}}}`) + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
			out:   "graph.yaml: document 1: DynamoGraphDeployment chat: ok\n",
			notes: "graph.yaml: document 2: Secret s: passed over, it is of another API\n",
		},
		"all problems of all documents are said": {
			text: graphOf(`{services: {a: {replicas: -1, envz: 1}}}`) + "---\n" + graphOf(`{services: {b: {replicas: -1}}}`),
			out: `graph.yaml: document 1: DynamoGraphDeployment chat: error: spec.services[a].envz: Forbidden: unknown field
graph.yaml: document 1: DynamoGraphDeployment chat: error: spec.services[a].replicas: Invalid value: -1: must be at least 0
graph.yaml: document 2: DynamoGraphDeployment chat: error: spec.services[b].replicas: Invalid value: -1: must be at least 0
`,
			problem: "3 problems in 2 documents",
		},
		"nothing to check is an error": {
			text: "kind: Secret\napiVersion: v1\nmetadata: {name: s}", notes: "graph.yaml: Secret s: passed over, it is of another API\n", problem: "no document of nvidia.com among 1 document",
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, notes, err := judge(t, c.text)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if diff := cmp.Diff([]string{c.out, c.notes, c.problem}, []string{out, notes, problem}); diff != "" {
				t.Errorf("output, notes, error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublishedManifestsHaveNoProblem(t *testing.T) {
	for _, d := range corpus.OfGroup(t, "nvidia.com") {
		t.Run(d.Name(), func(t *testing.T) {
			v, err := Judge(input.Document{Source: d.File, Unstructured: d.Object}, config.Default().Rules())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range v.Problems {
				t.Error(describe(e))
			}
			if _, err := json.Marshal(v.Object); err != nil {
				t.Error(err)
			}
		})
	}
}
