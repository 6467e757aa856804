// Package contract holds what differs in what we make for the runtimes in a
// graph's images: those before 1.0 (the seed's contract) and those of 1.x. It is
// data alone. Whoever renders asks for the rules of a component and follows them,
// so that a reader finds every difference in this file.
package contract

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// Rules are what one contract asks for.
type Rules struct {
	Pods    Pods
	Objects Objects
	Groups  Groups
	MPI     MPI
	Ray     Ray
}

// Pods is how pods look.
type Pods struct {
	// WorkerPorts and WorkerEnv are what workers have beside the system port.
	WorkerPorts []corev1.ContainerPort
	WorkerEnv   []corev1.EnvVar
	// PlannerSystem gives the planner a system port and a worker's probes.
	PlannerSystem bool
	// PickerDash stands before the flags by which a picker is told of its pool.
	PickerDash string
	PickerEnv  []corev1.EnvVar
	// PickerStartup is the picker's startup probe; nil for none.
	PickerStartup *corev1.Probe
	// Generations tells workers the id of their generation, and frontends and pickers
	// the prefix of the Dynamo namespaces that they look for workers in.
	Generations bool
	// MainFirst puts the main container before the user's others; the seed puts it
	// last.
	MainFirst bool
	// Discovered labels pods as to be discovered, not their Services alone.
	Discovered bool
	// OwnSharedMemory lets the operator's shared memory win over what a user mounts
	// in its place, and puts it last.
	OwnSharedMemory bool
	// Runtime says that a component's frontend sidecar, shared GPU memory and failover
	// count.
	Runtime bool
	// ClaimedGPUs counts the GPUs that a pod claims where no limit says how many.
	ClaimedGPUs bool
	// NoMesh keeps pickers out of a service mesh: gateways speak to them directly.
	NoMesh bool
}

// Objects is how the objects around pods look.
type Objects struct {
	// ReadPods lets pods of a graph read its pods.
	ReadPods bool
	// FrontendDiscovered labels the frontend's Service as to be discovered.
	FrontendDiscovered bool
	// PickerHTTP2 tells the protocol of the picker's Service on either path.
	PickerHTTP2 bool
	// PoolOfWorkers makes workers, rather than frontends, the endpoints of a picker's
	// pool: each has a frontend beside it.
	PoolOfWorkers bool
	// SetMetadata labels a PodCliqueSet with its graph, gives it the graph's own labels
	// and annotations, and Services of cliques those of their pods.
	SetMetadata bool
}

// Groups is how a component that spans nodes is run.
type Groups struct {
	// OneSet runs all replicas as one LeaderWorkerSet, without a gang scheduler; the
	// seed makes a set and a PodGroup for each.
	OneSet bool
	// WholeCliques makes all workers of a group necessary, not only one.
	WholeCliques bool
	// KubeletExpands leaves the variables of a LeaderWorkerSet to the kubelet, so
	// that no shell is needed.
	KubeletExpands bool
	// SideChannel tells each node of a vLLM group which of its addresses others send
	// caches to.
	SideChannel bool
}

// MPI is how TensorRT-LLM spans nodes.
type MPI struct {
	// Home is the home directory as a shell writes it, within a word and within
	// single quotes.
	Home, HomeQuoted string
	// Public are the files that others may read.
	Public string
	// AsRoot is the flag that lets root run mpirun.
	AsRoot string
	// SSHServer are further lines of the SSH server's configuration.
	SSHServer string
	// Exported are variables of images that reach other nodes.
	Exported []string
}

// Ray is how Ray is started for an engine that grows and shrinks.
type Ray struct {
	// Elastic starts it for --enable-elastic-ep.
	Elastic bool
}

// Of are the rules of a contract. One that nobody knows is the seed's.
func Of(c graph.Contract) *Rules {
	if c == graph.ContractV1 {
		return &v1
	}
	return &seed
}

// PortNIXL is where a worker of 1.x reports on transfers of caches.
const PortNIXL = 19090

var seed = Rules{
	Pods: Pods{
		PickerDash: "-",
		PickerEnv: []corev1.EnvVar{
			{Name: "DYN_DISCOVERY_TIMEOUT_SEC", Value: "300"},
			{Name: "DYN_KV_BLOCK_SIZE", Value: "16"},
			{Name: "RUST_LOG", Value: "debug,dynamo_llm::kv_router=trace"},
			{Name: "USE_STREAMING", Value: "true"},
		},
	},
	MPI: MPI{
		Home: "~", HomeQuoted: "~",
		Public:   "~/.ssh/id_rsa.pub ~/.ssh/authorized_keys",
		AsRoot:   "--allow-run-as-root",
		Exported: imageEnv,
	},
}

var v1 = Rules{
	Pods: Pods{
		WorkerPorts: []corev1.ContainerPort{{Name: "nixl", ContainerPort: PortNIXL, Protocol: corev1.ProtocolTCP}},
		WorkerEnv: []corev1.EnvVar{
			{Name: "DYN_FORWARDPASS_METRIC_PORT", Value: "20380"},
			{Name: "NIXL_TELEMETRY_ENABLE", Value: "n"},
			{Name: "NIXL_TELEMETRY_EXPORTER", Value: "prometheus"},
			{Name: "NIXL_TELEMETRY_PROMETHEUS_PORT", Value: "19090"},
		},
		PlannerSystem: true,
		PickerDash:    "--",
		PickerEnv: []corev1.EnvVar{
			{Name: "DYN_ENFORCE_DISAGG", Value: "false"},
			{Name: "RUST_LOG", Value: "info"},
			{Name: "USE_STREAMING", Value: "true"},
		},
		PickerStartup: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 9003, Service: new("inference-extension")}},
			PeriodSeconds: 10, FailureThreshold: 180,
		},
		Generations: true, MainFirst: true, Discovered: true, OwnSharedMemory: true, Runtime: true, ClaimedGPUs: true, NoMesh: true,
	},
	Objects: Objects{ReadPods: true, FrontendDiscovered: true, PickerHTTP2: true, PoolOfWorkers: true, SetMetadata: true},
	Groups:  Groups{OneSet: true, WholeCliques: true, KubeletExpands: true, SideChannel: true},
	MPI: MPI{
		Home: "$HOME", HomeQuoted: "'$HOME'",
		Public:    "$HOME/.ssh/id_rsa.pub",
		AsRoot:    `$([ "$(id -u)" = "0" ] && echo --allow-run-as-root)`,
		SSHServer: `StrictModes no\n`,
		Exported:  append([]string{"CPATH", "TRITON_PTXAS_PATH"}, imageEnv...),
	},
	Ray: Ray{Elastic: true},
}

var imageEnv = []string{
	"CUDA_VISIBLE_DEVICES", "HF_DATASETS_CACHE", "HF_ENDPOINT", "HF_HOME", "HF_TOKEN", "HOME",
	"HUGGING_FACE_HUB_TOKEN", "LD_LIBRARY_PATH", "MODEL_PATH", "NCCL_DEBUG", "NCCL_IB_DISABLE",
	"NCCL_P2P_DISABLE", "PATH", "PYTHONPATH", "TENSORRT_LLM_CACHE_DIR", "TOKENIZERS_PARALLELISM",
	"TRANSFORMERS_CACHE", "TRTLLM_USE_UCX_KVCACHE", "USER",
}
