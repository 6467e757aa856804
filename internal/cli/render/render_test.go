package render

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/cli/input"
)

const (
	quickstart = "../../../examples/quickstart.yaml"
	head       = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {name: chat}\nspec: "
	ray        = head + `{services: {w: {componentType: worker, multinode: {}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.vllm -tp 16]}}}}}`
	mpi        = head + `{services: {w: {componentType: worker, multinode: {}, resources: {limits: {gpu: "8"}}, extraPodSpec: {mainContainer: {args: [python3 -m dynamo.trtllm]}}}}}`
)

// execute runs the verb as a user would.
func execute(t *testing.T, stdin string, args ...string) (out, notes string, err error) {
	t.Helper()
	command := Command()
	var stdout, stderr bytes.Buffer
	command.SetArgs(args)
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.Execute()
	return stdout.String(), stderr.String(), err
}

// names are the objects of an output, in order.
func names(t *testing.T, out string) []string {
	t.Helper()
	documents, err := input.Parse("output", []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range documents {
		all = append(all, d.GetKind()+" "+d.GetNamespace()+"/"+d.GetName())
	}
	return all
}

func TestObjects(t *testing.T) {
	const role, binding, account = "Role lab/chat-k8s-service-discovery-role", "RoleBinding lab/chat-k8s-service-discovery-binding", "ServiceAccount lab/chat-k8s-service-discovery"
	discovery := []string{role, binding, account}
	cases := map[string]struct {
		stdin string
		args  []string
		want  []string
	}{
		"the graph's own come first, then each component's, by kind and name": {
			head + "{services: {b: {}, A: {componentType: frontend}}}", nil,
			append(append([]string{"DynamoComponentDeployment lab/chat-a", "DynamoComponentDeployment lab/chat-b"}, discovery...),
				"Deployment lab/chat-a", "Service lab/chat-a", "Deployment lab/chat-b", "Service lab/chat-b"),
		},
		"several nodes take a LeaderWorkerSet": {
			ray, nil,
			append(append([]string{"DynamoComponentDeployment lab/chat-w"}, discovery...), "LeaderWorkerSet lab/chat-w-0", "PodGroup lab/chat-w-0", "Service lab/chat-w"),
		},
		"Grove takes one set": {
			ray, []string{"--orchestrator", "grove"},
			[]string{"PodCliqueSet lab/chat", role, binding, "Service lab/chat-w", account},
		},
		"a graph that runs on Grove stays there": {
			strings.Replace(ray, "name: chat", "name: chat, annotations: {nvidia.com/workload-provider: grove}", 1), nil,
			[]string{"PodCliqueSet lab/chat", role, binding, "Service lab/chat-w", account},
		},
		"unless it is told not to": {
			strings.Replace(ray, "name: chat", "name: chat, annotations: {nvidia.com/workload-provider: grove}", 1), []string{"--orchestrator", "lws"},
			append(append([]string{"DynamoComponentDeployment lab/chat-w"}, discovery...), "LeaderWorkerSet lab/chat-w-0", "PodGroup lab/chat-w-0", "Service lab/chat-w"),
		},
		"a component that stands alone brings what it needs": {
			"apiVersion: nvidia.com/v1alpha1\nkind: DynamoComponentDeployment\nmetadata: {name: chat}\nspec: {}", nil,
			[]string{"Deployment lab/chat", role, binding, "Service lab/chat", account},
		},
		"documents stay in their order and in their namespace": {
			strings.Replace(head, "name: chat", "name: chat, namespace: prod", 1) + "{services: {a: {annotations: {nvidia.com/dynamo-discovery-backend: etcd}}}}\n---\nkind: Secret\napiVersion: v1\n---\n" + head + "{services: {a: {}}}", nil,
			append([]string{
				"DynamoComponentDeployment prod/chat-a", "Role prod/chat-k8s-service-discovery-role", "RoleBinding prod/chat-k8s-service-discovery-binding", "ServiceAccount prod/chat-k8s-service-discovery",
				"Deployment prod/chat-a", "Service prod/chat-a", "DynamoComponentDeployment lab/chat-a",
			}, append(discovery, "Deployment lab/chat-a", "Service lab/chat-a")...),
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, notes, err := execute(t, c.stdin, append([]string{"-f", "-", "-n", "lab"}, c.args...)...)
			if err != nil {
				t.Fatalf("%v\n%s", err, notes)
			}
			if diff := cmp.Diff(c.want, names(t, out)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryObjectIsCompleteAndOwned(t *testing.T) {
	out, _, err := execute(t, "", "-f", quickstart)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := input.Parse("output", []byte(out))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range documents {
		owners := d.GetOwnerReferences()
		switch {
		case d.GetAPIVersion() == "" || d.GetKind() == "":
			t.Errorf("%s has no kind", d)
		case d.Object["status"] != nil:
			t.Errorf("%s has a status", d)
		case len(owners) != 1 || owners[0].Name == "" || owners[0].Controller == nil:
			t.Errorf("%s is owned by %+v", d, owners)
		}
		reference, _, _ := unstructured.NestedSlice(d.Object, "metadata", "ownerReferences")
		if uid, found := reference[0].(map[string]any)["uid"]; found {
			t.Errorf("%s knows the uid %q of its owner", d, uid)
		}
	}
}

// Go gives maps of each process another order, so several processes are asked.
func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	if os.Getenv("RENDER_TO_STDOUT") != "" {
		out, _, err := execute(t, "", "-f", quickstart, "-f", "../../core/render/testdata/overrides/graph.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stdout.WriteString(out); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	var first string
	for i := range 5 {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestTheSameInputGivesTheSameBytes$")
		command.Env = append(os.Environ(), "RENDER_TO_STDOUT=1")
		out, err := command.Output()
		if err != nil || len(out) == 0 {
			t.Fatalf("%v: %d bytes", err, len(out))
		}
		if i == 0 {
			first = string(out)
		} else if string(out) != first {
			t.Fatalf("run %d differs (-first +this):\n%s", i, cmp.Diff(first, string(out)))
		}
	}
}

func TestJSONIsOneList(t *testing.T) {
	out, _, err := execute(t, "", "-f", quickstart, "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []map[string]any
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "List" {
		t.Fatalf("kind %q, %v", list.Kind, err)
	}
	asYAML, _, err := execute(t, "", "-f", quickstart)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(list.Items), len(names(t, asYAML)); got != want {
		t.Errorf("%d items, %d YAML documents", got, want)
	}
}

func TestDefaultsOfTheDefinitionAreFilledIn(t *testing.T) {
	out, _, err := execute(t, ray, "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "nodeCount: 2") || !strings.Contains(out, "size: 2") {
		t.Errorf("the number of nodes is missing:\n%s", out)
	}
}

func TestTheOperatorsConfigurationCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: dynamo-operator/v1alpha1\nkind: OperatorConfiguration\nendpoints: {nats: nats://here}\nroles: {planner: p}\ningress: {class: nginx}\nwebhook: {enabled: true}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := execute(t, "", "-f", quickstart, "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"nats://here", "name: planner-serviceaccount\n", "kind: Ingress\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("nothing of %q", part)
		}
	}
}

func TestNotes(t *testing.T) {
	cases := map[string]struct{ stdin, want string }{
		"a key is never printed":   {mpi, "Secret default/mpi-run-ssh-secret: not printed; the operator makes this key if the namespace has none\n"},
		"other kinds are passed":   {head + "{services: {a: {}}}\n---\napiVersion: nvidia.com/v1alpha1\nkind: DynamoModel\nmetadata: {name: m}", "-: document 2: DynamoModel m: passed over, the operator renders nothing for it\n"},
		"warnings are passed on":   {head + "{services: {a: {autoscaling: {}}}}", "-: DynamoGraphDeployment chat: warning: spec.services[a].autoscaling: is no longer used; enable scalingAdapter and point an autoscaler at its DynamoGraphDeploymentScalingAdapter\n"},
		"nothing to say is silent": {head + "{services: {a: {}}}", ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, notes, err := execute(t, c.stdin, "-f", "-")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if strings.Contains(out, "private.key:") || strings.Contains(out, "kind: Secret\n") {
				t.Error("a Secret is printed")
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		stdin string
		args  []string
		says  []string
	}{
		"a Deployment spans no nodes":             {ray, []string{"--orchestrator", "deployment"}, []string{"service w spans 2 nodes", "--orchestrator lws or grove"}},
		"an orchestrator is one of four":          {ray, []string{"--orchestrator", "nomad"}, []string{`orchestrator "nomad"`, "auto, deployment, lws, grove"}},
		"an output is one of two":                 {ray, []string{"-o", "table"}, []string{`output "table"`}},
		"a configuration that cannot be read":     {ray, []string{"--config", "nowhere.yaml"}, []string{"nowhere.yaml"}},
		"a manifest without graphs":               {"kind: Secret\napiVersion: v1", nil, []string{"no DynamoGraphDeployment"}},
		"a manifest that is no YAML":              {"a: b: c", nil, []string{"-: document 1"}},
		"all problems of all graphs, and no half": {head + "{services: {a: {replicas: -1}}}\n---\n" + head + "{services: {a: {}}}\n---\n" + head + "{services: {x: {envz: 1}}}", nil, []string{"document 1", "spec.services[a].replicas", "document 3", "spec.services[x].envz"}},
		"what validation refuses is not rendered": {head + "{}", nil, []string{"spec.services"}},
		"an engine that cannot be launched":       {strings.Replace(ray, "-tp 16", "-tp many", 1), nil, []string{"spec.services[w].extraPodSpec.mainContainer.args", `"many"`}},
		"a file that does not exist":              {"", []string{"-f", "nowhere.yaml"}, []string{"nowhere.yaml"}},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			out, _, err := execute(t, c.stdin, append([]string{"-f", "-"}, c.args...)...)
			if err == nil {
				t.Fatal("no error")
			}
			if out != "" {
				t.Errorf("printed:\n%s", out)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}
