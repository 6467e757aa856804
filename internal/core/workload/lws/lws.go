// Package lws runs a component that spans nodes as LeaderWorkerSets, scheduled
// as gangs by Volcano.
package lws

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// gangScheduler places all pods of a gang or none, unless the user chose another
// scheduler. That one is told of no gang.
const gangScheduler = "volcano"

// Builder implements workload.Builder.
type Builder struct {
	// Deadline is how long the groups of a component may make no progress.
	Deadline time.Duration
}

var _ workload.Builder = Builder{}

// Build returns, for each replica of each component, a LeaderWorkerSet and, for
// the gang scheduler, a PodGroup. One set per replica: the PodGroup's name sits in the pod
// template, which all groups of one set share.
func (Builder) Build(g *graph.Graph, pods workload.Pods) ([]graph.Object, error) {
	var objects []graph.Object
	for _, c := range g.Components {
		leader, err := pods(c, place(c, engine.Leader))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", c.Name, err)
		}
		worker, err := pods(c, place(c, engine.Worker))
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", c.Name, err)
		}
		if contract.Of(c.Contract).Groups.OneSet {
			objects = append(objects, groupsOf(c, leader, worker))
			continue
		}
		for i := range c.Replicas {
			if inGang(leader) || inGang(worker) {
				objects = append(objects, podGroup(c, i))
			}
			objects = append(objects, leaderWorkerSet(c, i, leader, worker))
		}
	}
	return objects, nil
}

// sets is how many sets run a component.
func sets(c graph.Component) int32 {
	if contract.Of(c.Contract).Groups.OneSet {
		return 1
	}
	return c.Replicas
}

// groups is how many groups each of them has.
func groups(c graph.Component) int32 {
	if contract.Of(c.Contract).Groups.OneSet {
		return c.Replicas
	}
	return 1
}

// Name is the name of the set that runs replica i.
func Name(c graph.Component, i int32) string { return graph.GroupName(c.ObjectName, i) }

func place(c graph.Component, position engine.Position) engine.Group {
	a := engine.Addresses{
		// The set's controller puts these variables first, so the kubelet can
		// expand them in any command.
		LeaderExec:  "$(LWS_LEADER_ADDRESS)",
		LeaderShell: "$LWS_LEADER_ADDRESS",
		// A worker's host is the leader's with its index before the first dot.
		WorkerShell: func(i int) string {
			return fmt.Sprintf(`$(echo "$LWS_LEADER_ADDRESS" | sed 's/\./-%d\./')`, i)
		},
		Rank: "$(LWS_WORKER_INDEX)",
		// The shell must find the variable by itself: what stands within $( ) the
		// kubelet takes for a name, and expands nothing in it.
		RankTimes: func(n int) string { return fmt.Sprintf("$((%d * LWS_WORKER_INDEX))", n) },
		Resolve:   true,
	}
	if contract.Of(c.Contract).Groups.KubeletExpands {
		a.LeaderShell, a.RankExec = a.LeaderExec, true
	}
	return engine.Group{Position: position, Nodes: int(c.Nodes), Addresses: a}
}

// groupsOf runs all replicas as groups of one set, which scales and rolls out by
// itself.
func groupsOf(c graph.Component, leader, worker corev1.PodTemplateSpec) *lwsv1.LeaderWorkerSet {
	set := leaderWorkerSet(c, 0, leader, worker)
	set.Spec.Replicas = new(c.Replicas)
	delete(set.Labels, v1alpha1.LabelGroupInstance)
	member := func(template corev1.PodTemplateSpec, role string) corev1.PodTemplateSpec {
		t := *template.DeepCopy()
		delete(t.Labels, v1alpha1.LabelSelector)
		t.Labels[v1alpha1.LabelGroupRole] = role
		return t
	}
	set.Spec.LeaderWorkerTemplate.LeaderTemplate = new(member(leader, v1alpha1.RoleLeader))
	set.Spec.LeaderWorkerTemplate.WorkerTemplate = member(worker, v1alpha1.RoleWorker)
	return set
}

func podGroup(c graph.Component, i int32) *PodGroup {
	return &PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(c, i), Namespace: c.Namespace,
			Labels: map[string]string{v1alpha1.LabelGroupInstance: strconv.Itoa(int(i))},
		},
		Spec: PodGroupSpec{MinMember: c.Nodes},
	}
}

func leaderWorkerSet(c graph.Component, i int32, leader, worker corev1.PodTemplateSpec) *lwsv1.LeaderWorkerSet {
	labels := c.ObjectLabels()
	labels[v1alpha1.LabelGroupInstance] = strconv.Itoa(int(i))
	return &lwsv1.LeaderWorkerSet{
		ObjectMeta: metav1.ObjectMeta{Name: Name(c, i), Namespace: c.Namespace, Labels: labels},
		Spec: lwsv1.LeaderWorkerSetSpec{
			Replicas:      new(int32(1)),
			StartupPolicy: lwsv1.LeaderCreatedStartupPolicy,
			// The server's own defaults, said here because the type cannot leave
			// them out and an empty one is refused.
			RolloutStrategy: lwsv1.RolloutStrategy{
				Type: lwsv1.RollingUpdateStrategyType,
				RollingUpdateConfiguration: &lwsv1.RollingUpdateConfiguration{
					Partition: new(int32(0)), MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(0),
				},
			},
			LeaderWorkerTemplate: lwsv1.LeaderWorkerTemplate{
				Size:           new(c.Nodes),
				LeaderTemplate: new(member(leader, c, i, v1alpha1.RoleLeader)),
				WorkerTemplate: member(worker, c, i, v1alpha1.RoleWorker),
			},
		},
	}
}

// member marks a pod template as a part of a gang. Pods of a group are told
// apart by role and instance, not by the selector of a Deployment.
func member(template corev1.PodTemplateSpec, c graph.Component, i int32, role string) corev1.PodTemplateSpec {
	t := *template.DeepCopy()
	delete(t.Labels, v1alpha1.LabelSelector)
	t.Labels[v1alpha1.LabelGroupRole] = role
	t.Labels[v1alpha1.LabelGroupInstance] = strconv.Itoa(int(i))
	if !inGang(t) {
		return t
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationPodGroup] = Name(c, i)
	t.Spec.SchedulerName = gangScheduler
	return t
}

func inGang(t corev1.PodTemplateSpec) bool {
	return t.Spec.SchedulerName == "" || t.Spec.SchedulerName == gangScheduler
}

// Progress reads the sets of each component.
func (b Builder) Progress(g *graph.Graph, s snapshot.Snapshot) []workload.Progress {
	var all []workload.Progress
	for _, c := range g.Components {
		p, moved := progress(c, s)
		all = append(all, p.Judged(moved, b.Deadline, s.Taken))
	}
	return all
}

// progress reads the sets of one component, and when something last moved there.
func progress(c graph.Component, s snapshot.Snapshot) (p workload.Progress, moved time.Time) {
	p = workload.Progress{
		Kind: workload.KindLeaderWorkerSet, Name: Name(c, 0), Ready: new(int32(0)), Done: true, Seen: s.Evidence.Of(c.Name),
	}
	for i := range sets(c) {
		set, found := snapshot.Find[*lwsv1.LeaderWorkerSet](s, Name(c, i))
		if !found {
			p.Done, p.Why = false, cmp.Or(p.Why, fmt.Sprintf("LeaderWorkerSet %s not created yet", Name(c, i)))
			continue
		}
		moved = workload.Latest(moved, workload.Moved(set, set.Status.Conditions))
		p.Replicas += set.Status.Replicas
		*p.Ready += set.Status.ReadyReplicas
		why := missing(set, c.Nodes, groups(c))
		switch {
		case s.Outdated("LeaderWorkerSet", set.Name):
			moved, why = s.Taken, fmt.Sprintf("LeaderWorkerSet %s is being updated", set.Name)
		case slices.Contains(s.Postponed, graph.Ref{Kind: "LeaderWorkerSet", Name: set.Name}):
			// Whatever it runs in full is not what is asked for now.
			p.Done, p.Behind = false, append(p.Behind, set.Name)
			continue
		}
		p.Updated += set.Status.UpdatedReplicas
		if why != "" {
			p.Done, p.Why = false, cmp.Or(p.Why, why)
		}
	}
	if len(p.Behind) > 0 {
		p.Why = cmp.Or(p.Why, "groups change one after the other")
	}
	return p, moved
}

// missing says in one phrase what a set lacks; empty when it lacks nothing.
func missing(set *lwsv1.LeaderWorkerSet, nodes, want int32) string {
	st := set.Status
	switch {
	case st.ObservedGeneration != 0 && st.ObservedGeneration < set.Generation:
		return fmt.Sprintf("LeaderWorkerSet %s has not been observed yet", set.Name)
	case set.Spec.LeaderWorkerTemplate.Size == nil || *set.Spec.LeaderWorkerTemplate.Size != nodes:
		return fmt.Sprintf("LeaderWorkerSet %s is being made again with %d nodes", set.Name, nodes)
	case set.Spec.Replicas != nil && *set.Spec.Replicas != want:
		return fmt.Sprintf("LeaderWorkerSet %s is being scaled to %d", set.Name, want)
	case want != 1 && (st.Replicas != want || st.UpdatedReplicas < want || st.ReadyReplicas < want):
		return fmt.Sprintf("%d of %d groups of %s are ready, %d updated", st.ReadyReplicas, want, set.Name, st.UpdatedReplicas)
	case want == 0:
		return ""
	case st.UpdatedReplicas < 1:
		return fmt.Sprintf("group %s is not updated", set.Name)
	case st.ReadyReplicas < 1:
		return fmt.Sprintf("group %s is not ready", set.Name)
	case !meta.IsStatusConditionTrue(st.Conditions, string(lwsv1.LeaderWorkerSetAvailable)):
		return fmt.Sprintf("group %s is not available", set.Name)
	default:
		return ""
	}
}
