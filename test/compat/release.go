package compat

import (
	"regexp"
	"strings"

	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// missing reports that an object of the original is not there.
func missing(theirs, ours string) bool { return theirs == whole && ours == "" }

// ourKinds are kinds of our API, which are read as v1beta1.
const ourKinds = "DynamoGraphDeployment|DynamoComponentDeployment|DynamoGraphDeploymentScalingAdapter"

// pods are the leaves of a pod template, in whatever makes pods.
const pods = `spec\.(leaderWorkerTemplate\.(leader|worker)Template|template|template\.cliques\[[^]]*\])(\.spec(\.podSpec)?)?`

// generationsUnderGrove is what counts for graphs that are made new, and not for those
// that are taken over.
const generationsUnderGrove = "Generations under Grove too"

// release lists every reason to differ from release 1.4.1 of the original.
var release = []*reason{
	// Objects that are there on one side only.
	{
		title: "SSH keys and waiting scripts only where an engine needs them",
		why:   "1.4.1 copies one SSH key and a script into every namespace with a graph that spans nodes, whatever its engine. We generate a key for each namespace, only where a TensorRT-LLM component spans nodes, and write the script only where vLLM is joined without Ray.",
		where: []where{
			{kind: "Secret", name: exactly("mpi-ssh"), leaf: object, holds: missing},
			{kind: "Secret", name: exactly("mpi-ssh"), leaf: exactly(`metadata\.labels.*`)},
			{kind: "ConfigMap", name: exactly(".*-wait-leader-script"), leaf: object, holds: missing},
		},
	},
	{
		title: "Graphs with checkpoints start cold",
		why:   "Nothing captures a running worker here. The field is accepted, pods start as without it, and a condition says why. So there is no DynamoCheckpoint, no Job that makes one, no claim to keep it on, and no component with no replicas that waits for one.",
		where: []where{
			{kind: "DynamoCheckpoint", leaf: object, holds: missing},
			{kind: "Job", leaf: object, holds: missing},
			{kind: "PersistentVolumeClaim", name: exactly("snapshot-pvc"), leaf: object, holds: missing},
			{leaf: exactly(`.*\[nvidia\.com/(dynamo-checkpoint-[a-z-]+|snapshot-target-containers)\]`)},
			{leaf: exactly(`.*experimental\.checkpoint(\..*)?`)},
			{leaf: exactly(`spec\.replicas`), holds: func(theirs, ours string) bool { return theirs == "0" && ours != "0" }},
		},
	},
	{
		title: "Routes are as the user says",
		why:   "1.4.1 drops labels and annotations that a user gives for a route, and makes no VirtualService unless the operator itself has a gateway, although the user names one.",
		where: []where{
			{kind: "Ingress|VirtualService", leaf: exactly(`metadata\.(labels|annotations).*`), holds: added},
			{kind: "VirtualService", leaf: object, holds: added},
		},
	},
	{
		title: "What 1.4.1 failed to make",
		why:   "Of some manifests 1.4.1 made only a part: a component without a type of the list, without a pod template or without an image, a probe without a handler, or a failing one stopped it before it came to the others. We make what can be made.",
		where: []where{
			{path: workload.ProviderComponent, leaf: object, holds: added},
			{path: workload.ProviderGrove, kind: "PodCliqueSet|Service|ResourceClaimTemplate|ConfigMap|DynamoGraphDeploymentScalingAdapter|Role|RoleBinding|ServiceAccount", leaf: object, holds: added},
			{leaf: exactly(`.*\.(liveness|readiness|startup)Probe\..*`), holds: added},
		},
	},
	{
		title: "A component that stands alone has all it needs",
		why:   "1.4.1 lets the pods of a lone component run under an account that nobody makes. Ours gets what a graph makes for its components, and a generation, so that its name in the runtime is made like any other.",
		where: []where{
			{leaf: exactly(`metadata\.labels\[nvidia\.com/dynamo-(component|namespace)\]`), holds: dropped},
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.name`), holds: dropped},
			{kind: "Deployment|LeaderWorkerSet|Service", leaf: exactly(`(metadata|` + pods + `\.metadata)\.labels\[nvidia\.com/dynamo-worker-hash\]`), holds: added},
			{kind: "Deployment|LeaderWorkerSet", leaf: exactly(pods + `\.containers\[main\]\.env(\[DYN_NAMESPACE_WORKER_SUFFIX\]\..*)`), holds: added},
			{kind: "Deployment|LeaderWorkerSet", leaf: exactly(pods + `\.containers\[main\]\.env\.\(order\)`), holds: without("DYN_NAMESPACE_WORKER_SUFFIX")},
			{kind: "Deployment|LeaderWorkerSet", leaf: exactly(pods + `\.metadata\.labels\[nvidia\.com/dynamo-graph-deployment-name\]`), holds: added},
		},
	},

	{
		title: "Claims have labels in place of an owner",
		why:   "1.4.1 makes the graph the owner of the claims that it creates, so that the garbage collector may delete them before anybody can retain them. Ours carry the graph's name and uid, and the graph's finalizer decides.",
		where: []where{
			{kind: "PersistentVolumeClaim", leaf: exactly(`metadata\.ownerReferences\[.*`), holds: dropped},
			{kind: "PersistentVolumeClaim", leaf: exactly(`metadata\.labels\[nvidia\.com/dynamo-graph-deployment-(name|uid)\]`), holds: added},
		},
	},

	// Generations.
	{
		title: generationsUnderGrove,
		why:   "1.4.1 keeps generations of workers apart on the component path alone; under Grove a frontend rejects new workers whose model card has changed. With us every generation has an id, which stands in a label and a variable of its pods (and so among those that MPI carries over), and whatever runs a frontend is told how the namespaces of workers begin.",
		where: []where{
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.labels\[nvidia\.com/dynamo-worker-hash\]`), holds: added},
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.env\[DYN_NAMESPACE_WORKER_SUFFIX\]\..*`), holds: added},
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.env\.\(order\)`), holds: without("DYN_NAMESPACE_WORKER_SUFFIX")},
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.env\[DYN_NAMESPACE_PREFIX\]\..*`), holds: added},
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.env\.\(order\)`), holds: without("DYN_NAMESPACE_PREFIX")},
			{path: workload.ProviderGrove, kind: "PodCliqueSet", leaf: exactly(`.*\.args\[0\]`), holds: func(theirs, ours string) bool {
				return strings.ReplaceAll(ours, " -x DYN_NAMESPACE_WORKER_SUFFIX", "") == theirs
			}},
		},
	},

	// Services.
	{
		title: "A Service selects the pods of its component, and selects some",
		why:   "1.4.1 selects by component, type and Dynamo namespace. Graphs that share a Dynamo namespace share that too, so ours adds the graph. For a component without a type 1.4.1 asks for an empty label that no pod has, so its Service selects nothing; ours leaves the type out.",
		where: []where{
			{kind: "Service", leaf: exactly(`spec\.selector\[nvidia\.com/dynamo-graph-deployment-name\]`), holds: added},
			{kind: "Service", leaf: exactly(`spec\.selector\[nvidia\.com/dynamo-component-type\]`), holds: func(theirs, ours string) bool { return theirs == `""` && ours == "" }},
		},
	},
	{
		title: "The deprecated dynamoNamespace stays without effect",
		why:   "1.4.1 lets the field into labels and selectors on the component path, but not into the variable that the runtime reads, so they disagree. Ours ignores it everywhere, as January's did; what the original made keeps its label when it is taken over.",
		where: []where{{path: workload.ProviderComponent, leaf: exactly(`.*\[nvidia\.com/dynamo-namespace\]`), holds: differs}},
	},
	{
		title: "The Service of a model belongs to all who serve it",
		why:   "As with January's: each graph of a namespace that serves a model owns its Service, and it goes with the last.",
		where: []where{{kind: "Service", name: exactly("dynamo-model-.*"), leaf: exactly(`metadata\.ownerReferences\[.*\]\.(controller|blockOwnerDeletion)`)}},
	},

	// Pods.
	{
		title: "What a user adds does not take away what probes and Services name",
		why:   "Ports that a user gives replace the operator's list in 1.4.1, while probes and Services still name what was in it; mounts that a user gives to an endpoint picker replace that of its configuration. Ours adds to them, and a port of a name that is taken takes its place.",
		where: []where{
			{leaf: exactly(`.*\.ports(\[[^]]*\])?(\..*)?`)},
			{leaf: exactly(`.*(epp-config|hf-cache|/etc/epp|/home/nonroot/\.cache).*`), holds: added},
			{leaf: exactly(`.*\.(volumes|volumeMounts)\.\(order\)`), holds: func(_, ours string) bool {
				return strings.Contains(ours, "epp-config") || strings.Contains(ours, "/etc/epp")
			}},
		},
	},
	{
		title: "A service's own fields win over mainContainer in v1alpha1",
		why:   "1.4.1 turns v1alpha1 into v1beta1 first, where mainContainer lies above the service's fields. Ours keeps the precedence that v1alpha1 was published with.",
		where: []where{{leaf: exactly(`.*containers\[main\]\.(env\[[^]]*\]\.value|resources\..*)`), holds: differs}},
	},
	{
		title: "Switches of the operator are no part of a pod",
		why:   "Annotations that say how pods are replaced, scraped or found stand on the objects that run them. On pods they would replace every pod when one changes.",
		where: []where{
			{leaf: exactly(pods + `(\.metadata)?\.annotations\[nvidia\.com/(deployment-[a-z-]+|enable-metrics|dynamo-discovery-backend|dynamo-base-model|disable-image-pull-secret-discovery)\]`), holds: dropped},
			{leaf: exactly(pods + `(\.metadata)?\.annotations`), holds: dropped},
			{path: workload.ProviderGrove, kind: "Service", leaf: exactly(`metadata\.annotations.*`)},
		},
	},
	{
		title: "Settings in DYN_DEPLOYMENT_CONFIG count under Grove too",
		why:   "1.4.1 reads the resources of a graph that was packaged from Python on the component path alone.",
		where: []where{{path: workload.ProviderGrove, leaf: exactly(`.*containers\[main\]\.resources\..*`), holds: added}},
	},

	{
		title: "A frontend beside a worker is told its options",
		why:   "1.4.1 lets arguments of a frontendSidecar take the place of `-m dynamo.frontend`, so that options alone go to the interpreter: `python3 --router-mode direct` does not start. Ours puts options that come without the module behind it.",
		where: []where{{leaf: exactly(`.*containers\[sidecar-frontend\]\.args(\[\d+\]|\..*)?`)}},
	},

	// Groups of nodes.
	{
		title: "A LeaderWorkerSet says how it is rolled out",
		why:   "1.4.1 sends an empty `rolloutStrategy.type`, which the API refuses unless a webhook mends it first. We send the API's own defaults.",
		where: []where{{kind: "LeaderWorkerSet", leaf: exactly(`spec\.rolloutStrategy\..*`)}},
	},
	{
		title: "A worker knows which ranks are its own",
		why:   "Where replicas of a vLLM model are spread over a LeaderWorkerSet, 1.4.1 multiplies in the shell what it leaves the kubelet to expand, `$(( 4 * $(LWS_WORKER_INDEX) ))`. The kubelet expands nothing within `$( )`, so the shell looks for a program of that name and the worker ends. Ours is `$((4 * LWS_WORKER_INDEX))`.",
		where: []where{{path: workload.ProviderComponent, kind: "LeaderWorkerSet", leaf: exactly(`.*workerTemplate.*\.args\[0\]`), holds: func(theirs, ours string) bool {
			return nestedIndex.MatchString(theirs) && sameWords(nestedIndex.ReplaceAllString(theirs, "$$(($1 * LWS_WORKER_INDEX))"), ours)
		}}},
	},
	{
		title: "Scripts are our own",
		why:   "How a worker waits for its leader, a leader for the names of its workers, Ray for itself, and how a server of weights begins is said in words of our own. What is launched around them is the same.",
		where: []where{
			{kind: "ConfigMap", leaf: exactly(`data\[wait-for-leader\.py\]`), holds: differs},
			{leaf: exactly(`.*\.args\[0\]`), holds: func(theirs, ours string) bool {
				return sameButForWaiting(strings.ReplaceAll(theirs, "$HOME/.ssh/config ", "~/.ssh/config "), strings.ReplaceAll(ours, "$HOME/.ssh/config ", "~/.ssh/config ")) ||
					strings.Contains(theirs, "ray start ") && strings.Contains(ours, "ray start ") || theirs == `"<script elided>"`
			}},
		},
	},
	{
		title: "Flags stand behind the engine, words in single quotes",
		why:   "In a script 1.4.1 looks for the engine's name anywhere and puts flags behind the last place that looks like it, and it quotes words so that a shell expands what is in them. Ours puts flags behind the engine's module and quotes so that nothing is expanded. The engine reads the same.",
		where: []where{{leaf: exactly(`.*\.(args|command)\[\d+\]`), holds: sameWords}},
	},
	{
		title: "Names that Grove takes",
		why:   "Grove refuses a set whose names are longer together than 45 characters. 1.4.1 shortens that of the set down to eight; where that is not enough, ours shortens those of cliques too.",
		where: []where{
			{path: workload.ProviderGrove, kind: "PodCliqueSet", manifest: longNames, leaf: exactly(`spec\.template\.(cliques|podCliqueScalingGroups).*`)},
		},
	},
	{
		title: "Pods share GPUs with each other under Grove alone",
		why:   "Without Grove nothing gives two pods the same GPU. 1.4.1 then still tells an engine to take its weights from a server that is not there; admission refuses such a graph. Ours runs the engine by itself.",
		where: []where{
			{path: workload.ProviderComponent, leaf: exactly(pods + `\.containers\[main\]\.args\[\d+\]`), holds: func(theirs, ours string) bool {
				return ours == "" && (theirs == `"--load-format"` || theirs == `"gms"`)
			}},
			{path: workload.ProviderComponent, leaf: exactly(pods + `\.containers\[main\]\.env\[DYN_VLLM_GMS_SHADOW_MODE\]\..*`), holds: dropped},
			{path: workload.ProviderComponent, leaf: exactly(pods + `\.containers\[main\]\.env\.\(order\)`), holds: func(theirs, ours string) bool {
				return without("DYN_VLLM_GMS_SHADOW_MODE")(ours, theirs)
			}},
			// The flags that are left out move those behind them.
			{path: workload.ProviderComponent, manifest: acrossNodes, kind: "LeaderWorkerSet", leaf: exactly(pods + `\.containers\[main\]\.args\[\d+\]`)},
		},
	},
	{
		title: "A worker's file with its place holds the domain that counts",
		why:   "For a policy that names a topology, 1.4.1 gives workers a file for each of its levels under Grove and none otherwise. Ours gives one, for the domain of the policy, on either path. What says so stands on the pods, not on the component.",
		where: []where{
			{leaf: exactly(`.*\.volumes\[topology-labels\]\.downwardAPI.*`)},
			{kind: "DynamoComponentDeployment", leaf: exactly(`.*annotations\[nvidia\.com/topology-(label-key|cluster-topology-name)\]`)},
		},
	},

	// What is written into our own kinds.
	{
		title: "A user's graph stays as it was written",
		why:   "1.4.1 writes defaults into the graphs of users: `replicas` and, under Grove, `minAvailable`. We apply them without writing them.",
		where: []where{{kind: "DynamoGraphDeployment", leaf: exactly(`spec\.components\[[^]]*\]\.(replicas|minAvailable)`), holds: dropped}},
	},
	{
		title: "Words of the user's own for a type",
		why:   "A type that v1beta1 has no word for makes 1.4.1 write an object that its own schema refuses. Ours leaves the type out of v1beta1 and keeps the word.",
		where: []where{{kind: ourKinds, leaf: exactly(`spec\.(components\[[^]]*\]\.)?type`), holds: dropped}},
	},
	{
		title: "A component says what its graph says, once",
		why:   "Ours carries the meaning of a component over, not the letters: what is said in two places of v1alpha1, or is a default that a component has without saying it (8Gi of shared memory, an adapter that belongs to the graph, the mount of a compilation cache), stands once or not at all.",
		where: []where{
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.(sharedMemorySize|scalingAdapter)`), holds: dropped},
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.compilationCache\.mountPath`), holds: added},
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.podTemplate\.spec\.containers\[main\]\.volumeMounts(\.\(order\)|\[.*\]\..*)`)},
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.podTemplate\.metadata\.(labels|annotations)(\[.*\]|\..*)`), holds: added},
			{kind: "DynamoComponentDeployment", leaf: exactly(`spec\.(modelRef\.revision|podTemplate\.spec\.(containers|volumes)\.\(order\))`)},
			{kind: "DynamoComponentDeployment", leaf: exactly(`metadata\.annotations\[nvidia\.com/vllm-distributed-executor-backend\]`), holds: added},
		},
	},
	{
		title: "Pods say what they claim",
		why:   "Pods that share the memory of GPUs name a template of claims, not what it asks for. Ours says that on the pods, too, so that another number of GPUs replaces them.",
		where: []where{{leaf: exactly(`.*annotations\[nvidia\.com/claimed-gpus\]`), holds: added}},
	},

	// Not decided by an operator.
	{
		title: "Zero values and defaults of an API",
		why:   "Go types of 1.4.1 write empty values into objects that pass through them, and its schemas have defaults that ours leave to the reader; empty values that a user wrote are kept with us.",
		aside: true,
		where: []where{
			{kind: "DynamoGraphDeployment", leaf: exactly(`.*eppConfig\.config\.plugins.*`)},
			{kind: ourKinds, leaf: exactly(`.*experimental\.(gpuMemoryService|failover|kvTransferPolicy)(\..*)?`)},
			{kind: "DynamoGraphDeployment", holds: func(theirs, ours string) bool {
				empty := func(s string) bool { return s == "" || s == `""` || s == "{}" || s == "[]" || s == "null" }
				return empty(theirs) && empty(ours)
			}},
			{leaf: exactly(`.*templateSpec\.metadata`), holds: dropped},
		},
	},
	{
		title: "Contents of SSH keys",
		why:   "They are secret, random, and left out of the recordings.",
		aside: true,
		where: []where{{kind: "Secret", name: exactly("mpi-ssh"), leaf: exactly(`data\[private\.key(\.pub)?\]`), holds: differs}},
	},
}

// acrossNodes is a graph whose engines are to share GPUs across pods and nodes.
const acrossNodes = "own/beta-gms-interpod.yaml"

// longNames is a graph whose names are too long for Grove.
const longNames = "recipes__deepseek-v4__deepseek-v4-pro__vllm__disagg__gb200__deploy.yaml"

// without compares two orders that differ in one name.
func without(name string) func(theirs, ours string) bool {
	return func(theirs, ours string) bool {
		return strings.Join(strings.Fields(strings.ReplaceAll(" "+ours+" ", " "+name+" ", " ")), " ") == strings.Join(strings.Fields(theirs), " ")
	}
}

// nestedIndex is a worker's index in arithmetic, as 1.4.1 writes it.
var nestedIndex = regexp.MustCompile(`\$\(\( (\d+) \* \$\(LWS_WORKER_INDEX\) \)\)`)

// sameWords compares two command lines as sets of words, quotes aside.
func sameWords(theirs, ours string) bool {
	words := func(line string) map[string]int {
		counted := map[string]int{}
		for word := range strings.FieldsSeq(strings.NewReplacer(`\n`, " ", `\`, "", `"`, "", "'", "", "{", " ", "}", " ").Replace(line)) {
			counted[word]++
		}
		return counted
	}
	a, b := words(theirs), words(ours)
	if len(a) != len(b) {
		return false
	}
	for word, n := range a {
		if b[word] != n {
			return false
		}
	}
	return true
}
