package render

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/joboverride"
	"github.com/dynamo-operator/dynamo-operator/internal/core/requestplan"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// ProfilerAccount is the ServiceAccount that profilers of a namespace run under.
const ProfilerAccount = "dgdr-profiling-job"

// Profiling is what profilers depend on beside the request: the operator's
// configuration, and facts about the namespace.
type Profiling struct {
	// Image is the profiler of ours, and the collector beside one of others.
	Image string
	// Role is a ClusterRole that the account of profilers is bound to; empty if
	// the installation binds it itself.
	Role string
	// NATS and Etcd are where profilers of others look for them.
	NATS, Etcd  string
	PullSecrets snapshot.PullSecrets
}

// Request renders what a request wants to exist now.
func Request(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling) []graph.Desired {
	var wanted []graph.Desired
	switch step.Wants {
	case requestplan.Inputs:
		wanted = profilingInputs(r, step, p)
	case requestplan.Job:
		wanted = append(profilingInputs(r, step, p), graph.Desired{Object: profilingJob(r, step, p)})
	case requestplan.Extras:
		for _, extra := range step.Generated.Extras {
			wanted = append(wanted, graph.Desired{Object: extra, Ownership: graph.OwnershipByLabel})
		}
	case requestplan.Graph:
		made := step.Generated.Graph.DeepCopy()
		metav1.SetMetaDataAnnotation(&made.ObjectMeta, v1alpha1.AnnotationRequestUID, string(r.UID))
		wanted = []graph.Desired{{Object: made, Ownership: graph.OwnershipByLabel, CreateOnly: true}}
	}
	return wanted
}

// profilingInputs are what has to be there before a Job is: the profiler's
// configuration, a place for the answer, and an account.
func profilingInputs(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling) []graph.Desired {
	wanted := []graph.Desired{
		{Object: &corev1.ConfigMap{ObjectMeta: profilingMeta(r, step, graph.ProfilingInput(r.Name)), Data: step.Record.Data()}},
		{Object: &corev1.ConfigMap{ObjectMeta: profilingMeta(r, step, graph.ProfilingOutput(r.Name))}},
	}
	if p.Role != "" {
		wanted = append(wanted, account(r.Namespace, ProfilerAccount, p.Role)...)
	}
	return wanted
}

func profilingMeta(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: r.Namespace, Labels: graph.RequestLabels(r),
		Annotations: map[string]string{v1alpha1.AnnotationProfilingAttempt: step.Record.Attempt},
	}
}

// profilingJob renders the Job of a request.
func profilingJob(r *v1alpha1.DynamoGraphDeploymentRequest, step requestplan.Step, p Profiling) *batchv1.Job {
	app := v1alpha1.ProfilingApp
	_, one := step.Record.Question()
	if !one && step.Record.Offline() {
		app = v1alpha1.ProfilingAppOffline
	}
	meta := profilingMeta(r, step, graph.ProfilingJob(r.Name))
	maps.Copy(meta.Labels, map[string]string{
		v1alpha1.LabelProfilingApp:     app,
		v1alpha1.LabelProfilingRequest: meta.Labels[v1alpha1.LabelRequestName],
	})
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit:          new(int32(3)),
		ActiveDeadlineSeconds: new(max(1, int64(step.Deadline.Seconds()))),
	}}
	switch {
	case (requestplan.Policy{Image: p.Image}).Direct(step.Record.Image()):
		directProfiler(r, step, p, job)
	case one:
		job.Spec.BackoffLimit = new(int32(0))
		foreignProfiler(r, step, p, job, profilerOfOne(r, step, p))
	default:
		foreignProfiler(r, step, p, job, profilerOfSeed(r, step, p))
	}
	spec := &job.Spec.Template.Spec
	spec.ServiceAccountName = ProfilerAccount
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), RunAsGroup: new(int64(1000)), FSGroup: new(int64(1000)),
	}
	if o := step.Record.Spec.Overrides; o != nil {
		// What cannot be merged was refused before the work began.
		_ = joboverride.Apply(&job.Spec, o.ProfilingJob)
	}
	if config := step.Record.Spec.ProfilingConfig; len(config.Tolerations) > 0 {
		spec.Tolerations = config.Tolerations
	}
	if config := step.Record.Spec.ProfilingConfig; len(config.NodeSelector) > 0 {
		spec.NodeSelector = config.NodeSelector
	}
	spec.ImagePullSecrets = pullSecrets(spec, p.PullSecrets)
	return job
}
