// Package engine builds the command line that launches an inference engine, alone
// or as one node of a group, and what that needs around it: environment, probes,
// volumes. It never sees a pod.
package engine

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Position is where in a group of nodes a process stands.
type Position int

const (
	// Alone: the engine fits on one node.
	Alone Position = iota
	// Leader: the node that the others connect to and that serves requests.
	Leader
	// Worker: any other node of the group.
	Worker
)

// Group is the place of a process among the nodes of one replica.
type Group struct {
	Position  Position
	Nodes     int
	Addresses Addresses
}

// Addresses spells how a process learns, under one orchestrator, where the
// others are. Variables that are written $(NAME) are expanded by the kubelet,
// wherever they stand; $NAME needs a shell.
type Addresses struct {
	// LeaderExec and LeaderShell are the leader's host in a command without and
	// with a shell.
	LeaderExec, LeaderShell string
	// WorkerShell is the host of worker i, from 1 on, in a shell.
	WorkerShell func(i int) string
	// Rank is the number of a worker in its group, from 1 on, in a shell. RankExec
	// says that it needs none.
	Rank     string
	RankExec bool
	// RankTimes is that number times n, in a shell.
	RankTimes func(n int) string
	// Resolve is true where the hosts of workers get their names only after the
	// leader has started, so that it has to wait for them.
	Resolve bool
}

// Leader is the leader's host, for a command with or without a shell.
func (a Addresses) Leader(shell bool) string {
	if shell {
		return a.LeaderShell
	}
	return a.LeaderExec
}

// Spec is what an engine is to be launched with.
type Spec struct {
	Contract graph.Contract
	// Executor is how the nodes of a vLLM group are joined; empty is Ray.
	Executor      graph.Executor
	Command, Args []string
	Image         string
	// Env are the variables that the container will have.
	Env  []corev1.EnvVar
	GPUs int
	// CacheDir is where compiled kernels are kept, if the user says.
	CacheDir string
	Group    Group
	// SSHSecret holds the key by which nodes of a group reach each other.
	SSHSecret string
	// WaitScript is the ConfigMap with the script by which a worker waits for its
	// leader.
	WaitScript string
}

// Container is how it is launched.
type Container struct {
	Command, Args []string
	// Joined is true when the nodes of a group were told of each other.
	Joined bool
	// Unknown are arguments that decide how an engine spans nodes and that only the pod
	// knows.
	Unknown []string
	// Env is added where the user has not set the same name.
	Env []corev1.EnvVar
	// NoProbes drops the probes: a node that serves nothing cannot be probed.
	NoProbes bool
	// Readiness takes the place of the readiness probe that was dropped.
	Readiness *corev1.Probe
	Volumes   []corev1.Volume
	Mounts    []corev1.VolumeMount
	// InitContainers run before it, and need InitVolumes.
	InitContainers []corev1.Container
	InitVolumes    []corev1.Volume
}

// Launch launches a component's engine. One that we do not know is launched as the
// user says, on every node alike.
func Launch(engine graph.Engine, s Spec) (Container, error) {
	switch engine {
	case graph.EngineVLLM:
		return vllm(s)
	case graph.EngineSGLang:
		return sglang(s)
	case graph.EngineTRTLLM:
		return trtllm(s)
	default:
		return Container{Command: s.Command, Args: s.Args}, nil
	}
}
