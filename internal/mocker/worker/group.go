package worker

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/rendezvous"
)

// sglangGroup reads where SGLang's node stands. The tensor and pipeline ranks
// are dealt out evenly, so they must divide by the nodes and fit on each.
func (c *Config) sglangGroup(r *launch.Settings, gpus int) {
	nodes, rank := r.Int(1, "--nnodes"), r.Int(0, "--node-rank")
	c.Follower = rank > 0
	if nodes == 1 && rank == 0 && !r.Has("--dist-init-addr") {
		return
	}
	tensor, pipeline := r.Int(1, "--tp-size", "--tp", "--tensor-parallel-size"), r.Int(1, "--pp-size", "--pp", "--pipeline-parallel-size")
	c.Place = &rendezvous.Place{
		Leader: r.Text("", "--dist-init-addr"), First: rank, Count: 1, Size: nodes,
		Shape: shape(c.SourcePath, tensor, pipeline),
	}
	if err := c.Place.Check(); err != nil {
		r.Fail(fmt.Errorf("arguments --dist-init-addr, --nnodes, --node-rank: %w", err))
	}
	switch world := tensor * pipeline; {
	case nodes < 1: // refused above
	case c.Partial && world == 1: // said in a file that is not here; taken on trust
	case world%nodes != 0:
		r.Fail(fmt.Errorf("argument --tp-size: %d ranks cannot be divided by %d nodes", world, nodes))
	case gpus > 0 && world/nodes > gpus:
		r.Fail(fmt.Errorf("argument --tp-size: %d ranks on %d nodes need %d GPUs on each, this one has %d", world, nodes, world/nodes, gpus))
	}
}

// vllmGroup reads how vLLM spans nodes: by Ray or by processes that meet at a
// master, where one replica of the model does, or by data parallelism, where
// each node has whole replicas.
func (c *Config) vllmGroup(r *launch.Settings, gpus int) {
	tensor, pipeline := r.Int(1, "--tensor-parallel-size", "-tp"), r.Int(1, "--pipeline-parallel-size", "-pp")
	if r.Text("", "--distributed-executor-backend") == "ray" {
		c.RayGPUs = tensor * pipeline
	}
	if nodes, rank := r.Int(1, "--nnodes"), r.Int(0, "--node-rank"); nodes != 1 || rank != 0 {
		c.masterGroup(r, nodes, rank, gpus)
		return
	}
	all, start := c.Engine.Ranks, r.Int(0, "--data-parallel-start-rank", "-dpr")
	local := r.Int(all, "--data-parallel-size-local", "-dpl")
	// In hybrid load balancing every node serves its local ranks only.
	c.Engine.Ranks = local
	c.Follower = start > 0 || r.Switch("--headless", false)
	if local == all && start == 0 && !r.Has("--data-parallel-address", "-dpa") {
		return
	}
	host, port := r.Text("127.0.0.1", "--data-parallel-address", "-dpa"), r.Int(29550, "--data-parallel-rpc-port", "-dpp")
	c.Place = &rendezvous.Place{
		Leader: net.JoinHostPort(host, strconv.Itoa(port)), First: start, Count: local, Size: all,
		Shape: shape(c.SourcePath, tensor, pipeline),
	}
	if err := c.Place.Check(); err != nil {
		r.Fail(fmt.Errorf("arguments --data-parallel-*: %w", err))
	}
	if need := local * tensor * pipeline; gpus > 0 && c.RayGPUs == 0 && need > gpus {
		r.Fail(fmt.Errorf("argument --data-parallel-size-local: %d ranks of %d GPUs need %d, this node has %d", local, tensor*pipeline, need, gpus))
	}
}

// The master's address by torch's own variables, and vLLM's default port.
const (
	masterHost = "127.0.0.1"
	masterPort = 29501
)

// masterGroup reads the node's place among the processes of one replica. Tensor
// and pipeline ranks are dealt out evenly; the node of rank 0 alone serves, and
// the others say that they do not.
func (c *Config) masterGroup(r *launch.Settings, nodes, rank, gpus int) {
	tensor, pipeline := r.Int(1, "--tensor-parallel-size", "-tp"), r.Int(1, "--pipeline-parallel-size", "-pp")
	host := r.Text(r.Env.String(masterHost, "MASTER_ADDR"), "--master-addr")
	c.Place = &rendezvous.Place{
		Leader: net.JoinHostPort(host, strconv.Itoa(r.Int(masterPort, "MASTER_PORT", "--master-port"))), First: rank, Count: 1, Size: nodes,
		Shape: shape(c.SourcePath, tensor, pipeline),
	}
	if err := c.Place.Check(); err != nil {
		r.Fail(fmt.Errorf("arguments --master-addr, --nnodes, --node-rank: %w", err))
	}
	c.Follower = rank > 0
	switch headless, world := r.Switch("--headless", false), tensor*pipeline; {
	case nodes < 1: // refused above
	case headless && rank == 0:
		r.Fail(fmt.Errorf("argument --headless: node 0 has the engine that serves"))
	case !headless && rank > 0:
		r.Fail(fmt.Errorf("argument --node-rank: node %d does not serve and must be --headless", rank))
	case r.Text("mp", "--distributed-executor-backend") != "mp":
		r.Fail(fmt.Errorf("argument --nnodes: only the executor mp meets at a master, not %q", r.Text("", "--distributed-executor-backend")))
	case world%nodes != 0:
		r.Fail(fmt.Errorf("argument --tensor-parallel-size: %d ranks cannot be divided by %d nodes", world, nodes))
	case gpus > 0 && world/nodes > gpus:
		r.Fail(fmt.Errorf("argument --tensor-parallel-size: %d ranks on %d nodes need %d GPUs on each, this one has %d", world, nodes, world/nodes, gpus))
	}
}

// defaultSideChannel is where NIXL's agents of vLLM shake hands.
const defaultSideChannel = 5600

// sideChannel reads the port of NIXL's handshakes, which an engine opens that
// hands its KV cache over. Two engines of a pod need one each.
func (c *Config) sideChannel(r *launch.Settings) {
	if !c.Generational || c.Follower || !strings.Contains(r.Text("", "--kv-transfer-config"), "NixlConnector") {
		return
	}
	c.SideChannel = r.Int(defaultSideChannel, "VLLM_NIXL_SIDE_CHANNEL_PORT")
}

// trtllmGroup compares the ranks of the model with those that mpirun started;
// TensorRT-LLM refuses to run with any other number. Ranks that are said in an
// engine file only are taken on trust.
func (c *Config) trtllmGroup(r *launch.Settings) {
	world := r.Int(1, "OMPI_COMM_WORLD_SIZE")
	asked := r.Int(1, "--tensor-parallel-size") * r.Int(1, "--pipeline-parallel-size")
	if world > 1 && asked > 1 && asked != world {
		r.Fail(fmt.Errorf("argument --tensor-parallel-size: the model has %d ranks, MPI started %d", asked, world))
	}
}

// shape is what the nodes of one engine must agree on.
func shape(model string, tensor, pipeline int) string {
	return fmt.Sprintf("%s with tensor parallelism %d and pipeline parallelism %d", model, tensor, pipeline)
}
