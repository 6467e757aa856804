package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
)

// Request words a step of a request. What it says nothing about stays as it was
// said.
func Request(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, now metav1.Time) v1alpha1.DynamoGraphDeploymentRequestStatus {
	s := *r.Status.DeepCopy()
	if step.Anew {
		s = v1alpha1.DynamoGraphDeploymentRequestStatus{}
	}
	s.State = step.State
	if step.Accepted {
		s.ObservedGeneration, s.Backend = r.Generation, r.Spec.Backend
	}
	if step.Begins {
		s.Accepted = step.Record.Accepted(r.Generation)
	}
	if step.Receipt != nil && s.Accepted != nil {
		s.Accepted.OutputDigests = step.Receipt
	}
	if step.Results != "" {
		s.ProfilingResults = step.Results
	}
	if step.Generated != nil {
		s.GeneratedDeployment = step.Generated.Raw()
	}
	if step.Deployment != nil {
		s.Deployment = step.Deployment.DeepCopy()
	}
	for _, f := range step.Findings {
		setCondition(&s.Conditions, f.Type, condition{f.OK, f.Reason, f.Message}, s.ObservedGeneration, now)
	}
	return s
}
