package graph

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func fromSpec(t *testing.T, spec string) *Graph {
	t.Helper()
	dgd := &v1alpha1.DynamoGraphDeployment{}
	text := "metadata: {name: chat, namespace: lab}\nspec:\n  " + spec + "\n"
	if err := yaml.UnmarshalStrict([]byte(text), dgd); err != nil {
		t.Fatal(err)
	}
	g, err := FromGraphDeployment(dgd, Defaults{Discovery: DiscoveryKubernetes})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestComponentsAreSortedAndNamed(t *testing.T) {
	g := fromSpec(t, `services: {b: null, A: {globalDynamoNamespace: true}}`)
	var got [][3]string
	for _, c := range g.Components {
		got = append(got, [3]string{c.Name, c.ObjectName, c.DynamoNamespace})
	}
	want := [][3]string{{"A", "chat-a", "dynamo"}, {"b", "chat-b", "lab-chat"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
}

func TestResources(t *testing.T) {
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
		return l
	}
	cases := map[string]struct {
		resources        string
		requests, limits corev1.ResourceList
	}{
		"a number of GPUs is a limit":                 {`{limits: {gpu: "2"}}`, nil, list("nvidia.com/gpu", "2")},
		"a request for GPUs alone is a limit":         {`{requests: {gpu: "2", cpu: "1"}}`, list("cpu", "1"), list("nvidia.com/gpu", "2")},
		"equal GPU requests and limits are said once": {`{requests: {gpu: "2"}, limits: {gpu: "2"}}`, nil, list("nvidia.com/gpu", "2")},
		"a type of GPU names the resource":            {`{limits: {gpu: "1", gpuType: gpu.intel.com/xe}}`, nil, list("gpu.intel.com/xe", "1")},
		"custom resources are taken as they are":      {`{limits: {custom: {rdma/ib: "8"}}}`, nil, list("rdma/ib", "8")},
		"nothing asked for is nothing":                {`{}`, nil, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			r := fromSpec(t, "services: {a: {resources: "+c.resources+"}}").Components[0].Resources
			if diff := cmp.Diff(c.requests, r.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.limits, r.Limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGPUsOfAnyVendorCount since 1.x, as they do in v1beta1.
func TestGPUsOfAnyVendorCount(t *testing.T) {
	for rule, c := range map[string]struct {
		service  string
		seed, v1 int
	}{
		"in the container":         {`{extraPodSpec: {mainContainer: {resources: {limits: {amd.com/gpu: 4}}}}}`, 0, 4},
		"as a custom resource":     {`{resources: {limits: {custom: {amd.com/gpu: "4"}}}}`, 0, 4},
		"by the number and a type": {`{resources: {limits: {gpu: "4", gpuType: gpu.intel.com/xe}}}`, 4, 4},
		"of the default vendor":    {`{extraPodSpec: {mainContainer: {resources: {limits: {nvidia.com/gpu: 4}}}}}`, 4, 4},
		"other devices do not":     {`{extraPodSpec: {mainContainer: {resources: {limits: {rdma/ib: 4}}}}}`, 0, 0},
		"a number goes first":      {`{resources: {limits: {gpu: "2"}}, extraPodSpec: {mainContainer: {resources: {limits: {amd.com/gpu: 4}}}}}`, 2, 2},
	} {
		for contract, want := range map[Contract]int{ContractSeed: c.seed, ContractV1: c.v1} {
			t.Run(rule+"/"+string(contract), func(t *testing.T) {
				g, err := FromGraphDeployment(readAlpha(t, "{services: {a: "+c.service+"}}"), Defaults{Contract: ContractRules{Forced: contract}})
				if err != nil {
					t.Fatal(err)
				}
				if got := g.Components[0].Resources.GPUs; got != want {
					t.Errorf("%d GPUs, want %d", got, want)
				}
			})
		}
	}
}

func TestSharedMemory(t *testing.T) {
	cases := map[string]struct{ spec, want string }{
		"8Gi unless told otherwise":      {`{}`, "8Gi"},
		"an empty block has the default": {`{sharedMemory: {}}`, "8Gi"},
		"a stored zero means unset":      {`{sharedMemory: {size: "0"}}`, "8Gi"},
		"a size that is given":           {`{sharedMemory: {size: 1Gi}}`, "1Gi"},
		"none when it is disabled":       {`{sharedMemory: {disabled: true, size: 1Gi}}`, ""},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			got := ""
			if q := fromSpec(t, "services: {a: "+c.spec+"}").Components[0].SharedMemory.Size; q != nil {
				got = q.String()
			}
			if got != c.want {
				t.Errorf("size %q, want %q", got, c.want)
			}
		})
	}
}

func TestEngines(t *testing.T) {
	cases := map[string]struct {
		command, args []string
		want          []Engine
	}{
		"exec form":                    {[]string{"python3", "-m", "dynamo.vllm"}, nil, []Engine{EngineVLLM}},
		"split form":                   {[]string{"python3.11"}, []string{"-m", "dynamo.sglang", "--tp", "8"}, []Engine{EngineSGLang}},
		"inside a shell string":        {[]string{"/bin/sh", "-c"}, []string{"echo start && python3 -m dynamo.trtllm | tee log"}, []Engine{EngineTRTLLM}},
		"a module below the engine's":  {nil, []string{"python -m dynamo.vllm.worker"}, []Engine{EngineVLLM}},
		"two launches in one script":   {nil, []string{"python -m dynamo.vllm && python -m dynamo.sglang"}, []Engine{EngineSGLang, EngineVLLM}},
		"a mention in another command": {nil, []string{"python -c x; echo -m dynamo.vllm"}, nil},
		"something that is no engine":  {[]string{"python3", "-m", "dynamo.frontend"}, nil, nil},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Engines(c.command, c.args)); diff != "" {
				t.Errorf("engines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAComponentKnowsItsGraph(t *testing.T) {
	dcd := &v1alpha1.DynamoComponentDeployment{ObjectMeta: metav1.ObjectMeta{Name: "chat-decode", Namespace: "lab"}}
	dcd.Spec.ServiceName = "Decode"
	alone, err := FromComponentDeployment(dcd, Defaults{Discovery: DiscoveryKubernetes})
	if err != nil {
		t.Fatal(err)
	}
	if alone.Name != "chat-decode" || !alone.Standalone || alone.Components[0].DynamoNamespace != "lab-chat-decode" {
		t.Errorf("standing alone: %+v", alone)
	}
	dcd.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindDynamoGraphDeployment, Name: "chat"}}
	owned, err := FromComponentDeployment(dcd, Defaults{Discovery: DiscoveryKubernetes})
	if err != nil {
		t.Fatal(err)
	}
	c := owned.Components[0]
	if owned.Standalone || c.Graph != "chat" || c.Name != "Decode" || c.ObjectName != "chat-decode" || c.DynamoNamespace != "lab-chat" {
		t.Errorf("in a graph: %+v", c)
	}
}
