package status

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
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
	if step.Info != nil {
		s.DeploymentInfo = step.Info.DeepCopy()
	}
	s.ProfilingPhase, s.ProfilingJobName = cmp.Or(step.Phase, s.ProfilingPhase), cmp.Or(step.JobName, s.ProfilingJobName)
	for _, f := range step.Findings {
		setCondition(&s.Conditions, f.Type, condition{f.OK, f.Reason, f.Message}, s.ObservedGeneration, now)
	}
	if s.State != v1alpha1.RequestStateInitial {
		setCondition(&s.Conditions, v1alpha1.ConditionSucceeded, succeeded(s), s.ObservedGeneration, now)
	}
	return s
}

// work are the conditions of a request in the order of its work.
var work = []string{v1alpha1.ConditionValidation, v1alpha1.ConditionProfiling, v1alpha1.ConditionSpecGenerated, v1alpha1.ConditionDeploymentReady}

// succeeded sums up the others: it is true once there is what was asked for, and
// until then says what is missing, in the words of the condition that does.
func succeeded(s v1alpha1.DynamoGraphDeploymentRequestStatus) condition {
	last := condition{reason: string(s.State)}
	for _, kind := range work {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil {
			break
		}
		if c.Status != metav1.ConditionTrue && s.State != v1alpha1.RequestStateReady {
			return condition{reason: c.Reason, message: c.Message}
		}
		if c.Status == metav1.ConditionTrue && kind != v1alpha1.ConditionValidation {
			last.reason, last.message = c.Reason, c.Message
		}
	}
	last.ok = s.State == v1alpha1.RequestStateReady
	return last
}
