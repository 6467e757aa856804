package v1alpha1

// Labels on the objects the operator makes, and on pods in particular.
const (
	// LabelSelector holds the name of the component object a pod belongs to.
	LabelSelector = "nvidia.com/selector"
	// LabelGraphName holds the name of the DynamoGraphDeployment.
	LabelGraphName = "nvidia.com/dynamo-graph-deployment-name"
	// LabelGraphUID holds the uid of the DynamoGraphDeployment that a claim was
	// created for. Claims have no owner reference: the garbage collector would delete
	// them before the operator can see whether they are to be retained.
	LabelGraphUID = "nvidia.com/dynamo-graph-deployment-uid"
	// LabelComponent holds the service's key, in its original case.
	LabelComponent = "nvidia.com/dynamo-component"
	// LabelDynamoNamespace holds the namespace in which workers find each other.
	LabelDynamoNamespace = "nvidia.com/dynamo-namespace"
	// LabelComponentType holds componentType.
	LabelComponentType = "nvidia.com/dynamo-component-type"
	// LabelSubComponentType holds subComponentType.
	LabelSubComponentType = "nvidia.com/dynamo-sub-component-type"
	// LabelBaseModelHash holds a hash of the base model a pod serves; model names
	// do not fit a label value.
	LabelBaseModelHash = "nvidia.com/dynamo-base-model-hash"
	// LabelMetricsEnabled is "true" on pods whose metrics are to be scraped.
	LabelMetricsEnabled = "nvidia.com/metrics-enabled"
	// LabelDiscoveryBackend names how workers find each other, on Services.
	LabelDiscoveryBackend = "nvidia.com/dynamo-discovery-backend"
	// LabelDiscoveryEnabled is "true" on Services that workers are found by.
	LabelDiscoveryEnabled = "nvidia.com/dynamo-discovery-enabled"
	// LabelComponentPod is "true" on a ServiceAccount that component pods use in
	// place of "default".
	LabelComponentPod = "nvidia.com/dynamo-component-pod"
	// LabelManagedBy is ManagedBy on objects that have no owner in common.
	LabelManagedBy = "nvidia.com/managed-by"
	// LabelKaiQueue names the queue of a pod clique for the KAI scheduler.
	LabelKaiQueue = "kai.scheduler/queue"
	// LabelGroupRole is "leader" or "worker" on pods of a group of nodes.
	LabelGroupRole = "role"
	// LabelGroupInstance is the index of the group a pod belongs to.
	LabelGroupInstance = "instance-id"
	// LabelRequestName and LabelRequestNamespace lead from a graph and its
	// ConfigMaps back to the request that generated them.
	LabelRequestName      = "dgdr.nvidia.com/name"
	LabelRequestNamespace = "dgdr.nvidia.com/namespace"
	// LabelProfilingApp is ProfilingApp or ProfilingAppOffline on profiling jobs.
	LabelProfilingApp = "app"
	// LabelProfilingRequest holds the name of the request on profiling jobs.
	LabelProfilingRequest = "dgdr"
	// LabelComponentClass is ComponentClassWorker on workers of graphs with an
	// endpoint picker, whose pool selects by it.
	LabelComponentClass = "nvidia.com/dynamo-component-class"
	// LabelGeneration holds the id of the generation of workers that an object
	// belongs to.
	LabelGeneration = "nvidia.com/dynamo-worker-hash"
	// LabelTopologyPrefix stands before the level of a topology in the label of a pod
	// that holds its place.
	LabelTopologyPrefix = "nvidia.com/dynamo-topology."
	// LabelEngineGroup is "true" on engines of which one in another pod stands by for
	// the others.
	LabelEngineGroup = "nvidia.com/dynamo-failover-engine-group-member"
)

// Values of labels.
const (
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "dynamo-operator"
	// ProfilingApp marks a job that deploys graphs to measure them.
	ProfilingApp = "dynamo-profiler"
	// ProfilingAppOffline marks a job that estimates without deploying.
	ProfilingAppOffline = "aic-profiler"
	// RoleLeader and RoleWorker are the values of LabelGroupRole.
	RoleLeader = "leader"
	RoleWorker = "worker"
	// ComponentClassWorker is the value of LabelComponentClass.
	ComponentClassWorker = "worker"
)

// Annotations a user puts on a DynamoGraphDeployment.
const (
	// AnnotationEnableGrove set to "false" in any case keeps a graph off Grove.
	AnnotationEnableGrove = "nvidia.com/enable-grove"
	// AnnotationKaiQueue chooses the queue of the KAI scheduler; it must exist.
	AnnotationKaiQueue = "nvidia.com/kai-scheduler-queue"
	// AnnotationRetainPVCs set to "true" keeps created claims when the graph is
	// deleted.
	AnnotationRetainPVCs = "nvidia.com/retain-pvcs"
	// AnnotationGroveUpdateStrategy is how Grove replaces pods: RollingRecreate or
	// OnDelete.
	AnnotationGroveUpdateStrategy = "nvidia.com/grove-update-strategy"
	// AnnotationVolcanoQueue is the queue of the Volcano scheduler, which nothing is
	// given here.
	AnnotationVolcanoQueue = "nvidia.com/volcano-queue"
	// AnnotationDiscoveryMode is what registers: one of the DiscoveryMode values.
	AnnotationDiscoveryMode = "nvidia.com/dynamo-kube-discovery-mode"
	// AnnotationVLLMExecutor is how the nodes of a vLLM group are joined, mp or
	// ray; also in the metadata of a pod template.
	AnnotationVLLMExecutor = "nvidia.com/vllm-distributed-executor-backend"
)

// Annotations on a DynamoGraphDeployment that say how its workers are rolled out.
const (
	// AnnotationRolloutSteps are the shares of the entry replicas to stop at, each
	// with a time or hold, as in "1 5m, 25% 10m, 50% hold".
	AnnotationRolloutSteps = "nvidia.com/rollout-steps"
	// AnnotationRolloutSLO is what a candidate has to meet, as in
	// "errors<1%, ttft-p95<2s, itl-p95<60ms".
	AnnotationRolloutSLO = "nvidia.com/rollout-slo"
	// AnnotationRolloutAnalysis is guard, required or off.
	AnnotationRolloutAnalysis = "nvidia.com/rollout-analysis"
	// AnnotationRolloutOnFailure is abort or hold.
	AnnotationRolloutOnFailure = "nvidia.com/rollout-on-failure"
	// AnnotationRolloutIsolation is auto, shared, paired or none. What the frontends of
	// all generations of a paired graph are reached by has it too.
	AnnotationRolloutIsolation = "nvidia.com/rollout-isolation"
	// AnnotationRolloutPaused set to "true" stops growing and draining.
	AnnotationRolloutPaused = "nvidia.com/rollout-paused"
	// AnnotationRolloutPromote is <generation>/<step> or <generation>/all. It and the
	// two below name a generation, so that one left behind never hits a later one.
	AnnotationRolloutPromote = "nvidia.com/rollout-promote"
	AnnotationRolloutAbort   = "nvidia.com/rollout-abort"
	AnnotationRolloutRetry   = "nvidia.com/rollout-retry"
	// AnnotationDisruptionBudget is true or false: whether evictions of pods leave the
	// replicas that a rollout has to. Without it the operator's configuration says so.
	AnnotationDisruptionBudget = "nvidia.com/disruption-budget"
)

// IsolationPaired is the value of AnnotationRolloutIsolation by which each generation of
// workers has frontends of its own.
const IsolationPaired = "paired"

// Annotations on a DynamoGraphDeployment that say how it is scaled. They are not copied
// to pods.
const (
	// AnnotationPlanner set to PlannerNative runs dynamo-planner in place of the image
	// of planner services.
	AnnotationPlanner = "nvidia.com/planner"
	// AnnotationGPUBudget is the most GPUs that the pods of a graph have together.
	AnnotationGPUBudget = "nvidia.com/gpu-budget"
	// AnnotationScalingPriority orders graphs of one namespace whose pods have the same
	// priority when GPUs are short: the higher number comes first, and none is 0.
	AnnotationScalingPriority = "nvidia.com/scaling-priority"
	// AnnotationScalePlan is where a planner writes its last decision, as JSON.
	AnnotationScalePlan = "nvidia.com/scale-plan"
	// AnnotationScaleToZeroAfter is how long a graph has to be without a request before
	// its workers end, as in 15m. They come back with the next request.
	AnnotationScaleToZeroAfter = "nvidia.com/scale-to-zero-after"
	// AnnotationActivationTimeout is how long such a request is held at most, as in 10m.
	AnnotationActivationTimeout = "nvidia.com/activation-timeout"
)

// Annotations of the Lease by which a graph that scales to zero is woken. Its renewTime
// is when the last request came. Activators write that, models and seconds, the operator
// what is declared, and who wakes a graph by hand renewTime.
const (
	// AnnotationActivationDeclared are the models that arguments of the graph's workers
	// name, as a JSON list: a graph that was changed while it slept has not served them.
	AnnotationActivationDeclared = "nvidia.com/activation-declared-models"
	// AnnotationActivationModels are the models that the graph last served, as a JSON list.
	AnnotationActivationModels = "nvidia.com/activation-models"
	// AnnotationActivationSeconds is how long requests were held when it last woke.
	AnnotationActivationSeconds = "nvidia.com/activation-seconds"
)

// PlannerNative is the value of AnnotationPlanner.
const PlannerNative = "native"

// Annotations of a graph's ControllerRevisions.
const (
	// AnnotationRolloutResult is what became of a revision: completed, aborted or
	// superseded.
	AnnotationRolloutResult = "nvidia.com/rollout-result"
	// AnnotationRolloutRecord is what its rollout was like, as JSON.
	AnnotationRolloutRecord = "nvidia.com/rollout-record"
	// AnnotationChangeCause is kubectl's, on a graph too: why its spec was changed.
	AnnotationChangeCause = "kubernetes.io/change-cause"
)

// Values of AnnotationDiscoveryMode.
const (
	DiscoveryModePod       = "pod"
	DiscoveryModeContainer = "container"
)

// Annotations that keep, in one version of the API, what it cannot say of an
// object of the other. The keys and the envelope are the original's.
const (
	AnnotationGraphPayload     = "nvidia.com/dgd-spec"
	AnnotationComponentPayload = "nvidia.com/dcd-spec"
	AnnotationRequestPayload   = "nvidia.com/dgdr-spec"
)

// AnnotationWrittenAs is the version that an object was last written as, where
// that is not the version it is shown in.
const AnnotationWrittenAs = "nvidia.com/written-as"

// AnnotationProfilingDeadline on a request is how long profiling may take, as in
// 30m or 2h; the operator's configuration says how long it is without.
const AnnotationProfilingDeadline = "dgdr.nvidia.com/profiling-deadline"

// AnnotationAllowRequestsFrom on a ServiceAccount lists, separated by commas, the
// other namespaces whose requests may have graphs made beside it. They are made
// only as far as that account could make them itself.
const AnnotationAllowRequestsFrom = "nvidia.com/allow-graph-requests-from"

// Annotations a user puts on a DynamoGraphDeployment or in the annotations of a
// component's spec.
const (
	// AnnotationDiscoveryBackend chooses how workers find each other: one of the
	// DiscoveryBackend values.
	AnnotationDiscoveryBackend = "nvidia.com/dynamo-discovery-backend"
	// AnnotationEnableMetrics set to "false" drops LabelMetricsEnabled.
	AnnotationEnableMetrics = "nvidia.com/enable-metrics"
)

// Values of AnnotationDiscoveryBackend.
const (
	DiscoveryBackendKubernetes = "kubernetes"
	DiscoveryBackendEtcd       = "etcd"
)

// Annotations a user puts into the annotations of a service.
const (
	// AnnotationDisableImagePullSecretDiscovery set to "true" stops the operator
	// from looking for pull secrets that match the service's images.
	AnnotationDisableImagePullSecretDiscovery = "nvidia.com/disable-image-pull-secret-discovery"
	// AnnotationStartAfter lists, separated by commas, the services of the same graph
	// that must be ready before this one is first started.
	AnnotationStartAfter = "nvidia.com/start-after"
	// AnnotationDeploymentStrategy is RollingUpdate (the default) or Recreate.
	AnnotationDeploymentStrategy = "nvidia.com/deployment-strategy"
	// AnnotationMaxSurge and AnnotationMaxUnavailable tune a rolling update.
	AnnotationMaxSurge       = "nvidia.com/deployment-rolling-update-max-surge"
	AnnotationMaxUnavailable = "nvidia.com/deployment-rolling-update-max-unavailable"
	// AnnotationMinReadySeconds is how long a new pod of a Deployment must stay
	// ready before it counts and an old one goes for it.
	AnnotationMinReadySeconds = "nvidia.com/deployment-min-ready-seconds"
)

// Annotations on services that other operators of this API honoured. They have
// no effect here: an ephemeral container debugs a running pod.
const (
	AnnotationEnableDebugMode                = "nvidia.com/enable-debug-mode"
	AnnotationEnableStealingTrafficDebugMode = "nvidia.com/enable-stealing-traffic-debug-mode"
	AnnotationDebugPodProductionTraffic      = "nvidia.com/enable-debug-pod-receive-production-traffic"
)

// Annotations the operator writes.
const (
	// AnnotationWorkloadProvider records on a graph which pathway runs it, so
	// that a later change of what the cluster offers does not move it.
	AnnotationWorkloadProvider = "nvidia.com/workload-provider"
	// AnnotationWorkloadChoice records the value of AnnotationEnableGrove that
	// the provider was chosen under: only a user's change of it moves a graph.
	AnnotationWorkloadChoice = "nvidia.com/workload-provider-choice"
	// AnnotationRuntimeContract records on a graph or a component what its runtime
	// is started by: seed or 1.x. A value that stands without
	// AnnotationRuntimeContractChoice is the user's, and stays.
	AnnotationRuntimeContract = "nvidia.com/runtime-contract"
	// AnnotationRuntimeContractChoice is a digest of what the contract was chosen
	// by: only a change of that chooses again.
	AnnotationRuntimeContractChoice = "nvidia.com/runtime-contract-choice"
	// AnnotationOriginVersion is the release of the runtime's contract that an
	// object was made under. The original's operators write theirs.
	AnnotationOriginVersion = "nvidia.com/dynamo-operator-origin-version"
	// AnnotationStoredWorkers holds on a PodCliqueSet what the workers in it were last
	// told, by service, where workers come in generations.
	AnnotationStoredWorkers = "nvidia.com/dynamo-stored-workers"
	// AnnotationGeneration holds on a graph the id of its generation of workers;
	// AnnotationEarlierGeneration is where releases before 1.4 kept it.
	AnnotationGeneration        = "nvidia.com/current-worker-hash-v2"
	AnnotationEarlierGeneration = "nvidia.com/current-worker-hash"
	// AnnotationAdoptedWorkers holds a digest of the workers of a graph whose
	// PodCliqueSet the original made, on both. While they are the same, their pods are
	// not told a generation, because the original tells pods of Grove none.
	AnnotationAdoptedWorkers = "nvidia.com/adopted-workers"
	// AnnotationAdoptedGeneration holds the metadata.generation of a graph that was taken
	// over as the original had carried it out, on the graph and, while it is of that, on
	// its components: their workloads keep the pod templates that they have.
	AnnotationAdoptedGeneration = "nvidia.com/adopted-generation"
	// AnnotationAdoptedTemplates holds on a workload that the original made which of its
	// pod templates stay as they were, each with a digest of what was wanted of it: they
	// change when that does.
	AnnotationAdoptedTemplates = "nvidia.com/adopted-templates"
	// AnnotationTopologyLabel holds on pods the label of nodes that tells their place,
	// AnnotationTopologyName the topology that knows it.
	AnnotationTopologyLabel = "nvidia.com/topology-label-key"
	AnnotationTopologyName  = "nvidia.com/topology-cluster-topology-name"
	// AnnotationClaimedGPUs says on pods that share the memory of GPUs how many they
	// claim, and of which class. Pods name a template for that, not what it says; so a
	// change of the number replaces them.
	AnnotationClaimedGPUs = "nvidia.com/claimed-gpus"
	// AnnotationMeshInject is Istio's: "false" keeps a pod out of the mesh.
	AnnotationMeshInject = "sidecar.istio.io/inject"
	// AnnotationRestartAt holds the id of the last restart on a pod template.
	AnnotationRestartAt = "nvidia.com/restartAt"
	// AnnotationBaseModel holds the name behind LabelBaseModelHash.
	AnnotationBaseModel = "nvidia.com/dynamo-base-model"
	// AnnotationLoadedAdapters holds on a model, as JSON, the adapters that engines
	// may hold on its behalf, so that they are unloaded whatever happens between.
	AnnotationLoadedAdapters = "nvidia.com/loaded-adapters"
	// AnnotationAdditionalResources holds the objects that go with a generated
	// graph, as YAML of at most AdditionalResourcesLimit bytes.
	AnnotationAdditionalResources = "dgdr.nvidia.com/additional-resources"
	// AnnotationProfilingAttempt holds on the objects that profile for a request
	// the generation of the request that they were made for.
	AnnotationProfilingAttempt = "dgdr.nvidia.com/profiling-attempt"
	// AnnotationRequestUID holds on a graph the uid of the request that it was made
	// for: one that is made again under the same name is another.
	AnnotationRequestUID = "dgdr.nvidia.com/uid"
	// AnnotationPodGroup names the Volcano PodGroup of a pod.
	AnnotationPodGroup = "scheduling.k8s.io/group-name"
	// AnnotationLastAppliedHash and AnnotationLastAppliedGeneration are the
	// bookkeeping of earlier operators on the children they left.
	AnnotationLastAppliedHash       = "nvidia.com/last-applied-hash"
	AnnotationLastAppliedGeneration = "nvidia.com/last-applied-generation"
)

// Values of AnnotationWorkloadProvider.
const (
	WorkloadProviderComponent = "component"
	WorkloadProviderGrove     = "grove"
)

// AdditionalResourcesLimit is the most bytes AnnotationAdditionalResources may
// hold; the API server limits all annotations of an object to 256 KiB.
const AdditionalResourcesLimit = 250000

// Finalizer is on objects whose deletion has an effect outside the cluster's
// API. Earlier operators put it on every object.
const Finalizer = "nvidia.com/finalizer"
