// Package launch finds out what a container would run and plays the shell
// around it.
//
// A container's command reaches the mock engine as it stands in the pod: exec
// form, split in command and args, a shell string, a multinode script ending in
// mpirun. launch interprets it in-process, never starting a shell or any other
// program of the host, until it meets a program of the Dynamo runtime, which it
// hands to its Runner. Harmless set-up commands succeed without doing anything;
// files are never written.
package launch

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// Kind is the part a program plays in a graph.
type Kind string

// The kinds of programs the mock engine plays.
const (
	Frontend       Kind = "frontend"
	Worker         Kind = "worker"
	Planner        Kind = "planner"
	Router         Kind = "router"
	GlobalRouter   Kind = "global-router"
	EndpointPicker Kind = "endpoint-picker"
	// Sidecar is the half of a worker that is outside of its engine.
	Sidecar Kind = "sidecar"
	// Engine is an engine without the runtime's half, which a sidecar brings.
	Engine Kind = "engine"
	// MemoryService keeps weights in GPU memory for the engines of a pod.
	MemoryService Kind = "memory-service"
	// LeaderWait holds a node back until its group's leader listens.
	LeaderWait Kind = "leader-wait"
	// Script is a Python program of the user's own that takes part as a component.
	Script Kind = "script"
	// RayHead opens a Ray cluster and returns; with --block it stays.
	RayHead Kind = "ray-head"
	// RayNode is a member of a Ray cluster that lends its GPUs to the leader.
	RayNode Kind = "ray-node"
	// MPIJob is an mpirun with the hosts it spans.
	MPIJob Kind = "mpi-job"
	// SSHDaemon is a node of an MPI job waiting for the leader's call.
	SSHDaemon Kind = "ssh-daemon"
	// Idle is anything unknown that had better stay up.
	Idle Kind = "idle"
)

// Program is one program of the runtime with all that it was given.
type Program struct {
	Kind Kind
	// Name is the Python module ("dynamo.vllm"), script or command.
	Name string
	Args []string
	Env  podenv.Env
}

// Backend is the engine of a worker: vllm, sglang, trtllm or mocker.
func (p Program) Backend() string { return strings.TrimPrefix(p.Name, "dynamo.") }

var pythonName = regexp.MustCompile(`^python[0-9.]*$`)

// recognise tells which program of the runtime the words start, if any.
func recognise(words []string) (Program, bool) {
	name, args := path.Base(words[0]), words[1:]
	switch {
	case pythonName.MatchString(name):
		return python(args)
	case name == "epp":
		return Program{Kind: EndpointPicker, Name: name, Args: args}, true
	case name == "sshd":
		return Program{Kind: SSHDaemon, Name: name, Args: args}, true
	case name == "ray" && len(args) > 0 && args[0] == "start" && slices.Contains(args, "--head"):
		return Program{Kind: RayHead, Name: name, Args: args}, true
	case name == "ray" && len(args) > 0 && args[0] == "start":
		return Program{Kind: RayNode, Name: name, Args: args}, true
	case name == "planner_sla":
		return Program{Kind: Planner, Name: name, Args: args}, true
	case slices.Contains(sidecars, name):
		return Program{Kind: Sidecar, Name: name, Args: args}, true
	case name == "vllm" || name == "vllm-rs" || name == "trtllm-serve":
		return engineProgram(name, args)
	}
	return Program{}, false
}

// sidecars are the programs that bring an engine of another container into a graph.
var sidecars = []string{"dynamo-vllm-sidecar", "dynamo-sglang-sidecar", "dynamo-trtllm-sidecar"}

// engineProgram is an engine's own server, "vllm serve MODEL ...": the model is
// its only word that is no flag.
func engineProgram(name string, args []string) (Program, bool) {
	flag := "--model"
	if name == "trtllm-serve" {
		flag = "--model-path"
	}
	name, _, _ = strings.Cut(name, "-")
	if len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	} else if name == "vllm" {
		return Program{}, false // vllm bench, vllm collect-env
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = slices.Concat([]string{flag, args[0]}, args[1:])
	}
	return Program{Kind: Engine, Name: name, Args: args}, true
}

// leaderWait is the script by which the operator lets the nodes of a group wait
// for their leader.
const leaderWait = "wait-for-leader.py"

// python reads the interpreter's own options up to -m MODULE or SCRIPT.
func python(args []string) (Program, bool) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-m" && i+1 < len(args):
			return module(args[i+1], args[i+2:])
		case arg == "-c":
			return Program{}, false
		case arg == "-W" || arg == "-X":
			i++
		case strings.HasPrefix(arg, "-"):
		case path.Base(arg) == leaderWait:
			return Program{Kind: LeaderWait, Name: leaderWait, Args: args[i+1:]}, true
		case strings.HasSuffix(arg, ".py"):
			return Program{Kind: Script, Name: path.Base(arg), Args: args[i+1:]}, true
		default:
			return Program{}, false
		}
	}
	return Program{}, false
}

func module(name string, args []string) (Program, bool) {
	p := Program{Name: name, Args: args}
	switch {
	case name == "dynamo.frontend":
		p.Kind = Frontend
	case name == "dynamo.vllm", name == "dynamo.sglang", name == "dynamo.trtllm", name == "dynamo.mocker":
		p.Kind = Worker
	case name == "dynamo.router":
		p.Kind = Router
	case name == "dynamo.global_router":
		p.Kind = GlobalRouter
	case name == "sglang.launch_server":
		p.Kind, p.Name = Engine, "sglang"
	case name == "vllm.entrypoints.openai.api_server":
		p.Kind, p.Name = Engine, "vllm"
	case strings.HasPrefix(name, "gpu_memory_service."):
		p.Kind = MemoryService
	case name == "planner_sla", name == "dynamo.planner", name == "dynamo.global_planner", strings.HasPrefix(name, "dynamo.planner."):
		p.Kind = Planner
	case strings.HasPrefix(name, "dynamo."):
		// A component this mock does not know: it is part of a graph all the
		// same, so it stays up and healthy like a user's script.
		p.Kind = Script
	default:
		return Program{}, false
	}
	return p, true
}

// entrypoint guesses an image's own entrypoint, for containers without a command.
func entrypoint(args []string, env podenv.Env) Program {
	switch env["DYN_COMPONENT"] {
	case "epp":
		return Program{Kind: EndpointPicker, Name: "epp", Args: args}
	case "frontend":
		return Program{Kind: Frontend, Name: "dynamo.frontend", Args: args}
	case "planner":
		return Program{Kind: Planner, Name: "planner_sla", Args: args}
	case "worker", "prefill", "decode":
		// Flags alone are an engine's; which, only the image tells.
		for _, engine := range []string{"vllm", "sglang", "trtllm"} {
			if len(args) > 0 && strings.Contains(strings.ReplaceAll(env["DYNAMO_CONTAINER_IMAGE"], "tensorrtllm", "trtllm"), engine) {
				return Program{Kind: Worker, Name: "dynamo." + engine, Args: args}
			}
		}
	}
	return Program{Kind: Idle, Name: "entrypoint", Args: args}
}

// runtimeImage says whether the image is one of the Dynamo runtime, going by its name.
func runtimeImage(image string) bool {
	image = strings.ToLower(image)
	for _, mark := range []string{"dynamo", "vllm", "sglang", "trtllm", "tensorrtllm", "epp", "mocker", "${"} {
		if strings.Contains(image, mark) {
			return true
		}
	}
	return false
}
