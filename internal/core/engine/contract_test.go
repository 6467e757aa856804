package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// kubeletAddresses are those of a LeaderWorkerSet under the 1.x contract.
func kubeletAddresses() Addresses {
	a := lwsAddresses()
	a.LeaderShell, a.RankExec = a.LeaderExec, true
	return a
}

func TestLaunchUnder1x(t *testing.T) {
	command, tp := words("python3 -m dynamo.vllm"), words("--model m --tensor-parallel-size 16")
	flags := func(leader, rank string) []string {
		return words("--distributed-executor-backend mp --nnodes 2 --master-addr " + leader + " --master-port 29500 --node-rank " + rank)
	}
	kubelet := func(p Position) Group { return Group{Position: p, Nodes: 2, Addresses: kubeletAddresses()} }
	const lwsLeader = "$(LWS_LEADER_ADDRESS)"
	const elasticHead = `ray start --head --port=6379 --block & { n=0; until python3 -c "import socket; socket.create_connection(('127.0.0.1', 6379), timeout=1).close()" 2>/dev/null; ` +
		`do n=$((n+1)); if [ "$n" -ge 150 ]; then echo "Ray does not listen" >&2; exit 1; fi; sleep 2; done; } && `
	cases := map[string]struct {
		spec        Spec
		engine      graph.Engine
		wantCommand []string
		wantArgs    []string
		waits       bool
		env         []string
	}{
		"a model too large for a node is joined by vLLM itself": {
			Spec{Command: command, Args: tp, Executor: graph.ExecutorMP, Group: kubelet(Leader)}, graph.EngineVLLM,
			command, append(tp, flags(lwsLeader, "0")...), false, []string{"VLLM_NIXL_SIDE_CHANNEL_HOST"},
		},
		"its workers wait for the leader, and serve nothing": {
			Spec{Command: command, Args: tp, Executor: graph.ExecutorMP, Group: kubelet(Worker)}, graph.EngineVLLM,
			command, append(append(tp, flags(lwsLeader, "$(LWS_WORKER_INDEX)")...), "--headless"), true, []string{"VLLM_NIXL_SIDE_CHANNEL_HOST"},
		},
		"a rank that is computed needs a shell": {
			Spec{Command: command, Args: tp, Executor: graph.ExecutorMP, Group: grove(Worker, 2)}, graph.EngineVLLM,
			[]string{"sh", "-c"}, []string{"exec python3 -m dynamo.vllm --model m --tensor-parallel-size 16 " + strings.Join(flags(groveLeader, "$((GROVE_PCLQ_POD_INDEX + 1))"), " ") + " --headless"},
			true, []string{"VLLM_NIXL_SIDE_CHANNEL_HOST"},
		},
		"in a script flags stand behind the module": {
			Spec{Command: Shell(), Args: []string{"exec python3 -m dynamo.vllm --tensor-parallel-size 16"}, Executor: graph.ExecutorMP, Group: kubelet(Leader)}, graph.EngineVLLM,
			Shell(), []string{"exec python3 -m dynamo.vllm " + strings.Join(flags(lwsLeader, "0"), " ") + " --tensor-parallel-size 16"}, false, []string{"VLLM_NIXL_SIDE_CHANNEL_HOST"},
		},
		"a graph that began with Ray keeps it": {
			Spec{Command: command, Args: tp, Executor: graph.ExecutorRay, Group: kubelet(Worker)}, graph.EngineVLLM,
			Shell(), []string{"ray start --address=" + lwsLeader + ":6379 --block"}, false, nil,
		},
		"a model that fits a node is launched alike on each": {
			Spec{Command: command, Args: words("--model m --tensor-parallel-size 8"), Executor: graph.ExecutorMP, Group: kubelet(Worker)}, graph.EngineVLLM,
			command, words("--model m --tensor-parallel-size 8"), false, []string{"VLLM_NIXL_SIDE_CHANNEL_HOST"},
		},
		"elastic experts start behind Ray in the shell that the user chose": {
			Spec{Command: words("/bin/bash -lc"), Args: []string{"set -o pipefail\npython3 -m dynamo.vllm --enable-elastic-ep | tee /tmp/l"}, Executor: graph.ExecutorRay, Group: kubelet(Leader)}, graph.EngineVLLM,
			words("/bin/bash -lc"), []string{elasticHead + "{\nset -o pipefail\npython3 -m dynamo.vllm --enable-elastic-ep | tee /tmp/l\n}"}, false, nil,
		},
		"elastic experts without a shell get one": {
			Spec{Command: command, Args: words("--enable-elastic-ep"), Executor: graph.ExecutorRay, Group: kubelet(Leader)}, graph.EngineVLLM,
			Shell(), []string{elasticHead + "python3 -m dynamo.vllm --enable-elastic-ep"}, false, nil,
		},
		"SGLang needs no shell where the kubelet knows the rank": {
			Spec{Command: words("python3 -m dynamo.sglang"), Args: words("--tp 16"), Group: kubelet(Worker)}, graph.EngineSGLang,
			words("python3 -m dynamo.sglang"), words("--tp 16 --dist-init-addr " + lwsLeader + ":29500 --nnodes 2 --node-rank $(LWS_WORKER_INDEX)"), false, nil,
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			c.spec.Contract, c.spec.GPUs, c.spec.WaitScript = graph.ContractV1, 8, "graph-wait-leader-script"
			got, err := Launch(c.engine, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.wantCommand, got.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantArgs, got.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if waits := len(got.InitContainers) == 1 && len(got.InitVolumes) == 1; waits != c.waits {
				t.Errorf("waits %t, want %t", waits, c.waits)
			}
			var env []string
			for _, v := range got.Env {
				env = append(env, v.Name)
			}
			if diff := cmp.Diff(c.env, env); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMasterPortOfASecondEngine(t *testing.T) {
	for rule, c := range map[string]struct{ command, args, want []string }{
		"is added":                                  {words("python3 -m dynamo.vllm"), words("--model m"), words("--model m --master-port 29600")},
		"replaces that of a group":                  {words("python3 -m dynamo.vllm"), words("--master-port 29500 --headless"), words("--master-port 29600 --headless")},
		"replaces the last, which counts":           {words("python3 -m dynamo.vllm"), words("--master-port 1 --model m --master-port 29500"), words("--master-port 1 --model m --master-port 29600")},
		"goes behind one that is written otherwise": {words("python3 -m dynamo.vllm"), words("--master-port 29500 --master-port=1"), words("--master-port 29500 --master-port=1 --master-port 29600")},
		"goes behind the user's in a script":        {words("sh -c"), []string{"exec python3 -m dynamo.vllm --master-port 29500 --model m --master-port 1 2>&1 | tee l"}, []string{"exec python3 -m dynamo.vllm --master-port 29600 --model m --master-port 1 --master-port 29600 2>&1 | tee l"}},
		"goes behind one of the user's alone":       {words("sh -c"), []string{"exec python3 -m dynamo.vllm --master-port=1"}, []string{"exec python3 -m dynamo.vllm --master-port 29600 --master-port=1 --master-port 29600"}},
		"is changed in a script":                    {words("sh -c"), []string{"exec python3 -m dynamo.vllm --master-port 29500"}, []string{"exec python3 -m dynamo.vllm --master-port 29600"}},
		"is added in a script":                      {words("sh -c"), []string{"exec python3 -m dynamo.vllm --model m"}, []string{"exec python3 -m dynamo.vllm --master-port 29600 --model m"}},
	} {
		t.Run(rule, func(t *testing.T) {
			_, got := WithMasterPort(c.command, c.args, "29600")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSharedWeights(t *testing.T) {
	for rule, c := range map[string]struct{ args, want []string }{
		"are asked for":              {words("--model m"), words("--model m --load-format gms")},
		"are not where a user chose": {words("--load-format auto"), words("--load-format auto")},
	} {
		t.Run(rule, func(t *testing.T) {
			_, got := LoadShared(words("python3 -m dynamo.vllm"), c.args)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}
