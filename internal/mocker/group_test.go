package mocker

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// pod is one container with an address of its own.
type pod struct {
	t     *testing.T
	host  string
	ended chan int
	stop  context.CancelFunc

	mu  sync.Mutex
	log bytes.Buffer
}

func (p *pod) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *pod) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

const systemPort = 9090

// hosts are the addresses of this process: the ports on them are well known, and
// others may run the same tests. Local clusters have those from 127.16 on.
var hosts = fmt.Sprintf("127.%d.%d", 1+os.Getpid()%15, os.Getpid()/15%256)

// start runs a script as pod i would.
func start(t *testing.T, i int, script string, env podenv.Env) *pod {
	t.Helper()
	p := &pod{t: t, host: strings.ReplaceAll(fmt.Sprintf("HOST.%d", i), "HOST", hosts), ended: make(chan int, 1)}
	all := podenv.Env{
		"DYNAMO_LISTEN_HOST": p.host, "DYNAMO_GPUS": "1", "POD_NAME": fmt.Sprintf("pod-%d", i), "DYN_SYSTEM_PORT": fmt.Sprint(systemPort),
		"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`, "DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": t.TempDir(),
		"MOCKER_DRAIN_LINGER": "1ms", "MOCKER_RENDEZVOUS_TIMEOUT": "5m",
	}
	maps.Copy(all, env)
	script = strings.ReplaceAll(script, "HOST.", hosts+".")
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = cancel
	go func() {
		c := &container{}
		shell := launch.Shell{Run: c.run, Spread: spread, Resolves: resolves, Dial: dial, Log: quiet}
		status := shell.Exec(ctx, []string{"sh", "-c", script}, all, launch.Streams{Out: p, Err: p})
		c.close()
		p.ended <- status
	}()
	t.Cleanup(func() {
		cancel()
		if t.Failed() {
			t.Logf("pod %d:\n%s", i, p)
		}
	})
	return p
}

func (p *pod) ready() bool {
	response, err := http.Get("http://" + net.JoinHostPort(p.host, fmt.Sprint(systemPort)) + "/health")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// ends waits for a pod's exit status and wants words in its log.
func (p *pod) ends(status int, words string) {
	p.t.Helper()
	select {
	case got := <-p.ended:
		if got != status || !strings.Contains(p.String(), words) {
			p.t.Errorf("%s ended with %d, want %d and %q in\n%s", p.host, got, status, words, p)
		}
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("%s has not ended:\n%s", p.host, p)
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// engines are the ways to span two nodes: leader, follower, and what the leader
// says while it waits.
var engines = map[string]struct{ leader, follower, waits string }{
	"sglang": {
		"exec python3 -m dynamo.sglang --model-path m --tp 2 --dist-init-addr HOST.1:29500 --nnodes 2 --node-rank 0",
		"exec python3 -m dynamo.sglang --model-path m --tp 2 --dist-init-addr HOST.1:29500 --nnodes 2 --node-rank 1",
		"leading a group",
	},
	"vllm data parallel": {
		"exec python3 -m dynamo.vllm --model m --data-parallel-size 2 --data-parallel-hybrid-lb --data-parallel-size-local 1 --data-parallel-start-rank 0 --data-parallel-address HOST.1 --data-parallel-rpc-port 13445",
		"exec python3 -m dynamo.vllm --model m --data-parallel-size 2 --data-parallel-hybrid-lb --data-parallel-size-local 1 --data-parallel-start-rank 1 --data-parallel-address HOST.1 --data-parallel-rpc-port 13445",
		"leading a group",
	},
	"vllm mp": {
		"exec python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --distributed-executor-backend mp --nnodes 2 --master-addr HOST.1 --master-port 29500 --node-rank 0",
		"export LEADER_HOST=HOST.1 LEADER_PORT=29500 && python3 /scripts/wait-for-leader.py && exec python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --distributed-executor-backend mp --nnodes 2 --master-addr HOST.1 --master-port 29500 --node-rank 1 --headless",
		"leading a group",
	},
	"vllm on Ray": {
		"ray start --head --port=6379 && python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --distributed-executor-backend ray",
		"ray start --address=HOST.1:6379 --block",
		"Ray head started",
	},
	"trtllm": {
		`mpirun -n 2 -H HOST.1,HOST.2 --mca plm_rsh_args "-p 2222" bash -c 'trtllm-llmapi-launch python3 -m dynamo.trtllm --model-path m --tensor-parallel-size 2'`,
		"/usr/sbin/sshd -D",
		"reach host HOST.2",
	},
}

func TestALeaderServesOnlyAWholeGroup(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			leader := start(t, 1, engine.leader, nil)
			until(t, "the leader waits", func() bool { return strings.Contains(leader.String(), strings.ReplaceAll(engine.waits, "HOST", hosts)) })
			if leader.ready() {
				t.Fatal("the leader is ready without its follower")
			}
			follower := start(t, 2, engine.follower, nil)
			until(t, "the leader is ready", leader.ready)
			follower.stop()
			follower.ends(0, "")
			leader.ends(1, "lost")
		})
	}
}

func TestAGroupThatIsStoppedDrains(t *testing.T) {
	for name, engine := range engines {
		t.Run(name, func(t *testing.T) {
			leader, follower := start(t, 1, engine.leader, nil), start(t, 2, engine.follower, nil)
			until(t, "the leader is ready", leader.ready)
			follower.stop()
			leader.stop()
			follower.ends(0, "")
			leader.ends(0, "drained")
		})
	}
}

func TestAWrongNodeEndsItself(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		status int
		says   string
	}{
		"sglang rank out of range":         {"exec python3 -m dynamo.sglang --model-path m --tp 2 --dist-init-addr HOST.1:29500 --nnodes 2 --node-rank 2", 2, "rank 2 out of range"},
		"sglang leader that is not there":  {"exec python3 -m dynamo.sglang --model-path m --tp 2 --dist-init-addr HOST.1:29500 --nnodes 2 --node-rank 1", 1, "reach the leader HOST.1:29500: not within 2s"},
		"vllm mp rank out of range":        {"exec python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --nnodes 2 --master-addr HOST.1 --master-port 29500 --node-rank 2 --headless", 2, "rank 2 out of range"},
		"vllm mp master that is not there": {"exec python3 -m dynamo.vllm --model m --tensor-parallel-size 2 --nnodes 2 --master-addr HOST.1 --master-port 29500 --node-rank 1 --headless", 1, "reach the leader HOST.1:29500: not within 2s"},
		"a wait for a leader that is not":  {"LEADER_HOST=HOST.1 LEADER_PORT=29500 python3 /scripts/wait-for-leader.py", 1, "reach the leader HOST.1:29500: not within 2s"},
		"a wait for nobody":                {"python3 /scripts/wait-for-leader.py", 1, "has no host that could be resolved"},
		"a sidecar without its engine":     {"dynamo-vllm-sidecar --vllm-endpoint 127.0.0.1:50051", 1, "reach the engine at 127.0.0.1:50051: not within 2s"},
		"a sidecar that names no engine":   {"dynamo-vllm-sidecar", 2, "names the engine"},
		"ray head that is not there":       {"ray start --address=HOST.1:6379 --block", 1, "reach the leader HOST.1:6379: not within 2s"},
		"ray without enough GPUs":          {"python3 -m dynamo.vllm --tensor-parallel-size 2 --distributed-executor-backend ray", 1, "the engine needs 2 GPUs, this node has 1 and no Ray cluster was started"},
		"mpirun with the wrong number":     {"mpirun -n 3 -H HOST.1,HOST.2 python3 -m dynamo.trtllm", 1, "3 processes asked for, but 2 hosts with 1 GPUs each make 2"},
		"mpirun without its host":          {"mpirun -n 2 -H HOST.2,HOST.1 python3 -m dynamo.trtllm", 1, "reach host HOST.1: not within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			start(t, 2, c.script, podenv.Env{"MOCKER_RENDEZVOUS_TIMEOUT": "2s"}).ends(c.status, strings.ReplaceAll(c.says, "HOST", hosts))
		})
	}
}

// Sizes that differ are refused by the leader, and the follower says so.
func TestVLLMNodesMustAgree(t *testing.T) {
	const node = "exec python3 -m dynamo.vllm --model m --tensor-parallel-size %d --nnodes %d --master-addr HOST.1 --master-port 29500 --node-rank %s"
	start(t, 1, fmt.Sprintf(node, 4, 2, "0"), podenv.Env{"DYNAMO_GPUS": "4"})
	start(t, 2, fmt.Sprintf(node, 6, 3, "1 --headless"), podenv.Env{"DYNAMO_GPUS": "4"}).ends(1, "counts 3 ranks in the group, the leader 2")
	start(t, 3, fmt.Sprintf(node, 8, 2, "1 --headless"), podenv.Env{"DYNAMO_GPUS": "4"}).ends(1, "tensor parallelism 8")
}

// A sidecar takes its engine's place in the graph: what it registers is the
// engine's, and it ends with it.
func TestASidecarIsTheWorkerOfItsEngine(t *testing.T) {
	for name, c := range map[string]struct{ engine, sidecar, registers string }{
		"sglang": {
			"exec python3 -m sglang.launch_server --model-path org/m --host 0.0.0.0 --port 30000 --grpc-port 30001 --disaggregation-mode prefill",
			"exec dynamo-sglang-sidecar --sglang-endpoint 127.0.0.1:30001", "model=org/m role=prefill",
		},
		"vllm, whose program is found by Python": {
			`exec "$(python3 -c 'import os,vllm; print(os.path.join(os.path.dirname(vllm.__file__), "vllm-rs"))')" serve org/m --host 127.0.0.1 --grpc-port 50051`,
			"exec dynamo-vllm-sidecar --vllm-endpoint 127.0.0.1:50051", "model=org/m role=aggregated",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sidecar := start(t, 1, c.sidecar, nil)
			until(t, "the sidecar waits", func() bool { return strings.Contains(sidecar.String(), "waiting for the engine") })
			engine := start(t, 1, c.engine, nil)
			until(t, "the sidecar serves", sidecar.ready)
			if !strings.Contains(sidecar.String(), c.registers) {
				t.Errorf("no %q in\n%s", c.registers, sidecar)
			}
			engine.stop()
			engine.ends(0, "")
			sidecar.ends(1, "lost the engine")
		})
	}
}

func TestCodeOnACommandLineAsksThePod(t *testing.T) {
	const (
		port   = `python3 -c "import socket; socket.create_connection(('127.0.0.1', 50051), 2).close()"`
		health = `python3 -c "import grpc; grpc.insecure_channel('127.0.0.1:50051').unary_unary('/x')(b'')"`
		page   = `python3 -c "import urllib.request; urllib.request.urlopen('http://HOST.1:9090/live', timeout=5)"`
	)
	for _, script := range []string{port, health, page} {
		start(t, 1, script, nil).ends(1, "python: ")
	}
	engine := start(t, 1, "exec vllm serve org/m --grpc-port 50051", nil)
	start(t, 1, "until "+port+" 2>/dev/null; do sleep 0.01; done", nil).ends(0, "")
	start(t, 1, health, nil).ends(0, "")
	planner := start(t, 1, "exec python3 -m dynamo.planner --config '{}'", nil)
	start(t, 2, "until "+page+" 2>/dev/null; do sleep 0.01; done", nil).ends(0, "")
	for _, p := range []*pod{engine, planner} {
		p.stop()
		p.ends(0, "")
	}
}
