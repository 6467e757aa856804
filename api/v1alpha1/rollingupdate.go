package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RollingUpdateStatus is the progress of a rollout.
type RollingUpdateStatus struct {
	// phase is empty, Pending, InProgress, Completed or Failed.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// startTime of the rollout.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// endTime of the rollout.
	//
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`

	// updatedServices are those that are done.
	//
	// +optional
	// +listType=atomic
	UpdatedServices []string `json:"updatedServices,omitempty"`
}
