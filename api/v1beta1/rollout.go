package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutStatus is how one generation of workers replaces another, and what serves
// meanwhile.
type RolloutStatus struct {
	// revision is the number of the ControllerRevision that is rolled out.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// target is the generation to arrive at; of a rollout that was aborted, the stable
	// one.
	//
	// +optional
	Target string `json:"target,omitempty"`

	// stable is the generation that the last completed rollout arrived at.
	//
	// +optional
	Stable string `json:"stable,omitempty"`

	// phase is Starting, Shifting, Held, Blocked, Draining, Completed, Aborting or
	// Aborted.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// reason is why the rollout is held, blocked or aborted.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says what the rollout waits for, or why it was aborted.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// step is the current step and how many there are, such as 2/4; empty without
	// steps.
	//
	// +optional
	Step string `json:"step,omitempty"`

	// startedAt is when the rollout began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// progressedAt is when it last came nearer to its end.
	//
	// +optional
	ProgressedAt *metav1.Time `json:"progressedAt,omitempty"`

	// roles is what serves of each worker component, over all generations.
	//
	// +optional
	Roles map[string]RolloutRoleStatus `json:"roles,omitempty"`

	// gpus is what the workers hold.
	//
	// +optional
	GPUs *RolloutGPUs `json:"gpus,omitempty"`

	// generations that exist.
	//
	// +optional
	// +listType=map
	// +listMapKey=id
	Generations []RolloutGeneration `json:"generations,omitempty"`

	// analysis holds the target against the stable generation.
	//
	// +optional
	Analysis *RolloutAnalysis `json:"analysis,omitempty"`
}

// RolloutRoleStatus is what serves of one worker component.
type RolloutRoleStatus struct {
	// desired replicas.
	//
	// +required
	Desired int32 `json:"desired"`

	// floor is the least number of effective replicas that the rollout may leave.
	//
	// +required
	Floor int32 `json:"floor"`

	// effective replicas: those in complete generations, weighed by the share of the
	// traffic that their generation gets.
	//
	// +required
	Effective int32 `json:"effective"`

	// lowest number of effective replicas since the rollout began.
	//
	// +required
	Lowest int32 `json:"lowest"`
}

// RolloutGPUs is what the workers of a graph hold, those that start or leave too.
type RolloutGPUs struct {
	// now held.
	//
	// +required
	Now int32 `json:"now"`

	// peak since the rollout began.
	//
	// +required
	Peak int32 `json:"peak"`
}

// RolloutGeneration is one version of the workers.
type RolloutGeneration struct {
	// id of the generation, opaque; empty for objects with plain names and no id.
	//
	// +required
	ID string `json:"id"`

	// revision is the number of its ControllerRevision.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// share of the traffic that it gets, such as 20%.
	//
	// +optional
	Share string `json:"share,omitempty"`

	// roles is what exists of each worker component in this generation.
	//
	// +optional
	Roles map[string]RolloutReplicas `json:"roles,omitempty"`
}

// RolloutReplicas is what exists of one worker component in one generation.
type RolloutReplicas struct {
	// replicas that are asked for.
	//
	// +required
	Replicas int32 `json:"replicas"`

	// starting are not ready yet, or no frontend sends them requests yet.
	//
	// +optional
	Starting int32 `json:"starting,omitempty"`

	// routable are ready, and every frontend sends them requests.
	//
	// +optional
	Routable int32 `json:"routable,omitempty"`

	// leaving are shutting down.
	//
	// +optional
	Leaving int32 `json:"leaving,omitempty"`

	// failing do not come up.
	//
	// +optional
	Failing int32 `json:"failing,omitempty"`
}

// RolloutAnalysis holds the candidate against the stable generation, measured at the
// same time. Each pair is the candidate's value, then that of the stable generation.
type RolloutAnalysis struct {
	// verdict is pass, fail or inconclusive.
	//
	// +optional
	Verdict string `json:"verdict,omitempty"`

	// errors is the share of requests that failed, such as 1.2%.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	Errors []string `json:"errors,omitempty"`

	// ttftP95 is the 95th percentile of the time to the first token, such as 850ms.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	TTFTP95 []string `json:"ttftP95,omitempty"`

	// itlP95 is the 95th percentile of the time between tokens, such as 21ms.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	ITLP95 []string `json:"itlP95,omitempty"`

	// samples is how many requests of the candidate were judged.
	//
	// +optional
	Samples int64 `json:"samples,omitempty"`
}
