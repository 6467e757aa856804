package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/commandline"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// groveAddresses and lwsAddresses are spelled as the two orchestrators do;
// their packages test that they spell them so.
func groveAddresses(service string) Addresses {
	host := func(clique string, i int) string {
		return fmt.Sprintf("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-%s-%s-%d.$(GROVE_HEADLESS_SERVICE)", service, clique, i)
	}
	return Addresses{
		LeaderExec: host("ldr", 0), LeaderShell: host("ldr", 0),
		WorkerShell: func(i int) string { return host("wkr", i-1) },
		Rank:        "$((GROVE_PCLQ_POD_INDEX + 1))",
		RankTimes:   func(n int) string { return fmt.Sprintf("$(( %d * $((GROVE_PCLQ_POD_INDEX + 1)) ))", n) },
	}
}

func lwsAddresses() Addresses {
	return Addresses{
		LeaderExec: "$(LWS_LEADER_ADDRESS)", LeaderShell: "$LWS_LEADER_ADDRESS",
		WorkerShell: func(i int) string { return fmt.Sprintf(`$(echo "$LWS_LEADER_ADDRESS" | sed 's/\./-%d\./')`, i) },
		Rank:        "$(LWS_WORKER_INDEX)",
		RankTimes:   func(n int) string { return fmt.Sprintf("$((%d * LWS_WORKER_INDEX))", n) },
		Resolve:     true,
	}
}

const groveLeader = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-svc-ldr-0.$(GROVE_HEADLESS_SERVICE)"

func grove(p Position, nodes int) Group {
	return Group{Position: p, Nodes: nodes, Addresses: groveAddresses("svc")}
}

func lws(p Position, nodes int) Group {
	return Group{Position: p, Nodes: nodes, Addresses: lwsAddresses()}
}

// dp are the flags of a data-parallel node.
func dp(local, start, leader string) []string {
	return []string{
		"--data-parallel-hybrid-lb", "--data-parallel-size-local", local, "--data-parallel-start-rank", start,
		"--data-parallel-address", leader, "--data-parallel-rpc-port", "13445",
	}
}

func words(line string) []string { return strings.Fields(line) }

func TestLaunch(t *testing.T) {
	vllmCommand, sglangCommand := words("python3 -m dynamo.vllm"), words("python3 -m dynamo.sglang")
	tp, moe := words("--model m --tensor-parallel-size 16"), words("--model m --tensor-parallel-size 2 --data-parallel-size 8")
	sgl := words("--model-path m --tp 24")
	const moeLine, sglLine = "exec python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --data-parallel-size 8 ", "exec python3 -m dynamo.sglang --model-path m --tp 24 "
	line := func(parts ...string) []string { return []string{strings.Join(parts, " ")} }

	cases := map[string]struct {
		engine        graph.Engine
		command, args []string
		group         Group
		wantCommand   []string
		wantArgs      []string
		noProbes      bool
	}{
		"a model too large for a node runs on Ray, which the leader starts": {
			graph.EngineVLLM, vllmCommand, tp, grove(Leader, 2), Shell(),
			line("ray start --head --port=6379 && python3 -m dynamo.vllm --model m --tensor-parallel-size 16 --distributed-executor-backend ray"), false,
		},
		"Ray's workers join the leader under Grove": {
			graph.EngineVLLM, vllmCommand, tp, grove(Worker, 2), Shell(),
			line("ray start --address=" + groveLeader + ":6379 --block"), true,
		},
		"Ray's leader is the same under LeaderWorkerSet": {
			graph.EngineVLLM, vllmCommand, tp, lws(Leader, 2), Shell(),
			line("ray start --head --port=6379 && python3 -m dynamo.vllm --model m --tensor-parallel-size 16 --distributed-executor-backend ray"), false,
		},
		"Ray's workers join the leader under LeaderWorkerSet": {
			graph.EngineVLLM, vllmCommand, tp, lws(Worker, 2), Shell(),
			line("ray start --address=$LWS_LEADER_ADDRESS:6379 --block"), true,
		},
		"a data-parallel leader gets flags, without a shell under Grove": {
			graph.EngineVLLM, vllmCommand, moe, grove(Leader, 2), vllmCommand, append(words("--model m --tensor-parallel-size 2 --data-parallel-size 8"), dp("4", "0", groveLeader)...), false,
		},
		"a data-parallel worker computes its rank in a shell under Grove": {
			graph.EngineVLLM, vllmCommand, moe, grove(Worker, 2), words("sh -c"),
			line(moeLine + strings.Join(dp("4", "$(( 4 * $((GROVE_PCLQ_POD_INDEX + 1)) ))", groveLeader), " ")), true,
		},
		"a data-parallel leader's address is one that the kubelet expands": {
			graph.EngineVLLM, vllmCommand, moe, lws(Leader, 2), vllmCommand, append(words("--model m --tensor-parallel-size 2 --data-parallel-size 8"), dp("4", "0", "$(LWS_LEADER_ADDRESS)")...), false,
		},
		"a data-parallel worker computes its rank in a shell under LeaderWorkerSet": {
			graph.EngineVLLM, vllmCommand, moe, lws(Worker, 2), words("sh -c"),
			line(moeLine + strings.Join(dp("4", "$((4 * LWS_WORKER_INDEX))", "$LWS_LEADER_ADDRESS"), " ")), true,
		},
		"an SGLang leader under Grove": {
			graph.EngineSGLang, sglangCommand, sgl, grove(Leader, 3), sglangCommand,
			words("--model-path m --tp 24 --dist-init-addr " + groveLeader + ":29500 --nnodes 3 --node-rank 0"), false,
		},
		"an SGLang worker under Grove": {
			graph.EngineSGLang, sglangCommand, sgl, grove(Worker, 3), words("sh -c"),
			line(sglLine + "--dist-init-addr " + groveLeader + ":29500 --nnodes 3 --node-rank $((GROVE_PCLQ_POD_INDEX + 1))"), true,
		},
		"in a script the flags stand behind the module": {
			graph.EngineSGLang, Shell(), []string{"python3 -m dynamo.sglang --model-path m --tp 24 | tee /tmp/l"}, grove(Worker, 3), Shell(),
			line("python3 -m dynamo.sglang --dist-init-addr " + groveLeader + ":29500 --nnodes 3 --node-rank $((GROVE_PCLQ_POD_INDEX + 1)) --model-path m --tp 24 | tee /tmp/l"), true,
		},
		"an SGLang leader's address is one that the kubelet expands": {
			graph.EngineSGLang, sglangCommand, sgl, lws(Leader, 3), sglangCommand,
			words("--model-path m --tp 24 --dist-init-addr $(LWS_LEADER_ADDRESS):29500 --nnodes 3 --node-rank 0"), false,
		},
		"an SGLang leader in a script has one that the shell expands": {
			graph.EngineSGLang, words("bash -lc"), []string{"python3 -m dynamo.sglang --model-path m"}, lws(Leader, 3), words("bash -lc"),
			line("python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 3 --node-rank 0 --model-path m"), false,
		},
		"an SGLang worker under LeaderWorkerSet": {
			graph.EngineSGLang, sglangCommand, sgl, lws(Worker, 3), words("sh -c"),
			line(sglLine + "--dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 3 --node-rank $(LWS_WORKER_INDEX)"), true,
		},
		"a launch may be written over two lines": {
			graph.EngineSGLang, Shell(), []string{"exec python3 -m \\\n  dynamo.sglang \\\n  --tp 16"}, lws(Leader, 2), Shell(),
			line("exec python3 -m \\\n  dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0 \\\n  --tp 16"), false,
		},
		"a launch may be in a subshell": {
			graph.EngineSGLang, Shell(), []string{"(python3 -m dynamo.sglang)"}, lws(Leader, 2), Shell(),
			line("(python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0)"), false,
		},
		"every launch of a script gets the flags": {
			graph.EngineSGLang, Shell(), []string{"if a; then python3 -m dynamo.sglang; else python3 -m dynamo.sglang -v; fi"}, lws(Leader, 2), Shell(),
			line("if a; then python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0; " +
				"else python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0 -v; fi"), false,
		},
		"a launch may be in an array": {
			graph.EngineSGLang, words("bash -c"), []string{"run=(\n  python3\n  -m dynamo.sglang\n)\nexec \"${run[@]}\""}, lws(Leader, 2), words("bash -c"),
			line("run=(\n  python3\n  -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0\n)\nexec \"${run[@]}\""), false,
		},
		"a launch may be in the script of a second shell": {
			graph.EngineSGLang, Shell(), []string{`exec bash -c "python3 -m dynamo.sglang"`}, lws(Leader, 2), Shell(),
			line(`exec bash -c "python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0"`), false,
		},
		"a mention in a comment is none": {
			graph.EngineSGLang, Shell(), []string{"# runs python3 -m dynamo.sglang\n./serve.sh"}, lws(Leader, 2), Shell(), []string{"# runs python3 -m dynamo.sglang\n./serve.sh"}, false,
		},
		"only the first element that launches the engine changes": {
			graph.EngineSGLang, words("sh -c"), []string{"echo start", "python -m dynamo.sglang", "python -m dynamo.sglang"}, lws(Leader, 2), words("sh -c"),
			[]string{"echo start", "python -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0", "python -m dynamo.sglang"}, false,
		},
		"another program is left as it is": {
			graph.EngineSGLang, Shell(), []string{"java -jar app.jar"}, lws(Leader, 2), Shell(), []string{"java -jar app.jar"}, false,
		},
		"a mention in a quoted value is none": {
			graph.EngineSGLang, Shell(), []string{`python3 -m dynamo.sglang --served-model-name "sglang model"`}, lws(Leader, 2), Shell(),
			line(`python3 -m dynamo.sglang --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2 --node-rank 0 --served-model-name "sglang model"`), false,
		},
		"a launch behind another program has no shell either": {
			graph.EngineSGLang, words("numactl -N0 python3 -m dynamo.sglang"), words("--tp 16"), lws(Leader, 2), words("numactl -N0 python3 -m dynamo.sglang"),
			words("--tp 16 --dist-init-addr $(LWS_LEADER_ADDRESS):29500 --nnodes 2 --node-rank 0"), false,
		},
		"words of a command without a shell are quoted for one": {
			graph.EngineVLLM, vllmCommand, []string{"--tensor-parallel-size", "16", "--cfg", `{"a": "it's"}`}, lws(Leader, 2), Shell(),
			line(`ray start --head --port=6379 && python3 -m dynamo.vllm --tensor-parallel-size 16 --cfg '{"a": "it'\''s"}' --distributed-executor-backend ray`), false,
		},
		"sizes are read behind an equals sign": {
			graph.EngineVLLM, vllmCommand, words("--tensor-parallel-size=16"), lws(Worker, 2), Shell(), line("ray start --address=$LWS_LEADER_ADDRESS:6379 --block"), true,
		},
		"sizes are read in their short form": {
			graph.EngineVLLM, vllmCommand, words("-tp 8 -pp 2"), lws(Worker, 2), Shell(), line("ray start --address=$LWS_LEADER_ADDRESS:6379 --block"), true,
		},
		"sizes are read with underscores": {
			graph.EngineVLLM, vllmCommand, words("--tensor_parallel_size 16"), lws(Worker, 2), Shell(), line("ray start --address=$LWS_LEADER_ADDRESS:6379 --block"), true,
		},
		"sizes are read from the command": {
			graph.EngineVLLM, words("python3 -m dynamo.vllm -tp 16"), nil, lws(Worker, 2), Shell(), line("ray start --address=$LWS_LEADER_ADDRESS:6379 --block"), true,
		},
		"a Ray leader in a script stays in it": {
			graph.EngineVLLM, words("bash -c"), []string{"ulimit -l unlimited\npython3 -m dynamo.vllm \\\n  --tensor-parallel-size 16"}, lws(Leader, 2), words("bash -c"),
			line("ray start --head --port=6379 && {\nulimit -l unlimited\npython3 -m dynamo.vllm --distributed-executor-backend ray \\\n  --tensor-parallel-size 16\n}"), false,
		},
		"a Ray leader behind another program keeps it": {
			graph.EngineVLLM, words("numactl -N0"), words("python3 -m dynamo.vllm -tp 16"), lws(Leader, 2), Shell(),
			line("ray start --head --port=6379 && numactl -N0 python3 -m dynamo.vllm -tp 16 --distributed-executor-backend ray"), false,
		},
		"a flag that the user gives as well is repeated, as the original operator does": {
			graph.EngineVLLM, vllmCommand, append(slices.Clip(moe), "--data-parallel-hybrid-lb"), lws(Leader, 2), vllmCommand,
			append(append(slices.Clip(moe), "--data-parallel-hybrid-lb"), dp("4", "0", "$(LWS_LEADER_ADDRESS)")...), false,
		},
		"what fits on a node is left as it is": {
			graph.EngineVLLM, vllmCommand, words("-tp 8"), lws(Worker, 2), vllmCommand, words("-tp 8"), true,
		},
		"one node needs no flags": {
			graph.EngineVLLM, vllmCommand, moe, Group{Nodes: 1}, vllmCommand, moe, false,
		},
		"one node of SGLang needs none": {
			graph.EngineSGLang, sglangCommand, sgl, Group{Nodes: 1}, sglangCommand, sgl, false,
		},
		"a variable on one node is the engine's own affair": {
			graph.EngineVLLM, Shell(), []string{"python3 -m dynamo.vllm -tp $TP"}, Group{Nodes: 1}, Shell(), []string{"python3 -m dynamo.vllm -tp $TP"}, false,
		},
		"an engine that we do not know is launched as it is": {
			graph.EngineNone, words("./serve"), words("--all"), lws(Worker, 2), words("./serve"), words("--all"), false,
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			command, args := append([]string(nil), c.command...), append([]string(nil), c.args...)
			l, err := Launch(c.engine, Spec{Command: c.command, Args: c.args, GPUs: 8, Group: c.group})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.wantCommand, l.Command); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantArgs, l.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if l.NoProbes != c.noProbes {
				t.Errorf("probes dropped: %v", l.NoProbes)
			}
			if diff := cmp.Diff([2][]string{command, args}, [2][]string{c.command, c.args}); diff != "" {
				t.Errorf("the user's words changed:\n%s", diff)
			}
			for _, script := range l.Args {
				if _, err := commandline.Parse(script); err != nil && len(l.Args) == 1 {
					t.Errorf("no shell reads %q: %v", script, err)
				}
			}
		})
	}
}

func TestTensorRT(t *testing.T) {
	command := words("python3 -m dynamo.trtllm")
	spec := func(g Group, command, args []string) Spec {
		return Spec{Command: command, Args: args, Env: []corev1.EnvVar{{Name: "B"}, {Name: "A"}}, GPUs: 4, Group: g, SSHSecret: "mpi-ssh"}
	}
	const exports = "-x A -x B -x CUDA_VISIBLE_DEVICES -x HF_DATASETS_CACHE -x HF_ENDPOINT -x HF_HOME -x HF_TOKEN -x HOME -x HUGGING_FACE_HUB_TOKEN " +
		"-x LD_LIBRARY_PATH -x MODEL_PATH -x NCCL_DEBUG -x NCCL_IB_DISABLE -x NCCL_P2P_DISABLE -x OMPI_MCA_orte_keep_fqdn_hostnames -x PATH -x PYTHONPATH " +
		"-x TENSORRT_LLM_CACHE_DIR -x TOKENIZERS_PARALLELISM -x TRANSFORMERS_CACHE -x TRTLLM_USE_UCX_KVCACHE -x USER"
	mpirun := func(hosts, script string) string {
		return `mpirun --allow-run-as-root --oversubscribe -n 8 -H ` + hosts + ` --mca pml ob1 --mca plm_rsh_args "-p 2222 -o StrictHostKeyChecking=no -i ~/.ssh/id_rsa" ` +
			exports + ` bash -c ` + script
	}
	groveHosts := groveLeader + ",$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-svc-wkr-0.$(GROVE_HEADLESS_SERVICE)"
	lwsHosts := `$LWS_LEADER_ADDRESS,$(echo "$LWS_LEADER_ADDRESS" | sed 's/\./-1\./')`
	cases := map[string]struct {
		spec Spec
		want string // the last step
	}{
		"the leader starts a process for each GPU of the group": {
			spec(grove(Leader, 2), command, words("--model-path m")), mpirun(groveHosts, "'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m'"),
		},
		"hosts are computed in a shell under LeaderWorkerSet": {
			spec(lws(Leader, 2), command, words("--model-path m")), mpirun(lwsHosts, "'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m'"),
		},
		"quotes in an argument survive two shells": {
			spec(grove(Leader, 2), command, []string{"--cfg", `it's {"a": 1}`}), mpirun(groveHosts, `'trtllm-llmapi-launch python3 -m dynamo.trtllm --cfg '\''it'\''\'\'''\''s {"a": 1}'\'''`),
		},
		"a script's preparations are not launched": {
			spec(grove(Leader, 2), Shell(), []string{"cd /w && A=1 /opt/bin/python3 -m dynamo.trtllm"}), mpirun(groveHosts, "'cd /w && A=1 trtllm-llmapi-launch /opt/bin/python3 -m dynamo.trtllm'"),
		},
		"another script of Python is a preparation": {
			spec(grove(Leader, 2), Shell(), []string{"python3 /scripts/patch.py\nexec python3 -m dynamo.trtllm"}), mpirun(groveHosts, "'python3 /scripts/patch.py\nexec trtllm-llmapi-launch python3 -m dynamo.trtllm'"),
		},
		"a comment is none of the launch": {
			spec(grove(Leader, 2), Shell(), []string{"# python3 starts it\nexec python3 -m dynamo.trtllm"}), mpirun(groveHosts, "'# python3 starts it\nexec trtllm-llmapi-launch python3 -m dynamo.trtllm'"),
		},
		"a launch may be written over two lines": {
			spec(grove(Leader, 2), Shell(), []string{"exec \\\npython3 -m \\\n  dynamo.trtllm"}), mpirun(groveHosts, "'exec \\\ntrtllm-llmapi-launch python3 -m \\\n  dynamo.trtllm'"),
		},
		"a variable of the engine's stays before the launch": {
			spec(grove(Leader, 2), Shell(), []string{"PYTHONHOME=/opt/python3 python3 -m dynamo.trtllm"}), mpirun(groveHosts, "'PYTHONHOME=/opt/python3 trtllm-llmapi-launch python3 -m dynamo.trtllm'"),
		},
		"in the script of a second shell too, the engine is launched": {
			spec(grove(Leader, 2), Shell(), []string{"python3 patch.py\nbash -c \"/opt/bin/python3 -m dynamo.trtllm\""}), mpirun(groveHosts, `'python3 patch.py`+"\n"+`bash -c "trtllm-llmapi-launch /opt/bin/python3 -m dynamo.trtllm"'`),
		},
		"arguments without a command are the script": {
			spec(grove(Leader, 2), Shell(), words("python3 -m dynamo.trtllm --model-path m")), mpirun(groveHosts, "'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m'"),
		},
		"another program before the engine is kept": {
			spec(grove(Leader, 2), words("numactl -N0"), words("python3 -m dynamo.trtllm")), mpirun(groveHosts, "'trtllm-llmapi-launch numactl -N0 python3 -m dynamo.trtllm'"),
		},
		"a worker is an SSH server": {
			spec(lws(Worker, 2), command, nil), "/usr/sbin/sshd -D -f ~/.ssh/sshd_config",
		},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			l, err := Launch(graph.EngineTRTLLM, c.spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Shell(), l.Command); diff != "" || len(l.Args) != 1 {
				t.Fatalf("command %v, %d args", l.Command, len(l.Args))
			}
			if !strings.HasSuffix(l.Args[0], " && "+c.want) {
				t.Errorf("the script\n%s\ndoes not end with\n%s", l.Args[0], c.want)
			}
			if !strings.HasPrefix(l.Args[0], "mkdir -p ~/.ssh") {
				t.Errorf("the script does not begin with a place for keys: %s", l.Args[0])
			}
			if _, err := commandline.Parse(l.Args[0]); err != nil {
				t.Errorf("no shell reads the script: %v", err)
			}
			if waits := strings.Contains(l.Args[0], "getent hosts"); waits != (c.spec.Group.Addresses.Resolve && c.spec.Group.Position == Leader) {
				t.Errorf("waits for names: %v", waits)
			}
			worker := c.spec.Group.Position == Worker
			if l.NoProbes != worker || (l.Readiness != nil) != worker {
				t.Errorf("probes dropped %v, readiness %v", l.NoProbes, l.Readiness)
			}
			if l.Volumes[0].Secret.SecretName != "mpi-ssh" || l.Mounts[0].MountPath != "/ssh-pk" {
				t.Errorf("key: %+v at %+v", l.Volumes, l.Mounts)
			}
		})
	}
}

func TestWhatCannotBeLaunchedIsSaid(t *testing.T) {
	cases := map[string]struct {
		engine graph.Engine
		gpus   int
		args   string
		group  Group
		says   string
	}{
		"TensorRT-LLM has to know the GPUs of a node": {graph.EngineTRTLLM, 0, "python3 -m dynamo.trtllm", lws(Leader, 2), "resources.limits.gpu"},
		"a size is a number":                          {graph.EngineVLLM, 8, "python3 -m dynamo.vllm --tensor-parallel-size abc", lws(Leader, 2), `"abc"`},
		"a size is a number on one node too":          {graph.EngineVLLM, 8, "python3 -m dynamo.vllm --tensor-parallel-size abc", Group{Nodes: 1}, `"abc"`},
		"a size is positive":                          {graph.EngineVLLM, 8, "python3 -m dynamo.vllm -dp -2", lws(Leader, 2), `"-2"`},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			_, err := Launch(c.engine, Spec{Command: Shell(), Args: []string{c.args}, GPUs: c.gpus, Group: c.group})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not name %s", err, c.says)
			}
		})
	}
}

func TestSizesMayBeVariables(t *testing.T) {
	literal, secret := []corev1.EnvVar{{Name: "TP", Value: "16"}}, []corev1.EnvVar{{Name: "TP", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "tp"}}}}
	cases := map[string]struct {
		size  string
		env   []corev1.EnvVar
		known bool
	}{
		"of the shell":                            {"$TP", literal, true},
		"of the shell, in braces":                 {"${TP}", literal, true},
		"of the shell, in quotes":                 {`"${TP}"`, literal, true},
		"of the kubelet":                          {"$(TP)", literal, true},
		"of a Secret, which only the pod knows":   {"$TP", secret, false},
		"of nobody knows whom":                    {"$TP", nil, false},
		"of another name":                         {"$TPS", literal, false},
		"of a value that is no number":            {"$TP", []corev1.EnvVar{{Name: "TP", Value: "all"}}, false},
		"of something that only a shell computes": {"${TP:-16}", literal, false},
		"of a command":                            {"`nproc`", nil, false},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			script := []string{"python3 -m dynamo.vllm --tensor-parallel-size " + c.size}
			l, err := Launch(graph.EngineVLLM, Spec{Command: Shell(), Args: script, Env: c.env, GPUs: 8, Group: lws(Worker, 2)})
			if err != nil {
				t.Fatal(err)
			}
			want, unknown := script, []string{"--tensor-parallel-size " + c.size}
			if c.known {
				want, unknown = []string{"ray start --address=$LWS_LEADER_ADDRESS:6379 --block"}, nil
			}
			if diff := cmp.Diff(want, l.Args); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(unknown, l.Unknown); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPythonIsRecognised(t *testing.T) {
	for command, want := range map[string]bool{
		"python": true, "python3": true, "python2.7": true, "python3.12.1": true, "/usr/bin/python3.8": true, "./python3": true,
		"python-config": false, "pythonx": false, "python/": false, "sh": false,
	} {
		if got := startsPython([]string{command}); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
}

func TestJoinedSaysWhetherNodesKnowOfEachOther(t *testing.T) {
	cases := map[string]struct {
		engine graph.Engine
		gpus   int
		line   string
		want   bool
	}{
		"flags were added":                     {graph.EngineSGLang, 8, "python3 -m dynamo.sglang", true},
		"a wrapper hides the engine":           {graph.EngineSGLang, 8, "./serve.sh", false},
		"the model fits on one node":           {graph.EngineVLLM, 8, "python3 -m dynamo.vllm", false},
		"without GPUs nothing says what fits":  {graph.EngineVLLM, 0, "python3 -m dynamo.vllm -tp 16", false},
		"Ray joins nodes whatever they launch": {graph.EngineVLLM, 8, "./serve.sh -tp 16", true},
		"so does MPI":                          {graph.EngineTRTLLM, 8, "./serve.sh", true},
	}
	for rule, c := range cases {
		t.Run(rule, func(t *testing.T) {
			l, err := Launch(c.engine, Spec{Command: Shell(), Args: []string{c.line}, GPUs: c.gpus, Group: lws(Leader, 2)})
			if err != nil || l.Joined != c.want {
				t.Errorf("joined %v, %v", l.Joined, err)
			}
		})
	}
}
