package requestplan

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// profile follows a Job from before it is there to its end.
func profile(r *v1alpha1.DynamoGraphDeploymentRequest, s Sight, p Policy, now time.Time) Step {
	step := Step{State: v1alpha1.RequestStatePending, Record: *s.Record, Wants: Job, Deadline: p.deadline(r), Discard: s.Leftover}
	if s.Job == nil {
		if r.Status.State == v1alpha1.RequestStateProfiling {
			step.State = r.Status.State // somebody deleted the Job; it is made again
		}
		if s.Drifted {
			step.Wants = Inputs
		}
		return step
	}
	step.State, step.Wants = v1alpha1.RequestStateProfiling, Nothing
	step.Phase, step.JobName = phaseOf(s.Output), s.Job.Name
	step.Results = "configmap/" + graph.ProfilingOutput(r.Name)
	if has(s.Job, batchv1.JobComplete) {
		return generate(r, s, p, step)
	}
	if has(s.Job, batchv1.JobFailed) {
		return step.fail(diagnose(s))
	}
	left := overdue(s.Job, now)
	if left <= 0 {
		step = step.fail(late(s))
		step.Discard = append(step.Discard, s.Job) // nobody else ended it
		return step
	}
	if s.Drifted {
		step.Wants = Inputs // a pod that starts later finds what was accepted
	}
	step.say(running(s))
	step.After = left
	if ready := s.Job.Status.Ready; ready == nil || *ready == 0 {
		step.After = min(left, waitingAgain) // its pods are not watched
	}
	return step
}

// backoffLimit is what the API server takes where a Job says nothing.
const backoffLimit = 6

// waitingAgain is how often a pod that does not run is looked at.
const waitingAgain = 15 * time.Second

// patience is how much longer than its deadline a Job may last before it is
// given up here.
const patience = time.Minute

// overdue is how long a Job may go on before somebody should have ended it.
func overdue(job *batchv1.Job, now time.Time) time.Duration {
	if job.Spec.ActiveDeadlineSeconds == nil {
		return time.Hour // not of ours
	}
	start := job.CreationTimestamp.Time
	if job.Status.StartTime != nil {
		start = job.Status.StartTime.Time
	}
	allowed := time.Duration(*job.Spec.ActiveDeadlineSeconds)*time.Second + patience
	if start.IsZero() {
		return allowed
	}
	return allowed - now.Sub(start)
}

func has(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	_, found := conditionOf(job, kind)
	return found
}

func conditionOf(job *batchv1.Job, kind batchv1.JobConditionType) (batchv1.JobCondition, bool) {
	for _, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c, true
		}
	}
	return batchv1.JobCondition{}, false
}

// Finished reports whether a Job has ended, one way or the other.
func Finished(job *batchv1.Job) bool {
	return job != nil && (has(job, batchv1.JobComplete) || has(job, batchv1.JobFailed))
}

// running says how far a Job is, in words that change only when it does.
func running(s Sight) Finding {
	f := Finding{Type: v1alpha1.ConditionProfiling, Reason: v1alpha1.ReasonProfilingRunning, Message: "the profiler is starting"}
	if why := waiting(s.Pods); why != "" {
		f.Reason, f.Message = v1alpha1.ReasonProfilerWaiting, why
	} else if progress, err := profileoutput.ParseProgress(s.Output[profileoutput.KeyProgress]); err == nil {
		f.Message = progress.String()
	} else if s.Job.Status.Ready != nil && *s.Job.Status.Ready > 0 {
		f.Message = "the profiler is running"
	}
	if failed := s.Job.Status.Failed; failed > 0 {
		f.Message = fmt.Sprintf("attempt %d of %d (the last one: %s): %s", failed+1, ptr.Deref(s.Job.Spec.BackoffLimit, backoffLimit)+1, diagnose(s).Message, f.Message)
	}
	return f
}

// fail ends the work. What the step wanted is not wanted any more.
func (s Step) fail(f Finding) Step {
	s.State, s.Wants, s.After = v1alpha1.RequestStateFailed, Nothing, 0
	s.say(f)
	return s
}
