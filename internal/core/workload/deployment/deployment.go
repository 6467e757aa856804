// Package deployment runs a component that fits on one node as a Deployment.
package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Builder implements workload.Builder.
type Builder struct {
	// Deadline is how long a Deployment may make no progress.
	Deadline time.Duration
}

var _ workload.Builder = Builder{}

// Build returns a Deployment for each component.
func (b Builder) Build(g *graph.Graph, pods workload.Pods) ([]graph.Object, error) {
	var objects []graph.Object
	for _, c := range g.Components {
		template, err := pods(c, engine.Group{Position: engine.Alone, Nodes: 1})
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", c.Name, err)
		}
		objects = append(objects, deployment(c, template, b.Deadline))
	}
	return objects, nil
}

func deployment(c graph.Component, template corev1.PodTemplateSpec, deadline time.Duration) *appsv1.Deployment {
	annotations := c.ObjectAnnotations()
	least := minReady(annotations)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.ObjectName, Namespace: c.Namespace, Labels: c.ObjectLabels(), Annotations: annotations,
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(c.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelSelector: c.ObjectName}},
			Strategy: strategy(c),
			Template: template,

			MinReadySeconds:         int32(least / time.Second),
			ProgressDeadlineSeconds: seconds(deadline, least),
		},
	}
}

// defaultProgressDeadline is the API server's own deadline for progress.
const defaultProgressDeadline = 10 * time.Minute

// seconds says a deadline only where it is not the server's own, so that objects
// stay as they are for those who do not ask for another. It is longer than a pod
// has to stay ready, or no rollout could keep it.
func seconds(deadline, least time.Duration) *int32 {
	deadline = cmp.Or(deadline, defaultProgressDeadline)
	if deadline <= least {
		deadline += least
	}
	if deadline == defaultProgressDeadline {
		return nil
	}
	return new(int32(deadline / time.Second))
}

// minReady is how long a pod must stay ready to count. What is no number was
// refused by validation.
func minReady(annotations map[string]string) time.Duration {
	n, err := strconv.ParseUint(annotations[v1alpha1.AnnotationMinReadySeconds], 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// strategy reads how the user wants pods replaced. Recreate is for clusters
// without a spare GPU.
func strategy(c graph.Component) appsv1.DeploymentStrategy {
	annotations := c.ObjectAnnotations()
	if c.Recreated() {
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	share := func(key string) *intstr.IntOrString {
		if annotations[key] == "" {
			return new(intstr.FromString("25%"))
		}
		return new(intstr.Parse(annotations[key]))
	}
	return appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge:       share(v1alpha1.AnnotationMaxSurge),
			MaxUnavailable: share(v1alpha1.AnnotationMaxUnavailable),
		},
	}
}

// Progress reads each component's Deployment.
func (Builder) Progress(g *graph.Graph, s snapshot.Snapshot) []workload.Progress {
	var all []workload.Progress
	for _, c := range g.Components {
		all = append(all, progress(c, s))
	}
	return all
}

func progress(c graph.Component, s snapshot.Snapshot) workload.Progress {
	p := workload.Progress{Kind: workload.KindDeployment, Name: c.ObjectName, Seen: s.Evidence.Of(c.Name)}
	d, found := snapshot.Find[*appsv1.Deployment](s, c.ObjectName)
	if !found {
		p.Why = "Deployment not created yet"
		return p
	}
	st := d.Status
	p.Replicas, p.Updated = st.Replicas, st.UpdatedReplicas
	p.Ready, p.Available = new(st.ReadyReplicas), new(st.AvailableReplicas)
	p.Why = missing(d, c.Replicas)
	if s.Outdated("Deployment", d.Name) {
		p.Why = "Deployment is being updated"
	}
	p.Done = p.Why == ""
	p.Stuck = !p.Done && stuck(d) && !workload.Starting(p.Seen)
	p.Seen.Refused = append(p.Seen.Refused, Refused(d)...)
	return p
}

// Refused reads what a Deployment's ReplicaSets were told when they were to make
// pods.
func Refused(d *appsv1.Deployment) []snapshot.Refusal {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && c.Reason == "FailedCreate" {
			return []snapshot.Refusal{{By: "Deployment/" + d.Name, Message: c.Message}}
		}
	}
	return nil
}

// stuck reports whether a Deployment has given its current spec up.
func stuck(d *appsv1.Deployment) bool {
	return d.Status.ObservedGeneration >= d.Generation && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
	})
}

// missing says in one phrase what a Deployment lacks; empty when it lacks
// nothing: its latest spec is observed, every replica is of that spec and
// available, and no older one is left.
func missing(d *appsv1.Deployment, want int32) string {
	st := d.Status
	switch {
	case d.Spec.Paused:
		return "Deployment is paused"
	case st.ObservedGeneration < d.Generation:
		return "Deployment has not been observed yet"
	case d.Spec.Replicas == nil || *d.Spec.Replicas != want:
		return fmt.Sprintf("Deployment is being scaled to %d", want)
	case st.UpdatedReplicas < want:
		return fmt.Sprintf("%d of %d replicas updated", st.UpdatedReplicas, want)
	case st.Replicas > want:
		return fmt.Sprintf("%d old replicas are still terminating", st.Replicas-want)
	case st.AvailableReplicas < want:
		return fmt.Sprintf("%d of %d replicas available", st.AvailableReplicas, want)
	default:
		return ""
	}
}
