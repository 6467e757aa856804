package backend

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/graph"
)

// Ports on which the nodes of a vLLM group meet.
const (
	rayPort = "6379"
	dpPort  = "13445"
)

// vllm spans nodes in one of two ways, chosen by what does not fit on one: a
// model that needs more GPUs than a node has runs on Ray; replicas of a model
// that fits are spread by data parallelism, each node balancing its own.
func vllm(s Spec) (Launch, error) {
	l := Launch{Command: s.Command, Args: s.Args}
	if s.CacheDir != "" {
		l.Env = append(l.Env, corev1.EnvVar{Name: "VLLM_CACHE_ROOT", Value: s.CacheDir})
	}
	if s.Group.Position == Alone {
		return l, nil
	}
	l.NoProbes = s.Group.Position == Worker
	sizes, err := parallelism(arguments(graph.EngineVLLM, s.Command, s.Args))
	if err != nil {
		return Launch{}, err
	}
	switch model := sizes.tensor * sizes.pipeline; {
	case s.GPUs > 0 && model > s.GPUs:
		l.Command, l.Args = ray(s)
	case s.GPUs > 0 && model*sizes.data > s.GPUs:
		l.Command, l.Args = splice(graph.EngineVLLM, s.Command, s.Args, dataParallel(s, s.GPUs/model, sizes.userHybrid))
	}
	return l, nil
}

type vllmSizes struct {
	tensor, pipeline, data int
	userHybrid             bool
}

func parallelism(args commandline.Args) (sizes vllmSizes, err error) {
	if sizes.tensor, err = args.Int(1, "--tensor-parallel-size", "-tp"); err != nil {
		return sizes, err
	}
	if sizes.pipeline, err = args.Int(1, "--pipeline-parallel-size", "-pp"); err != nil {
		return sizes, err
	}
	sizes.data, err = args.Int(1, "--data-parallel-size", "-dp")
	sizes.userHybrid = args.Has("--data-parallel-hybrid-lb")
	return sizes, err
}

// ray starts a Ray cluster over the group; the leader then runs the engine on
// all of it.
func ray(s Spec) (command, args []string) {
	shell := []string{"/bin/sh", "-c"}
	if s.Group.Position == Worker {
		return shell, []string{"ray start --address=" + s.Group.Addresses.Leader(true) + ":" + rayPort + " --block"}
	}
	const head, executor = "ray start --head --port=" + rayPort + " && ", "--distributed-executor-backend ray"
	if execForm(s.Command) || len(s.Args) == 0 {
		return shell, []string{head + commandline.Join(append(append([]string{}, s.Command...), s.Args...)) + " " + executor}
	}
	_, spliced := splice(graph.EngineVLLM, s.Command, s.Args, flags{words: strings.Fields(executor)})
	return shell, []string{head + strings.Join(spliced, " ")}
}

// dataParallel tells each node which of the model's replicas are its own.
func dataParallel(s Spec, local int, userHybrid bool) flags {
	worker := s.Group.Position == Worker
	start := "0"
	if worker {
		start = s.Group.Addresses.RankTimes(local)
	}
	shell := worker || !execForm(s.Command)
	words := []string{
		"--data-parallel-size-local", strconv.Itoa(local),
		"--data-parallel-start-rank", start,
		"--data-parallel-address", s.Group.Addresses.Leader(shell),
		"--data-parallel-rpc-port", dpPort,
	}
	if !userHybrid {
		words = append([]string{"--data-parallel-hybrid-lb"}, words...)
	}
	return flags{words: words, shell: worker}
}
