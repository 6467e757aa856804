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
	case name == "dynamo-vllm-sidecar", name == "dynamo-sglang-sidecar":
		// The worker's half that is outside of the engine: another container of
		// the pod has the engine, which the mock does not need.
		return Program{Kind: Worker, Name: "dynamo." + strings.TrimSuffix(strings.TrimPrefix(name, "dynamo-"), "-sidecar"), Args: args}, true
	}
	return Program{}, false
}

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
	case name == "planner_sla", name == "dynamo.planner", strings.HasPrefix(name, "dynamo.planner."):
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
