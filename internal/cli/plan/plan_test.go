package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/connect"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/exit"
	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/scheme"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/validation"
	"github.com/dynamo-operator/dynamo-operator/internal/testkit/golden"
)

// disaggregated is a graph of v1alpha1 as kubectl get -o yaml prints it.
const disaggregated = `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
  namespace: llm
  uid: 6f9c0c0c-0000-4000-8000-000000000001
  resourceVersion: "17"
  generation: 3
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 2
      extraPodSpec: {mainContainer: {image: "runtime:0.8.0"}}
    decode:
      componentType: worker
      subComponentType: decode
      replicas: 4
      resources: {limits: {gpu: "2"}}
      envs: [{name: LOG, value: info}, {name: MODE, value: a}]
      extraPodSpec: {mainContainer: {image: "runtime:0.8.0", args: [python3, -m, dynamo.vllm, --model, m]}}
    prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 2
      resources: {limits: {gpu: "1"}}
      extraPodSpec: {mainContainer: {image: "runtime:0.8.0", args: [python3, -m, dynamo.vllm, --model, m, --is-prefill-worker]}}
status: {state: successful}
`

const beta = `apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat, namespace: llm}
spec:
  components:
  - name: Frontend
    type: frontend
    replicas: 1
    podTemplate: {spec: {containers: [{name: main, image: "runtime:1.4.1"}]}}
  - name: decode
    type: decode
    replicas: 1
    podTemplate: {spec: {containers: [{name: main, image: "runtime:1.4.1", args: [python3, -m, dynamo.vllm, --model, m], resources: {limits: {nvidia.com/gpu: "8"}}}]}}
`

const multinode = `apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat, namespace: llm}
spec:
  services:
    w:
      componentType: worker
      replicas: 1
      multinode: {nodeCount: 2}
      resources: {limits: {gpu: "8"}}
      extraPodSpec: {mainContainer: {image: "runtime:0.8.0", args: [python3 -m dynamo.vllm -tp 16]}}
`

// pod is one that took so many minutes to start.
func pod(service string, i, minutes, restarts int) string {
	return fmt.Sprintf(`---
{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-%[2]d, namespace: llm, creationTimestamp: "2026-11-01T10:00:00Z",
 labels: {nvidia.com/dynamo-graph-deployment-name: chat, nvidia.com/dynamo-component: %[1]s}},
 status: {conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-11-01T10:%02[3]d:05Z"}], containerStatuses: [{name: main, restartCount: %[4]d}]}}
`, service, i, minutes, restarts)
}

// execute runs the verb as a user would, and is its code.
func execute(t *testing.T, live, desired string, args ...string) (out string, code int, err error) {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"live.yaml": live, "new.yaml": desired} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := Command()
	var stdout, stderr bytes.Buffer
	command.SetArgs(append([]string{"-f", filepath.Join(folder, "new.yaml"), "--live", filepath.Join(folder, "live.yaml")}, args...))
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.Execute()
	var end exit.With
	switch {
	case errors.As(err, &end):
		code = end.Code
	case err != nil:
		code = 1
	}
	return stdout.String(), code, err
}

func replace(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

func TestPlans(t *testing.T) {
	decodeImage := strings.Replace(disaggregated, `mainContainer: {image: "runtime:0.8.0", args: [python3, -m, dynamo.vllm, --model, m]}`, `mainContainer: {image: "runtime:0.8.1", args: [python3, -m, dynamo.vllm, --model, m]}`, 1)
	pods := pod("decode", 0, 4, 0) + pod("decode", 1, 4, 0) + pod("decode", 2, 6, 0) + pod("decode", 3, 59, 2)
	recreate := "      annotations: {nvidia.com/deployment-strategy: Recreate}\n      componentType: worker\n      subComponentType: prefill"
	v1 := replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1")
	before, _, _ := strings.Cut(v1, "    prefill:")
	alone := before + "status: {state: successful}\n"
	restarted := replace(v1, "spec:\n", "spec:\n  restart: {id: \"7\"}\n")
	cases := map[string]struct {
		live, desired string
		args          []string
		code          int
	}{
		"nothing":         {disaggregated, disaggregated, nil, 0},
		"one-image":       {disaggregated + pods, decodeImage, nil, 2},
		"one-image-json":  {disaggregated + pods, decodeImage, []string{"-o", "json"}, 2},
		"start-unknown":   {disaggregated, decodeImage, nil, 2},
		"scaled":          {disaggregated, replace(disaggregated, "replicas: 4", "replicas: 6"), nil, 2},
		"several-fields":  {disaggregated, replace(disaggregated, "value: a}", "value: b}, {name: NEW, value: x}", "replicas: 2\n      resources", "replicas: 3\n      resources", "--is-prefill-worker", "--is-prefill-worker, --seed, '1'"), nil, 2},
		"recreated":       {disaggregated, replace(disaggregated, "      componentType: worker\n      subComponentType: prefill", recreate, "--is-prefill-worker", "--is-prefill-worker, --seed, '1'"), nil, 3},
		"service-added":   {disaggregated, replace(disaggregated, "status:", "    encode: {componentType: worker, subComponentType: encode, replicas: 2, resources: {limits: {gpu: \"1\"}}}\nstatus:"), nil, 2},
		"not-there":       {"", disaggregated, nil, 2},
		"beta":            {beta, replace(beta, "--model, m]", "--model, other]"), nil, 2},
		"other-version":   {disaggregated, beta, nil, 3},
		"groups-of-nodes": {multinode, replace(multinode, "runtime:0.8.0", "runtime:0.8.1"), nil, 3},
		"grove":           {disaggregated, decodeImage, []string{"--orchestrator", "grove"}, 2},
		"generation": {
			replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1") + pods + pod("prefill", 0, 2, 0), replace(decodeImage, "runtime:0.8.0", "runtime:1.4.1", "runtime:0.8.1", "runtime:1.5.0"),
			[]string{"--config", "testdata/generations.yaml"}, 2,
		},
		"generation-without-surge": {
			replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1", "replicas: 2", "replicas: 1", "replicas: 4", "replicas: 1"),
			replace(disaggregated, "runtime:0.8.0", "runtime:1.5.0", "replicas: 2", "replicas: 1", "replicas: 4", "replicas: 1", "      componentType: worker\n", "      componentType: worker\n      annotations: {nvidia.com/deployment-rolling-update-max-surge: \"0\", nvidia.com/deployment-rolling-update-max-unavailable: \"1\"}\n"),
			[]string{"--config", "testdata/generations.yaml"}, 3,
		},
		"generation-not-for-labels": {
			replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1"),
			replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1", "      subComponentType: decode", "      subComponentType: decode\n      labels: {team: a}"),
			[]string{"--config", "testdata/generations.yaml"}, 2,
		},
		"generation-with-a-new-service": {
			alone, replace(v1, "runtime:1.4.1", "runtime:1.5.0"), []string{"--config", "testdata/generations.yaml"}, 2,
		},
		"generation-not-for-a-new-service": {alone, v1, []string{"--config", "testdata/generations.yaml"}, 2},
		"generation-on-grove": {
			v1, replace(v1, "runtime:1.4.1", "runtime:1.5.0"), []string{"--config", "testdata/generations.yaml", "--orchestrator", "grove"}, 2,
		},
		"generation-on-grove-without-surge": {
			v1, replace(v1, "runtime:1.4.1", "runtime:1.5.0", "      componentType: worker\n", "      componentType: worker\n      annotations: {nvidia.com/deployment-rolling-update-max-surge: \"0\", nvidia.com/deployment-rolling-update-max-unavailable: \"1\"}\n"),
			[]string{"--config", "testdata/generations.yaml", "--orchestrator", "grove"}, 2,
		},
		"generation-on-grove-groups-of-nodes": {
			replace(multinode, "runtime:0.8.0", "runtime:1.4.1"), replace(multinode, "runtime:0.8.0", "runtime:1.5.0"), []string{"--config", "testdata/generations.yaml", "--orchestrator", "grove", "-o", "json"}, 2,
		},
		"restart":                 {v1 + pods + pod("prefill", 0, 2, 0) + pod("Frontend", 0, 1, 0), restarted, []string{"--config", "testdata/generations.yaml"}, 2},
		"restart-on-grove":        {v1, restarted, []string{"--config", "testdata/generations.yaml", "--orchestrator", "grove"}, 2},
		"restart-with-a-change":   {v1, replace(restarted, "runtime:1.4.1", "runtime:1.5.0"), []string{"--config", "testdata/generations.yaml"}, 2},
		"restart-in-place":        {v1, restarted, nil, 2},
		"restart-carried-out":     {replace(v1, "state: successful", "restart: {observedID: \"7\", phase: Completed}"), restarted, []string{"--config", "testdata/generations.yaml"}, 2},
		"restart-asked-for-again": {restarted, restarted, []string{"--config", "testdata/generations.yaml"}, 0},
		"runtime-contract":        {disaggregated, replace(disaggregated, "runtime:0.8.0", "runtime:1.4.1"), nil, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			out, code, err := execute(t, c.live, c.desired, c.args...)
			if code != c.code {
				t.Errorf("code %d, not %d: %v", code, c.code, err)
			}
			golden.Text(t, filepath.Join("testdata", name+".txt"), out)
		})
	}
}

func TestAGraphThatIsAppliedAgainChangesNothing(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	beta, betaErr := filepath.Glob("../../../examples/v1beta1/*.yaml")
	if files = append(files, beta...); err != nil || betaErr != nil || len(files) < 10 {
		t.Fatalf("%d examples, %v, %v", len(files), err, betaErr)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out, code, err := execute(t, string(text), string(text)); code != 0 {
				t.Errorf("code %d, %v\n%s", code, err, out)
			}
		})
	}
}

// converted is a manifest in another version, with or without what a conversion notes.
func converted(t *testing.T, text, version string, noted bool) string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	result, err := conversion.Convert(raw, version)
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := json.Unmarshal(result.JSON, &object.Object); err != nil {
		t.Fatal(err)
	}
	if !noted {
		object.SetAnnotations(nil)
	}
	out, err := yaml.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestAManifestInTheOtherVersion: a graph stays what it was written as, because an
// apply leaves the annotations alone that say so, unless one has written them.
func TestAManifestInTheOtherVersion(t *testing.T) {
	const alphaVersion, betaVersion = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
	alpha := replace(disaggregated,
		"spec:\n", "spec:\n  pvcs: [{name: cache, create: true, size: 1Gi, storageClass: s, volumeAccessMode: ReadWriteOnce}]\n",
		"componentType: frontend", "componentType: frontend\n      ingress: {enabled: true, host: chat.example}",
		"subComponentType: decode", "subComponentType: decode\n      volumeMounts: [{name: cache, mountPoint: /cache}]")
	old := replace(beta, `resources: {limits: {nvidia.com/gpu: "8"}}}]`, `volumeMounts: [{name: data, mountPath: /data, subPath: chat}]}], volumes: [{name: data, emptyDir: {}}]`)
	taken := `'{"metadata":{"annotations":{"nvidia.com/written-as":"v1alpha1","nvidia.com/dgd-spec":"{}"}}}'`
	bare := converted(t, alpha, betaVersion, false)
	cases := map[string]struct {
		live, desired string
		code          int
		says          string
	}{
		"v1beta1 over v1alpha1":    {alpha, bare, 0, "nothing"},
		"v1alpha1 over v1beta1":    {old, converted(t, old, alphaVersion, false), 0, "nothing"},
		"with what says so":        {alpha, converted(t, alpha, betaVersion, true), 0, "nothing"},
		"with a change":            {alpha, replace(bare, "replicas: 4", "replicas: 5"), 2, "components[decode].replicas"},
		"that takes the word back": {replace(alpha, `"{}"`, taken), bare, 3, "apiVersion"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, code, err := execute(t, c.live, c.desired)
			if code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, "apiVersion") != (c.says == "apiVersion") {
				t.Errorf("code %d, not %d with %q: %v\n%s", code, c.code, c.says, err, out)
			}
		})
	}
}

func TestWhatRunsIsReadFromACluster(t *testing.T) {
	documents, err := input.Parse("live", []byte(disaggregated+pod("decode", 0, 4, 0)+strings.ReplaceAll(pod("decode", 1, 9, 0), "deployment-name: chat", "deployment-name: other")))
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	for _, d := range documents {
		objects = append(objects, d.Unstructured)
	}
	server := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()
	from := cluster{&connect.Cluster{WithWatch: server, Namespace: "llm"}}
	seen, err := from.live(t.Context(), "llm", "chat", validation.Scope{})
	if err != nil || seen.graph == nil || len(seen.graph.Spec.Services) != 3 {
		t.Fatalf("%+v, %v", seen.graph, err)
	}
	if median, pods := seen.starts("decode"); pods != 1 || median != 4*time.Minute+5*time.Second {
		t.Errorf("a start takes %v, %d pods", median, pods)
	}
	if seen, err = from.live(t.Context(), "llm", "none", validation.Scope{}); err != nil || seen.graph != nil {
		t.Errorf("%+v, %v", seen.graph, err)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		live, desired string
		args          []string
		code          int
		says          string
	}{
		"what validation refuses":              {disaggregated, replace(disaggregated, "replicas: 4", "replicas: -1"), nil, 3, "spec.services[decode].replicas"},
		"what may not change":                  {replace(disaggregated, "spec:\n", "spec:\n  backendFramework: vllm\n"), replace(disaggregated, "spec:\n", "spec:\n  backendFramework: sglang\n"), nil, 3, "backendFramework"},
		"an output is one of two":              {disaggregated, disaggregated, []string{"-o", "yaml"}, 1, `output "yaml"`},
		"an orchestrator is one of four":       {disaggregated, disaggregated, []string{"--orchestrator", "nomad"}, 1, `orchestrator "nomad"`},
		"a manifest without graphs":            {disaggregated, "kind: Secret\napiVersion: v1", nil, 1, "no DynamoGraphDeployment"},
		"what runs has to be a graph":          {"a: b: c", disaggregated, nil, 1, "live.yaml"},
		"a file of what runs, if one is named": {disaggregated, disaggregated, []string{"--live", "nowhere.yaml"}, 1, "nowhere.yaml"},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, code, err := execute(t, c.live, c.desired, c.args...)
			if err == nil || code != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("code %d, %v; not %d with %q", code, err, c.code, c.says)
			}
			if out != "" {
				t.Errorf("printed:\n%s", out)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	type object = map[string]any
	old := object{"a": 1, "list": []any{object{"name": "x", "v": 1}, object{"name": "y"}}, "args": []any{"1", "2"}}
	cases := map[string]struct {
		desired any
		want    []string
	}{
		"nothing":                               {old, nil},
		"a value":                               {object{"a": 2, "list": old["list"], "args": old["args"]}, []string{"a: 1 -> 2"}},
		"one that goes":                         {object{"list": old["list"], "args": old["args"]}, []string{"a: 1 -> (none)"}},
		"an element of a list":                  {object{"a": 1, "list": []any{object{"name": "x", "v": 2}, object{"name": "y"}}, "args": old["args"]}, []string{"list[x].v: 1 -> 2"}},
		"one more, and one less":                {object{"a": 1, "list": []any{object{"name": "x", "v": 1}, object{"name": "z"}}, "args": old["args"]}, []string{`list[y]: {"name":"y"} -> (none)`, `list[z]: (none) -> {"name":"z"}`}},
		"another order":                         {object{"a": 1, "list": []any{object{"name": "y"}, object{"name": "x", "v": 1}}, "args": old["args"]}, []string{`list: [{"name":"x","v":1},{"name":"y"}] -> [{"name":"y"},{"name":"x","v":1}]`}},
		"of a list without names, what differs": {object{"a": 1, "list": old["list"], "args": []any{"1"}}, []string{`args: ["2"] -> (none)`}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			var got []string
			value := any(old)
			for _, change := range changes(nil, any(old), c.desired) {
				was, is := change.describe()
				got = append(got, fmt.Sprintf("%s: %s -> %s", change.at, was, is))
				value = with(value, change.at, change.new)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.desired, value); diff != "" {
				t.Errorf("all changes together (-want +got):\n%s", diff)
			}
		})
	}
}
