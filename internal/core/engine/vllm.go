package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"mvdan.cc/sh/v3/syntax"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Ports on which the nodes of a vLLM group meet.
const (
	rayPort = "6379"
	dpPort  = "13445"
)

// vllm spans nodes in one of two ways, chosen by what does not fit on one: a
// model that needs more GPUs than a node has runs on Ray or is joined by vLLM itself;
// replicas of a model that fits are spread by data parallelism, each node balancing
// its own.
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
	l.NoProbes, l.Unknown = s.Group.Position == Worker, sizes.unknown
	rules := contract.Of(s.Contract)
	switch model := sizes.tensor * sizes.pipeline; {
	case rules.Ray.Elastic && arguments(graph.EngineVLLM, s.Command, s.Args).Has("--enable-elastic-ep"):
		l.Command, l.Args = elastic(s)
		l.Joined = true
	case s.GPUs == 0: // nothing says what fits
	case model > s.GPUs && s.Executor == graph.ExecutorMP:
		multiprocess(s, &l)
	case model > s.GPUs:
		l.Command, l.Args = ray(s)
		l.Joined = true
	case model*sizes.data > s.GPUs:
		l.Command, l.Args, l.Joined = splice(graph.EngineVLLM, s.Command, s.Args, dataParallel(s, s.GPUs/model))
	}
	if rules.Groups.SideChannel && (s.Executor == graph.ExecutorMP || !startsRay(l)) {
		l.Env = append(l.Env, corev1.EnvVar{Name: "VLLM_NIXL_SIDE_CHANNEL_HOST", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
		}})
	}
	return l, nil
}

func startsRay(l Container) bool {
	return slices.ContainsFunc(slices.Concat(l.Command, l.Args), func(word string) bool { return strings.Contains(word, "ray start ") })
}

// mpPort is where the processes of a vLLM group meet that is joined without Ray.
const mpPort = "29500"

// multiprocess joins the nodes of a group by vLLM's own means. Workers give up when
// their leader does not listen yet, so each waits for it.
func multiprocess(s Spec, l *Container) {
	worker := s.Group.Position == Worker
	rank, tail := "0", []string(nil)
	if worker {
		rank, tail = s.Group.Addresses.Rank, []string{"--headless"}
	}
	needed := worker && !s.Group.Addresses.RankExec
	shell := needed || !direct(graph.EngineVLLM, s.Command, s.Args)
	l.Command, l.Args, l.Joined = splice(graph.EngineVLLM, s.Command, s.Args, flags{shell: needed, words: append([]string{
		"--distributed-executor-backend", "mp",
		"--nnodes", strconv.Itoa(s.Group.Nodes),
		"--master-addr", s.Group.Addresses.Leader(shell),
		"--master-port", mpPort,
		"--node-rank", rank,
	}, tail...)})
	if worker {
		waitForLeader(s, l)
	}
}

// WithMasterPort has a vLLM engine meet the others of its group at another port: of
// a flag that is given twice the last counts.
func WithMasterPort(command, args []string, port string) (newCommand, newArgs []string) {
	if direct(graph.EngineVLLM, command, args) {
		for at := len(args) - 2; at >= 0; at-- {
			if args[at] == "--master-port" && !commandline.NewLooseArgs(args[at+2:]).Has("--master-port") {
				return command, slices.Concat(args[:at+1], []string{port}, args[at+2:])
			}
		}
		return command, slices.Concat(args, []string{"--master-port", port})
	}
	moved := func(script string) string {
		changed := strings.ReplaceAll(script, "--master-port "+mpPort, "--master-port "+port)
		if changed == script {
			changed = insertFlags(graph.EngineVLLM, script, []string{"--master-port", port})
		}
		// A port of the user's own stands behind the operator's flags.
		for _, l := range slices.Backward(launchCalls(graph.EngineVLLM, changed)) {
			if last, _ := commandline.NewLooseArgs(l.words).Value("--master-port"); last != port {
				changed = changed[:l.last] + " --master-port " + port + changed[l.last:]
			}
		}
		return changed
	}
	if changed, ok := changeFirst(args, moved); ok {
		return command, changed
	}
	changed, _ := changeFirst(command, moved)
	return changed, args
}

// LoadShared has a vLLM engine take its weights from a server of shared GPU memory,
// unless it says where it takes them from.
func LoadShared(command, args []string) (newCommand, newArgs []string) {
	if arguments(graph.EngineVLLM, command, args).Has("--load-format") {
		return command, args
	}
	newCommand, newArgs, _ = splice(graph.EngineVLLM, command, args, flags{words: []string{"--load-format", "gms"}})
	return newCommand, newArgs
}

// elastic starts Ray over the group and leaves it to the engine how many of its
// nodes it uses. Followers join once the leader serves: until then it decides which
// nodes there are.
func elastic(s Spec) (command, args []string) {
	if s.Group.Position == Worker {
		live := "http://" + s.Group.Addresses.Leader(true) + ":9090/live"
		return Shell(), []string{until("python3 -c \"import urllib.request; urllib.request.urlopen('"+live+"', timeout=5)\"", 720, 15, "the leader does not serve") +
			" && ray start --address=" + s.Group.Addresses.Leader(true) + ":" + rayPort + " --block"}
	}
	listens := "python3 -c \"import socket; socket.create_connection(('127.0.0.1', " + rayPort + "), timeout=1).close()\""
	head := "ray start --head --port=" + rayPort + " --block & " + until(listens, 150, 2, "Ray does not listen") + " && "
	words := slices.Concat(s.Command, s.Args)
	at := script(words)
	if at < 0 {
		return Shell(), []string{head + commandline.Join(words)}
	}
	words[at] = head + oneStep(words[at])
	return words[:len(s.Command)], words[len(s.Command):]
}

// until tries a command again and again, a number of times with pauses in seconds.
func until(try string, times, pause int, otherwise string) string {
	return fmt.Sprintf(`{ n=0; until %s 2>/dev/null; do n=$((n+1)); if [ "$n" -ge %d ]; then echo %s >&2; exit 1; fi; sleep %d; done; }`, try, times, `"`+otherwise+`"`, pause)
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
