package engine

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"mvdan.cc/sh/v3/syntax"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Ports on which the nodes of a vLLM group meet.
const (
	rayPort = "6379"
	dpPort  = "13445"
)

// vllm spans nodes in one of two ways, chosen by what does not fit on one: a
// model that needs more GPUs than a node has runs on Ray; replicas of a model
// that fits are spread by data parallelism, each node balancing its own.
func vllm(s Spec) (Container, error) {
	l := Container{Command: s.Command, Args: s.Args}
	if s.CacheDir != "" {
		l.Env = append(l.Env, corev1.EnvVar{Name: "VLLM_CACHE_ROOT", Value: s.CacheDir})
	}
	sizes, err := readSizes(s)
	if err != nil {
		return Container{}, err
	}
	if s.Group.Position == Alone {
		return l, nil
	}
	l.NoProbes = s.Group.Position == Worker
	switch model := sizes.tensor * sizes.pipeline; {
	case s.GPUs == 0: // nothing says what fits
	case model > s.GPUs:
		l.Command, l.Args = ray(s)
		l.Joined = true
	case model*sizes.data > s.GPUs:
		l.Command, l.Args, l.Joined = splice(graph.EngineVLLM, s.Command, s.Args, dataParallel(s, s.GPUs/model))
	}
	return l, nil
}

// ray starts a Ray cluster over the group; the leader then runs the engine on
// all of it.
func ray(s Spec) (command, args []string) {
	if s.Group.Position == Worker {
		return Shell(), []string{"ray start --address=" + s.Group.Addresses.Leader(true) + ":" + rayPort + " --block"}
	}
	const head = "ray start --head --port=" + rayPort + " && "
	executor := []string{"--distributed-executor-backend", "ray"}
	words := slices.Concat(s.Command, s.Args)
	at := script(words)
	if at < 0 {
		return Shell(), []string{head + commandline.Join(slices.Concat(words, executor))}
	}
	spliced := insertFlags(graph.EngineVLLM, words[at], executor)
	if spliced == words[at] { // started by a program of the user's, which takes the engine's arguments
		spliced += " " + commandline.Join(executor)
	}
	words[at] = head + oneStep(spliced)
	return words[:len(s.Command)], words[len(s.Command):]
}

// oneStep makes a script one step of a chain, so that none of it runs when a
// step before it fails.
func oneStep(script string) string {
	if parsed, err := commandline.Parse(script); err == nil && len(parsed.Stmts) == 1 {
		chain, ok := parsed.Stmts[0].Cmd.(*syntax.BinaryCmd)
		if !ok || chain.Op != syntax.AndStmt && chain.Op != syntax.OrStmt {
			return script
		}
	}
	return "{\n" + strings.TrimRight(script, "\n") + "\n}"
}

// dataParallel tells each node which of the model's replicas are its own. Flags
// that the user gives as well are repeated, as the original operator does: the
// engine reads the same, and another command line would replace running pods when
// a cluster is taken over.
func dataParallel(s Spec, local int) flags {
	worker := s.Group.Position == Worker
	start := "0"
	if worker {
		start = s.Group.Addresses.RankTimes(local)
	}
	shell := worker || !direct(graph.EngineVLLM, s.Command, s.Args)
	words := []string{
		"--data-parallel-hybrid-lb",
		"--data-parallel-size-local", strconv.Itoa(local),
		"--data-parallel-start-rank", start,
		"--data-parallel-address", s.Group.Addresses.Leader(shell),
		"--data-parallel-rpc-port", dpPort,
	}
	return flags{words: words, shell: worker}
}
