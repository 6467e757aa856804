package v1alpha1

// Condition types.
const (
	// ConditionReady of a graph is true when every service runs the current spec.
	ConditionReady = "Ready"

	// ConditionManaged is only there if the operator that writes it does not look
	// after the object: true if another does, false if nobody does.
	ConditionManaged = "Managed"

	// ConditionAvailable of a component is true when its workload runs the
	// current spec.
	ConditionAvailable = "Available"
	// ConditionDynamoComponentReady on a component says the same as Available, for
	// clients that know it by the name of earlier operators.
	ConditionDynamoComponentReady = "DynamoComponentReady"
	// ConditionProgressing of a component is false when its workload made no
	// progress for as long as it is given; otherwise it is absent. That of a graph
	// is false when it does not get on without a person, and its reason is the
	// stage that the graph is in.
	ConditionProgressing = "Progressing"
	// ConditionServing is true while every cell of a graph's workers has at least as
	// many replicas that serve as its rollouts may leave. It is on graphs whose workers
	// were rolled out.
	ConditionServing = "Serving"
	// ConditionValid of a component or model is false while its spec breaks a
	// rule.
	ConditionValid = "Valid"

	// ConditionEndpointsReady of a model is true when it is served everywhere its
	// base model is.
	ConditionEndpointsReady = "EndpointsReady"
	// ConditionServicesFound of a model is true when a service serves its base
	// model.
	ConditionServicesFound = "ServicesFound"

	// ConditionValidation of a request is false while its spec breaks a rule.
	ConditionValidation = "Validation"
	// ConditionProfiling of a request is true once the profiling job is done.
	ConditionProfiling = "Profiling"
	// ConditionSucceeded of a request sums up the others: it is true once there is
	// what was asked for, and until then has the reason of what is missing.
	ConditionSucceeded = "Succeeded"
	// ConditionSpecGenerated of a request is true once a graph is recommended.
	ConditionSpecGenerated = "SpecGenerated"
	// ConditionDeploymentReady of a request is true while its graph is ready.
	ConditionDeploymentReady = "DeploymentReady"
	// ConditionTargetsMet of a request is true if the recommended graph is
	// estimated to meet every latency target; the message says by how much.
	ConditionTargetsMet = "TargetsMet"

	// ConditionActive of a scaling adapter is true while it decides the replicas
	// of its service.
	ConditionActive = "Active"

	// ConditionScalingLimited of a graph is true while a budget of GPUs keeps services
	// from having the replicas that were asked for, or its planner sees no metrics and so
	// changes nothing; otherwise it is absent. That of a scaling adapter is there while a
	// budget does so to its service.
	ConditionScalingLimited = "ScalingLimited"

	// ConditionDormant of a graph is there while it scales to zero, and true while its
	// workers have ended because nobody asks for them. Scaling adapters of its workers
	// have it, too.
	ConditionDormant = "Dormant"

	// ConditionCheckpointed of a graph is there where services ask to start from
	// checkpoints; it is false while they start cold.
	ConditionCheckpointed = "Checkpointed"

	// ConditionTopologyLevelsAvailable of a graph that Grove packs into a topology is
	// true while the topology has the levels that the graph asks for.
	ConditionTopologyLevelsAvailable = "TopologyLevelsAvailable"
)

// Reasons that several kinds share.
const (
	// ReasonValidationPassed and ReasonValidationFailed tell whether the spec
	// obeys the rules.
	ReasonValidationPassed = "ValidationPassed"
	ReasonValidationFailed = "ValidationFailed"
	// ReasonColdStart means that there is no checkpoint to start from.
	ReasonColdStart = "ColdStart"
	// ReasonReconciling means the object was not looked at yet.
	ReasonReconciling = "Reconciling"
	// ReasonReconcileFailed means an error the operator retries.
	ReasonReconcileFailed = "ReconcileFailed"
	// ReasonRetriesExhausted means that an error came back so often that the
	// object is left alone until something changes.
	ReasonRetriesExhausted = "RetriesExhausted"
	// ReasonDeleting means deletion has begun.
	ReasonDeleting = "Deleting"
	// ReasonFinalizerFailed means an outside effect could not be undone.
	ReasonFinalizerFailed = "FinalizerFailed"
	// ReasonChildTerminating means a child of the same name is still being
	// deleted and is made again once it is gone.
	ReasonChildTerminating = "ChildTerminating"
	// ReasonConversionUnavailable means a child that somebody wrote as another
	// version cannot be changed until a converter answers.
	ReasonConversionUnavailable = "ConversionUnavailable"
	// ReasonRejected means the API server refuses a child as the spec asks for it.
	ReasonRejected = "Rejected"
	// ReasonImmutableField means a change was asked for that the child cannot
	// take, and that it holds what cannot be made again.
	ReasonImmutableField = "ImmutableField"
	// ReasonIngressNotAllowed means that an Ingress or VirtualService is asked for
	// that neither the operator's configuration nor an enforced policy allows.
	ReasonIngressNotAllowed = "IngressNotAllowed"
	// ReasonNotManaged means no operator looks after this namespace.
	ReasonNotManaged = "NotManaged"
	// ReasonNamespaceOperator means an operator of its own looks after this
	// namespace.
	ReasonNamespaceOperator = "NamespaceOperator"
)

// Reasons of a graph's Ready condition, beside the shared ones.
const (
	ReasonAllServicesReady = "AllServicesReady"
	ReasonServicesNotReady = "ServicesNotReady"
	// ReasonAtFloor and ReasonBelowFloor are those of Serving.
	ReasonAtFloor    = "AtFloor"
	ReasonBelowFloor = "BelowFloor"
	// ReasonBudgetExhausted is that of ScalingLimited: others hold the GPUs, or the graph
	// itself does.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonMetricsUnavailable is that of ScalingLimited where no budget is in the way: the
	// graph's planner does not see what is asked of the graph.
	ReasonMetricsUnavailable = "MetricsUnavailable"
	// ReasonIdle, ReasonWaking, ReasonActive and ReasonDormancyUnsupported are those of
	// Dormant: no request came for long enough, workers are on their way, they serve,
	// and this graph cannot scale to zero.
	ReasonIdle                = "Idle"
	ReasonWaking              = "Waking"
	ReasonActive              = "Active"
	ReasonDormancyUnsupported = "ScaleToZeroUnsupported"
	// ReasonAllTopologyLevelsAvailable and the next three are those of
	// TopologyLevelsAvailable: all levels are there, some are not, there is no such
	// topology, and Grove has not told yet.
	ReasonAllTopologyLevelsAvailable = "AllTopologyLevelsAvailable"
	ReasonTopologyLevelsUnavailable  = "TopologyLevelsUnavailable"
	ReasonTopologyDefinitionNotFound = "TopologyDefinitionNotFound"
	ReasonTopologyConditionPending   = "TopologyConditionPending"
	// ReasonRestarting means a requested restart is under way.
	ReasonRestarting = "Restarting"
	// ReasonOrchestratorUnavailable means the cluster lacks an API the graph
	// needs.
	ReasonOrchestratorUnavailable = "OrchestratorUnavailable"
	// ReasonClaimNotFound means a volume claim neither exists nor is created.
	ReasonClaimNotFound = "ClaimNotFound"
	// ReasonDeviceClaimNotFound means that a ResourceClaimTemplate or ResourceClaim
	// does not exist by which pods claim devices.
	ReasonDeviceClaimNotFound = "DeviceClaimNotFound"
	// ReasonMigrating means the graph moves to another provider of workloads and
	// is being taken down where it ran.
	ReasonMigrating = "Migrating"
	// ReasonQueueNotFound means the scheduler's queue does not exist.
	ReasonQueueNotFound = "QueueNotFound"
	// ReasonNameConflict means a child's name is taken by an object of another
	// owner.
	ReasonNameConflict = "NameConflict"
)

// Stages of a graph: reasons of its Progressing condition.
//
//	Initializing -> Deploying -> Complete -> Repairing -> Repaired
//	     any of them -> Waiting, Retrying, Restarting or Failed, and back
//	     Complete -> RollingOut, RolloutHeld, RolloutBlocked -> Complete or RolloutAborted
const (
	// StageInitializing means that nothing of it exists yet.
	StageInitializing = "Initializing"
	// StageWaiting means that somebody else has to do something first.
	StageWaiting = "Waiting"
	// StageDeploying means that its current spec is being rolled out.
	StageDeploying = "Deploying"
	// StageRestarting means that a requested restart is under way.
	StageRestarting = "Restarting"
	// StageRollingOut means that one generation of its workers replaces another.
	StageRollingOut = "RollingOut"
	// StageRolloutHeld means that such a rollout waits at a step, or for a person.
	StageRolloutHeld = "RolloutHeld"
	// StageRolloutBlocked means that it can take no step without less serving than may.
	StageRolloutBlocked = "RolloutBlocked"
	// StageRolloutAborted means that it was given up, and what ran before it serves.
	StageRolloutAborted = "RolloutAborted"
	// StageComplete means that its current spec runs in full.
	StageComplete = "Complete"
	// StageRepairing means that a spec which ran in full does so no more.
	StageRepairing = "Repairing"
	// StageRepaired means that it runs in full again.
	StageRepaired = "Repaired"
	// StageRetrying means that an error keeps the operator from going on.
	StageRetrying = "Retrying"
	// StageFailed means that it does not get on without a person.
	StageFailed = "Failed"
)

// Reasons of a component's Available condition, beside the shared ones.
const (
	ReasonDeploymentNotReady = "DeploymentNotReady"
	// ReasonRolloutStuck means a workload that made no progress for as long as
	// it is given; its old pods go on running.
	ReasonRolloutStuck                 = "RolloutStuck"
	ReasonAllLeaderWorkerSetsReady     = "AllLeaderWorkerSetsReady"
	ReasonSomeLeaderWorkerSetsNotReady = "SomeLeaderWorkerSetsNotReady"
)

// Reasons of a model's conditions, beside the shared ones.
const (
	// ReasonAllEndpointsReady means a LoRA is loaded everywhere.
	ReasonAllEndpointsReady = "AllEndpointsReady"
	// ReasonEndpointsDiscovered means a base model is served.
	ReasonEndpointsDiscovered = "EndpointsDiscovered"
	ReasonEndpointsNotReady   = "NotReady"
	ReasonNoEndpoints         = "NoEndpoints"
	ReasonServicesFound       = "ServicesFound"
	ReasonNoServicesFound     = "NoServicesFound"
	// ReasonUnloading means a model that is being deleted and whose adapter is
	// still in engines; the deletion goes on without them after a deadline.
	ReasonUnloading = "Unloading"
)

// Reasons of a request's conditions, beside the shared ones.
const (
	ReasonProfilingRunning     = "ProfilingRunning"
	ReasonProfilingCompleted   = "ProfilingCompleted"
	ReasonProfilingFailed      = "ProfilingFailed"
	ReasonProfilingJobNotMade  = "JobCreationFailed"
	ReasonSpecGenerated        = "SpecGenerated"
	ReasonSpecGenerationFailed = "GenerationFailed"
	ReasonDeploymentCreated    = "DeploymentCreated"
	ReasonDeploymentDegraded   = "DeploymentDegraded"
	ReasonDeploymentDeleted    = "DeploymentDeleted"
	ReasonTargetsMet           = "TargetsMet"
	ReasonTargetsMissed        = "TargetsMissed"
	ReasonTargetsNotEstimated  = "TargetsNotEstimated"
	// ReasonDeploymentNameTaken means a graph of that name exists already and is
	// not of this request.
	ReasonDeploymentNameTaken = "DeploymentNameTaken"
	// ReasonDeploymentRefused means the cluster does not take the graph.
	ReasonDeploymentRefused = "DeploymentRefused"
	// ReasonSpecChangeRejected means the spec was edited after profiling began;
	// the request goes on with the spec it began with.
	ReasonSpecChangeRejected = "SpecChangeRejected"
	// ReasonInputNotFound means something the request refers to does not exist.
	ReasonInputNotFound = "InputNotFound"
	// ReasonHardwareNotFound means no node tells of its GPUs.
	ReasonHardwareNotFound = "HardwareNotFound"
	// ReasonNamespaceReserved means the graph would go to a namespace in which
	// the operator makes nothing for requests of others.
	ReasonNamespaceReserved = "NamespaceReserved"
	// ReasonNamespaceNotGranted means no ServiceAccount of the graph's namespace
	// allows requests from that of the request.
	ReasonNamespaceNotGranted = "NamespaceNotGranted"
	// ReasonGrantInsufficient means the ServiceAccount that allows them may not
	// do itself what the request asks for.
	ReasonGrantInsufficient = "GrantInsufficient"
	// ReasonPolicyNotInForce means the admission policy that judges who asks for
	// graphs elsewhere is missing or does not deny.
	ReasonPolicyNotInForce = "PolicyNotInForce"
	// ReasonOutputNotProven means that what the profiler left was changed, or
	// that nothing proves it was not.
	ReasonOutputNotProven = "OutputNotProven"
	// ReasonProfilerWaiting means the profiler's pod cannot start yet.
	ReasonProfilerWaiting = "ProfilerWaiting"
	// Ways in which a profiler ends without a word of its own.
	ReasonProfilerCrashed   = "ProfilerCrashed"
	ReasonProfilerEvicted   = "ProfilerEvicted"
	ReasonProfilerOOM       = "ProfilerOutOfMemory"
	ReasonProfilingTimedOut = "DeadlineExceeded"
)

// ReasonDeploymentReady says that a component's Deployment, or a request's
// graph, is ready.
const ReasonDeploymentReady = "DeploymentReady"

// Reasons of a scaling adapter's Active condition, beside the shared ones.
const (
	ReasonScalingActive   = "ScalingActive"
	ReasonGraphNotFound   = "GraphNotFound"
	ReasonServiceNotFound = "ServiceNotFound"
	// ReasonAdapterDisabled means the service does not enable scalingAdapter.
	ReasonAdapterDisabled = "AdapterDisabled"
	// ReasonAdapterNotOwned means the service is scaled by another adapter, the
	// one the operator made for it.
	ReasonAdapterNotOwned = "AdapterNotOwned"
)
