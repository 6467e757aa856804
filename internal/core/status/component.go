package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/fault"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Component computes the status of a DynamoComponentDeployment from how far its
// workload is. An error of this reconcile stands in the condition and leaves the
// rest as it was last seen.
func Component(dcd *v1alpha1.DynamoComponentDeployment, p workload.Progress, err error, now metav1.Time) v1alpha1.DynamoComponentDeploymentStatus {
	s := *dcd.Status.DeepCopy()
	s.ObservedGeneration = dcd.Generation
	if p.Kind != "" {
		s.Service = replicas(p, s.Service)
	}
	v := available(p)
	if err != nil {
		v = failure(err)
	}
	if s.Service != nil {
		s.Service.Message = ""
		if !v.ok {
			s.Service.Message = v.message
		}
	}
	s.PodSelector = graph.PodSelector(dcd)
	setCondition(&s.Conditions, v1alpha1.ConditionAvailable, v, dcd.Generation, now)
	setCondition(&s.Conditions, v1alpha1.ConditionDynamoComponentReady, v, dcd.Generation, now)
	setCondition(&s.Conditions, v1alpha1.ConditionValid, valid(err), dcd.Generation, now)
	if p.Stuck && err == nil {
		setCondition(&s.Conditions, v1alpha1.ConditionProgressing, stalled(p), dcd.Generation, now)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionProgressing)
	}
	return s
}

// valid tells whether the spec obeys the rules, as far as this reconcile has looked.
func valid(err error) condition {
	if f, known := fault.From(err); known && f.Reason == v1alpha1.ReasonValidationFailed {
		return condition{false, v1alpha1.ReasonValidationFailed, f.Message}
	}
	return condition{true, v1alpha1.ReasonValidationPassed, ""}
}

func available(p workload.Progress) condition {
	reasons := map[workload.Kind][2]string{
		workload.KindDeployment:      {v1alpha1.ReasonDeploymentNotReady, v1alpha1.ReasonDeploymentReady},
		workload.KindLeaderWorkerSet: {v1alpha1.ReasonSomeLeaderWorkerSetsNotReady, v1alpha1.ReasonAllLeaderWorkerSetsReady},
	}[p.Kind]
	if p.Done {
		return condition{true, reasons[1], fmt.Sprintf("%s %s runs %d replicas of the current spec", p.Kind, p.Name, p.Replicas)}
	}
	return lacking(p, reasons[0])
}

// lacking says why a workload is not done: what it says itself, the first cause
// that a person can act on, or else how far it is and what it waits for, under the given reason.
func lacking(p workload.Progress, reason string) condition {
	first, found := diagnosis.First(p.Seen)
	switch {
	case p.Reason != "":
		return condition{false, p.Reason, p.Why}
	case found && first.Reason.Fault():
		return condition{false, string(first.Reason), first.Message + behind(p)}
	case p.Stuck:
		return stalled(p)
	default:
		return condition{false, reason, missing(p)}
	}
}

// stalled says that a workload makes no progress, and what it lacks.
func stalled(p workload.Progress) condition {
	return condition{false, v1alpha1.ReasonRolloutStuck, missing(p)}
}

// missing says how far a workload is, what that hangs on, and who waits for it.
func missing(p workload.Progress) string {
	text := p.Why
	if first, found := diagnosis.First(p.Seen); found {
		text += ": " + first.Message
	}
	return text + behind(p)
}

// shown is how many groups are told by name.
const shown = 5

// behind names the groups that still run an older spec.
func behind(p workload.Progress) string {
	switch n := len(p.Behind); {
	case n == 0:
		return ""
	case n > shown:
		return fmt.Sprintf("; still as before: %s and %d more", strings.Join(p.Behind[:shown], ", "), n-shown)
	default:
		return "; still as before: " + strings.Join(p.Behind, ", ")
	}
}

// replicas is what there is of a service. How long pods took to start is kept after the
// last of them: that is when somebody asks how long the next will take.
func replicas(p workload.Progress, before *v1alpha1.ServiceReplicaStatus) *v1alpha1.ServiceReplicaStatus {
	startup := p.Startup
	if startup == nil {
		startup = workload.Startup(p.Seen.Pods)
	}
	if startup == nil && before != nil {
		startup = before.Startup
	}
	return &v1alpha1.ServiceReplicaStatus{
		ComponentKind:     v1alpha1.ComponentKind(p.Kind),
		ComponentName:     p.Name,
		Replicas:          p.Replicas,
		UpdatedReplicas:   p.Updated,
		ReadyReplicas:     p.Ready,
		AvailableReplicas: p.Available,
		ScheduledReplicas: p.Scheduled,
		Startup:           startup,
	}
}
