package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFor(t *testing.T) {
	for name, c := range map[string]struct {
		image         string
		command, args []string
		want          Program
	}{
		"our image runs its own binary with the args": {
			image: "ghcr.io/x/dynamo-operator:v1", args: []string{"--leader-elect"},
			want: Program{"dynamo-operator", []string{"--leader-elect"}},
		},
		"the command of our image repeats the binary's name and is dropped": {
			image: "localhost:5000/dynamo-profiler", command: []string{"/dynamo-profiler", "run"}, args: []string{"--x"},
			want: Program{"dynamo-profiler", []string{"run", "--x"}},
		},
		"a runtime image is played by the mocker with command and args": {
			image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.8.0", command: []string{"sh", "-c"}, args: []string{"sleep 1"},
			want: Program{Mocker, []string{"sh", "-c", "sleep 1"}},
		},
		"a runtime image without a command is played all the same": {
			image: "my-registry/sglang-runtime:my-tag",
			want:  Program{Mocker, nil},
		},
		"a placeholder stands for a runtime image": {
			image: "${VLLM_IMAGE}",
			want:  Program{Mocker, nil},
		},
		"a module launch betrays a runtime under any image": {
			image: "python:3.12", command: []string{"python3"}, args: []string{"-m", "dynamo.frontend"},
			want: Program{Mocker, []string{"python3", "-m", "dynamo.frontend"}},
		},
		"a module launch is found inside a shell string": {
			image: "python:3.12", command: []string{"sh", "-c"}, args: []string{"cd /x && exec python3 -m dynamo.vllm --model m"},
			want: Program{Mocker, []string{"sh", "-c", "cd /x && exec python3 -m dynamo.vllm --model m"}},
		},
		"the profiler of a runtime is played by ours": {
			image: "my-registry/vllm-runtime:my-tag", command: []string{"python", "-m", "benchmarks.profiler.profile_sla"}, args: []string{"--profile-config", "{}"},
			want: Program{"dynamo-profiler", []string{"profile-sla", "--profile-config", "{}"}},
		},
		"an activator is itself": {
			image: "registry.example/team/dynamo-activator:v2", args: []string{"--lease=chat-activation"},
			want: Program{"dynamo-activator", []string{"--lease=chat-activation"}},
		},
		"the planner of a runtime is played by ours": {
			image: "my-registry/vllm-runtime:my-tag", command: []string{"python3", "-m", "planner_sla"}, args: []string{"--backend=vllm"},
			want: Program{"dynamo-planner", []string{"python3", "-m", "planner_sla", "--backend=vllm"}},
		},
		"a planner is found inside a shell string": {
			image: "my-registry/vllm-runtime:my-tag", command: []string{"/bin/sh", "-c"}, args: []string{"python3 -m dynamo.planner.planner_sla --ttft 200"},
			want: Program{"dynamo-planner", []string{"/bin/sh", "-c", "python3 -m dynamo.planner.planner_sla --ttft 200"}},
		},
		"an image of planners without a command is a planner": {
			image: "nvcr.io/nvidia/ai-dynamo/dynamo-planner:1.4.1", args: []string{"--config", "{}"},
			want: Program{"dynamo-planner", []string{"--config", "{}"}},
		},
		"the command of our planner's image repeats its name": {
			image: "dynamo-planner:dev", command: []string{"/dynamo-planner"}, args: []string{"--ttft=200"},
			want: Program{"dynamo-planner", []string{"--ttft=200"}},
		},
		"an image of planners can run the profiler": {
			image: "nvcr.io/nvidia/ai-dynamo/dynamo-planner:1.4.1", command: []string{"python", "-m", "dynamo.profiler"}, args: []string{"--config", "{}"},
			want: Program{"dynamo-profiler", []string{"profile", "--config", "{}"}},
		},
		"a module whose name only begins like a planner's is none": {
			image: "vllm-runtime:1", command: []string{"python3", "-m", "dynamo.planner_tools"},
			want: Program{Mocker, []string{"python3", "-m", "dynamo.planner_tools"}},
		},
		"a foreign image is played by nobody": {
			image: "busybox:1.36", command: []string{"sleep", "1000"},
		},
		"a tag does not make a runtime": {
			image: "busybox:dynamo",
		},
		"the digest is no part of the name": {
			image: "x/kubectl-dynamo@sha256:00", want: Program{Binary: "kubectl-dynamo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, For(c.image, c.command, c.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
