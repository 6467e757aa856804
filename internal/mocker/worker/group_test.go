package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/rendezvous"
)

// group is what a command line says of a worker's group.
type group struct {
	Place   *rendezvous.Place
	RayGPUs int
}

func TestGroup(t *testing.T) {
	const (
		dp      = "--model m --data-parallel-size 8 --data-parallel-address l --data-parallel-rpc-port 13445 --data-parallel-size-local 4 --data-parallel-start-rank "
		mp      = "--model m --tensor-parallel-size 2 --distributed-executor-backend mp --nnodes 2 --master-addr l --master-port 29500 "
		sharded = "m with tensor parallelism 2 and pipeline parallelism 1"
		single  = "m with tensor parallelism 1 and pipeline parallelism 1"
	)
	file := filepath.Join(t.TempDir(), "agg.yaml")
	if err := os.WriteFile(file, []byte("tp_size: 2\ntrust-remote-code: true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		backend, args string
		env           podenv.Env
		want          group
		why           string
	}{
		"one node is no group":                            {backend: "sglang", args: "--model-path m --tp 8", env: podenv.Env{"DYNAMO_GPUS": "1"}},
		"sglang leader":                                   {backend: "sglang", args: "--model-path m --tp 2 --dist-init-addr l:29500 --nnodes 2 --node-rank 0", want: group{Place: &rendezvous.Place{Leader: "l:29500", Count: 1, Size: 2, Shape: sharded}}},
		"sglang follower":                                 {backend: "sglang", args: "--model-path m --tp 2 --dist-init-addr l:29500 --nnodes 2 --node-rank 1", want: group{Place: &rendezvous.Place{Leader: "l:29500", First: 1, Count: 1, Size: 2, Shape: sharded}}},
		"sglang rank beyond the nodes":                    {backend: "sglang", args: "--model-path m --tp 2 --dist-init-addr l:29500 --nnodes 2 --node-rank 2", why: "rank 2 out of range"},
		"sglang rank without nodes":                       {backend: "sglang", args: "--model-path m --dist-init-addr l:29500 --node-rank 1", why: "rank 1 out of range"},
		"sglang rank that is no number":                   {backend: "sglang", args: "--model-path m --nnodes 2 --node-rank $((X+1))", why: "--node-rank"},
		"sglang nodes without a leader":                   {backend: "sglang", args: "--model-path m --tp 2 --nnodes 2 --node-rank 1", why: `leader address "" is not host:port`},
		"sglang leader that was not expanded":             {backend: "sglang", args: "--model-path m --tp 2 --dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes 2", why: "has no host that could be resolved"},
		"sglang ranks that do not divide":                 {backend: "sglang", args: "--model-path m --tp 3 --dist-init-addr l:29500 --nnodes 2", why: "3 ranks cannot be divided by 2 nodes"},
		"sglang without tensor parallelism does not span": {backend: "sglang", args: "--model-path m --dist-init-addr l:29500 --nnodes 2", why: "1 ranks cannot be divided by 2 nodes"},
		"sglang ranks that do not fit":                    {backend: "sglang", args: "--model-path m --tp 16 --dist-init-addr l:29500 --nnodes 2", env: podenv.Env{"DYNAMO_GPUS": "4"}, why: "need 8 GPUs on each, this one has 4"},
		"sglang ranks in a file of the image":             {backend: "sglang", args: "--config /absent/agg.yaml --model-path m --dist-init-addr l:29500 --nnodes 2", want: group{Place: &rendezvous.Place{Leader: "l:29500", Count: 1, Size: 2, Shape: single}}},
		"sglang ranks in a file":                          {backend: "sglang", args: "--config " + file + " --model-path m --dist-init-addr l:29500 --nnodes 2", want: group{Place: &rendezvous.Place{Leader: "l:29500", Count: 1, Size: 2, Shape: sharded}}},
		"sglang flags go before those of a file":          {backend: "sglang", args: "--config " + file + " --tp-size 3 --model-path m --dist-init-addr l:29500 --nnodes 2", why: "3 ranks cannot be divided by 2 nodes"},
		"vllm data parallel leader":                       {backend: "vllm", args: dp + "0", want: group{Place: &rendezvous.Place{Leader: "l:13445", Count: 4, Size: 8, Shape: single}}},
		"vllm data parallel follower":                     {backend: "vllm", args: dp + "4", want: group{Place: &rendezvous.Place{Leader: "l:13445", First: 4, Count: 4, Size: 8, Shape: single}}},
		"vllm ranks beyond the group":                     {backend: "vllm", args: dp + "6", why: "ranks 6 to 9 out of range"},
		"vllm ranks that do not fit":                      {backend: "vllm", args: dp + "4 -tp 2", env: podenv.Env{"DYNAMO_GPUS": "4"}, why: "4 ranks of 2 GPUs need 8, this node has 4"},
		"vllm data parallel on one node is no group":      {backend: "vllm", args: "--model m --data-parallel-size 8"},
		"vllm on Ray claims tensor times pipeline":        {backend: "vllm", args: "--model m -tp 8 -pp 2 --distributed-executor-backend ray", want: group{RayGPUs: 16}},
		"vllm mp leader":                                  {backend: "vllm", args: mp + "--node-rank 0", want: group{Place: &rendezvous.Place{Leader: "l:29500", Count: 1, Size: 2, Shape: sharded}}},
		"vllm mp follower":                                {backend: "vllm", args: mp + "--node-rank 1 --headless", want: group{Place: &rendezvous.Place{Leader: "l:29500", First: 1, Count: 1, Size: 2, Shape: sharded}}},
		"nodes agree on a path of the container":          {backend: "vllm", args: strings.ReplaceAll(mp, "--model m", "--model /clusters/c/node-7/models/m") + "--node-rank 0", env: podenv.Env{"DYNAMO_MOUNTS": `{"/clusters/c/node-7/models":"/models"}`}, want: group{Place: &rendezvous.Place{Leader: "l:29500", Count: 1, Size: 2, Shape: "/models/" + sharded}}},
		"vllm mp by torch's variables":                    {backend: "vllm", args: "--model m -tp 2 --nnodes 2 --node-rank 0", env: podenv.Env{"MASTER_ADDR": "l", "MASTER_PORT": "29600"}, want: group{Place: &rendezvous.Place{Leader: "l:29600", Count: 1, Size: 2, Shape: sharded}}},
		"vllm mp follower that would serve":               {backend: "vllm", args: mp + "--node-rank 1", why: "node 1 does not serve and must be --headless"},
		"vllm mp leader that would not":                   {backend: "vllm", args: mp + "--node-rank 0 --headless", why: "node 0 has the engine that serves"},
		"vllm mp rank beyond the nodes":                   {backend: "vllm", args: mp + "--node-rank 2 --headless", why: "rank 2 out of range"},
		"vllm mp rank without nodes":                      {backend: "vllm", args: "--model m --node-rank 1 --headless", why: "rank 1 out of range"},
		"vllm mp rank that is no number":                  {backend: "vllm", args: mp + "--node-rank $(LWS_WORKER_INDEX)", why: "--node-rank"},
		"vllm mp leader that was not expanded":            {backend: "vllm", args: "--model m -tp 2 --nnodes 2 --node-rank 1 --headless --master-addr $(LWS_LEADER_ADDRESS)", why: "has no host that could be resolved"},
		"vllm mp ranks that do not divide":                {backend: "vllm", args: "--model m -tp 3 --nnodes 2 --node-rank 0", why: "3 ranks cannot be divided by 2 nodes"},
		"vllm mp ranks that do not fit":                   {backend: "vllm", args: "--model m -tp 16 --nnodes 2 --node-rank 0", env: podenv.Env{"DYNAMO_GPUS": "4"}, why: "need 8 GPUs on each, this one has 4"},
		"vllm on Ray has no master":                       {backend: "vllm", args: "--model m -tp 2 --nnodes 2 --node-rank 0 --distributed-executor-backend ray", why: "only the executor mp"},
		"trtllm with the ranks that MPI started":          {backend: "trtllm", args: "--model-path m --tensor-parallel-size 8", env: podenv.Env{"OMPI_COMM_WORLD_SIZE": "8"}},
		"trtllm with other ranks than MPI started":        {backend: "trtllm", args: "--model-path m --tensor-parallel-size 4", env: podenv.Env{"OMPI_COMM_WORLD_SIZE": "8"}, why: "the model has 4 ranks, MPI started 8"},
		"GPUs that are no number":                         {backend: "vllm", args: "--model m", env: podenv.Env{"DYNAMO_GPUS": "many"}, why: `DYNAMO_GPUS="many" is not a whole number`},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch.Program{Kind: launch.Worker, Name: "dynamo." + c.backend, Args: strings.Fields(c.args), Env: c.env}
			config, err := NewConfig(p, Knobs{Speedup: 1, Slowdown: 1})
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("error %v, want %q", err, c.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, group{config.Place, config.RayGPUs}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
