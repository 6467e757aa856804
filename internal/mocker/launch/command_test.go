package launch

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

func TestWordsByTheNameOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct{ arguments, want []string }{
		"its own name is not of the command":    {[]string{"/dynamo-mocker", "python3", "-m", "dynamo.vllm"}, []string{"python3", "-m", "dynamo.vllm"}},
		"another name is the command":           {[]string{"python3", "-m", "dynamo.vllm"}, []string{"python3", "-m", "dynamo.vllm"}},
		"a path to another name too":            {[]string{"/bin/sh", "-c", "true"}, []string{"/bin/sh", "-c", "true"}},
		"arguments of the image's entrypoint":   {[]string{"/dynamo-mocker", "--pool-name", "p"}, []string{"--pool-name", "p"}},
		"a build of another name plays nothing": {[]string{"/tmp/a.out", "sh"}, []string{"sh"}},
		"nothing at all":                        {nil, nil},
	} {
		if diff := cmp.Diff(c.want, Words(c.arguments)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestCommandsArePlayed(t *testing.T) {
	names := Commands()
	if !slices.IsSorted(names) {
		t.Error("the order changes from build to build")
	}
	for _, name := range []string{"python3", "python", "sh", "bash", "mpirun", "trtllm-llmapi-launch", "ray", "sshd", "sleep", "curl", "env", "true"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing", name)
		}
	}
	for _, name := range names {
		if strings.ContainsAny(name, "/.:[") {
			t.Errorf("%q is no name of a file", name)
		}
	}
}

func TestPartsThatHaveProgramsOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		kind  Kind
		name  string
	}{
		"a worker beside an engine":           {[]string{"dynamo-sglang-sidecar", "--sglang-endpoint", "127.0.0.1:30001"}, Sidecar, "dynamo-sglang-sidecar"},
		"the engine beside it":                {[]string{"python3", "-m", "sglang.launch_server", "--model-path", "m"}, Engine, "sglang"},
		"an engine's own server":              {[]string{"vllm", "serve", "m", "--grpc-port", "50051"}, Engine, "vllm"},
		"a server of TensorRT-LLM":            {[]string{"trtllm-serve", "m"}, Engine, "trtllm"},
		"weights kept for the engines":        {[]string{"python3", "-m", "gpu_memory_service.cli.server"}, MemoryService, "gpu_memory_service.cli.server"},
		"a planner of planners":               {[]string{"python3", "-m", "dynamo.global_planner", "--no-operation"}, Planner, "dynamo.global_planner"},
		"a node that waits for its leader":    {[]string{"sh", "-c", `export LEADER_HOST="x" && exec python3 /scripts/wait-for-leader.py`}, LeaderWait, "wait-for-leader.py"},
		"arguments of an entrypoint's Python": {[]string{"-m", "dynamo.frontend", "--router-mode", "direct"}, Frontend, "dynamo.frontend"},
	} {
		r := &recorder{}
		status := r.shell().Exec(t.Context(), c.words, podenv.Env{}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if status != 0 || len(r.programs) != 1 || r.programs[0].Kind != c.kind || r.programs[0].Name != c.name {
			t.Errorf("%s: status %d, %v", name, status, r.summary())
		}
	}
}

func TestFlagsAloneAreTheImagesEngine(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example/vllm-runtime:1.3.0":        "worker dynamo.vllm --model m",
		"registry.example/sglang-runtime:1.3.0":      "worker dynamo.sglang --model m",
		"registry.example/tensorrtllm-runtime:1.3.0": "worker dynamo.trtllm --model m",
		"registry.example/mine:1":                    "idle entrypoint --model m",
	} {
		r := &recorder{}
		env := podenv.Env{"DYN_COMPONENT": "decode", "DYNAMO_CONTAINER_IMAGE": image}
		r.shell().Exec(t.Context(), []string{"--model", "m"}, env, Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
		if got := r.summary(); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
