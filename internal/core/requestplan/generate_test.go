package requestplan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestGeneratedGraphIsTheRequestsOwn(t *testing.T) {
	r := asked(func(r *v1alpha1.DynamoGraphDeploymentRequest) {
		r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{
			Name: "chat", Namespace: "prod", Labels: map[string]string{"team": "a", v1alpha1.LabelRequestName: "stolen"}, Annotations: map[string]string{"note": "b"},
		}
	})
	g, err := documents(dataYAML + "---\n" + graphYAML)
	if err != nil {
		t.Fatal(err)
	}
	g.adapt(r, r.Spec)
	want := metav1.ObjectMeta{
		Name: "chat", Namespace: "prod", Annotations: map[string]string{"kept": "yes", "note": "b"},
		Labels: map[string]string{
			"team": "a", "dgdr.nvidia.com/name": "goal", "dgdr.nvidia.com/namespace": "team", "nvidia.com/managed-by": "dynamo-operator",
		},
	}
	if diff := cmp.Diff(want, g.Graph.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	if got := g.Extras[0].Namespace + "/" + g.Extras[0].Name; got != "prod/goal-planner-profile-data" {
		t.Errorf("the data are in %s", got)
	}
	if got := g.Graph.Spec.Services["Planner"].ExtraPodSpec.Volumes[0].ConfigMap.Name; got != "goal-planner-profile-data" {
		t.Errorf("the planner mounts %s", got)
	}
}

func TestNoDocumentVanishes(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\n---\n"
	for rule, c := range map[string]struct {
		text, want string
	}{
		"a graph and its data are made":   {dataYAML + "---\n" + graphYAML, ""},
		"a comment is no document":        {"# by hand\n---\n---\n" + graphYAML, ""},
		"what is not made is named":       {strings.ReplaceAll(service, "%s", "a") + "spec: {}\n---\n" + graphYAML, "Service a, a document without kind"},
		"of several graphs the last is":   {strings.Replace(graphYAML, "vllm-disagg", "first", 1) + "---\n" + graphYAML, "DynamoGraphDeployment first"},
		"of many documents the first are": {strings.Repeat(strings.ReplaceAll(service, "%s", "a"), 7) + graphYAML, "Service a, Service a, Service a, Service a, Service a and 2 more"},
	} {
		t.Run(rule, func(t *testing.T) {
			g, err := documents(c.text)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if c.want != "" {
				want = "; ignored in the profiler's output: " + c.want + " (a request makes one graph and the ConfigMaps beside it)"
			}
			if diff := cmp.Diff(want, g.ignored()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfigIsCompleted(t *testing.T) {
	foreign := func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.ProfilerImage = "other" }
	config := func(text string) func(*v1alpha1.DynamoGraphDeploymentRequest) {
		return func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.ProfilingConfig.Config.Raw = []byte(text) }
	}
	for name, test := range map[string]struct {
		request *v1alpha1.DynamoGraphDeploymentRequest
		nodes   []Node
		want    string
	}{
		"model, engine and folders are the operator's": {
			at("", config(`{"deployment":{"model":"x"},"outputDir":"/elsewhere"}`)), nil,
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\noutput_dir: /data\n",
		},
		"the image of the workers has one spelling": {
			at("", config(`{"deployment":{"dgdImage":"old","namespace":"lab"}}`), func(r *v1alpha1.DynamoGraphDeploymentRequest) {
				r.Spec.DeploymentOverrides = &v1alpha1.DeploymentOverrides{WorkersImage: "new"}
			}), nil,
			"deployment:\n  dgd_image: new\n  model: m\n  namespace: lab\nengine:\n  backend: vllm\noutput_dir: /data\n",
		},
		"hardware that was looked up fills gaps only": {
			at("", config(`{"hardware":{"gpuType":"H100"}}`), func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.EnableGPUDiscovery = true }),
			[]Node{{Product: "A", GPUs: 4, MemoryMiB: 9}, {Product: "B", GPUs: 8, MemoryMiB: 1}, {Product: "C", GPUs: 8, MemoryMiB: 2}},
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\nhardware:\n  enableGpuDiscovery: true\n  gpuType: H100\n  numGpusPerNode: 8\noutput_dir: /data\n",
		},
		"of several kinds of nodes those with the named GPU tell": {
			at("", config(`{"sweep":{"aicSystem":"l40s"}}`), func(r *v1alpha1.DynamoGraphDeploymentRequest) { r.Spec.EnableGPUDiscovery = true }),
			[]Node{{Product: "NVIDIA-H200", GPUs: 8, MemoryMiB: 9}, {Product: "NVIDIA-L40S", GPUs: 2, MemoryMiB: 1}},
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\nhardware:\n  enableGpuDiscovery: true\n  numGpusPerNode: 2\noutput_dir: /data\nsweep:\n  aicSystem: l40s\n",
		},
		"a profiler of others need not look at nodes": {
			at("", config(`{"hardware":{"enable_gpu_discovery":true}}`), foreign), []Node{{Product: "C", GPUs: 8}},
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\nhardware:\n  enableGpuDiscovery: false\n  gpuType: C\n" +
				"  maxNumGpusPerEngine: 8\n  minNumGpusPerEngine: 1\n  numGpusPerNode: 8\noutput_dir: /data\n",
		},
		"a GPU that nobody names is that of the nodes": {
			at("", config(`{"sweep":{"useAiConfigurator":true}}`), foreign), []Node{{Product: "C", GPUs: 8}},
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\nhardware:\n  gpuType: C\noutput_dir: /data\nsweep:\n  useAiConfigurator: true\n",
		},
		"a graph to start from is where it is mounted": {
			at("", config(`{}`), func(r *v1alpha1.DynamoGraphDeploymentRequest) {
				r.Spec.ProfilingConfig.ConfigMapRef = &v1alpha1.ConfigMapKeyRef{Name: "base"}
			}), nil,
			"deployment:\n  model: m\n  namespace: team\nengine:\n  backend: vllm\n  config: /config/disagg.yaml\noutput_dir: /data\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configOf(test.request, test.nodes, policy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
