package grove

import (
	"maps"
	"testing"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
)

// live is a set g with a service A of two pods and a service W of one group of two
// nodes, all of them well, as Grove shows them.
func live() (*graph.Graph, *grovev1alpha1.PodCliqueSet, []graph.Object) {
	g := &graph.Graph{Name: "g", CliqueSet: "g", Components: []graph.Component{
		{CliqueSet: "g", Clique: "a", Name: "A", Nodes: 1, Replicas: 2}, {CliqueSet: "g", Clique: "w", Name: "W", Nodes: 2, Replicas: 1},
	}}
	set := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "g", Generation: 1, CreationTimestamp: metav1.Unix(100, 0)}}
	set.Status.ObservedGeneration, set.Status.CurrentGenerationHash = new(int64(1)), new("1")
	var below []graph.Object
	for _, c := range []struct {
		service, role, name string
		replicas            int32
	}{{"A", "a", "g-0-a", 2}, {"W", "w-ldr", "g-0-w-0-w-ldr", 1}, {"W", "w-wkr", "g-0-w-0-w-wkr", 1}} {
		labels := map[string]string{v1alpha1.LabelComponent: c.service}
		spec := grovev1alpha1.PodCliqueSpec{RoleName: c.role, Replicas: c.replicas, PodSpec: corev1.PodSpec{NodeName: c.role}}
		set.Spec.Template.Cliques = append(set.Spec.Template.Cliques, &grovev1alpha1.PodCliqueTemplateSpec{Name: c.role, Labels: labels, Spec: spec})
		clique := &grovev1alpha1.PodClique{ObjectMeta: metav1.ObjectMeta{
			Name: c.name, Generation: 1, Labels: madeFrom("g", map[string]string{v1alpha1.LabelComponent: c.service, common.LabelPodTemplateHash: "1"}),
		}, Spec: spec}
		clique.Status = grovev1alpha1.PodCliqueStatus{
			ObservedGeneration: new(int64(1)), Replicas: c.replicas, ReadyReplicas: c.replicas, UpdatedReplicas: c.replicas,
			CurrentPodTemplateHash: new("1"), CurrentPodCliqueSetGenerationHash: new("1"),
		}
		if c.service == "W" {
			clique.Labels[common.LabelPodCliqueScalingGroup] = "g-0-w"
		}
		below = append(below, clique)
	}
	group := &grovev1alpha1.PodCliqueScalingGroup{ObjectMeta: metav1.ObjectMeta{Name: "g-0-w", Generation: 1, Labels: madeFrom("g", nil)}}
	group.Status = grovev1alpha1.PodCliqueScalingGroupStatus{
		ObservedGeneration: new(int64(1)), Replicas: 1, AvailableReplicas: 1, UpdatedReplicas: 1, CurrentPodCliqueSetGenerationHash: new("1"),
	}
	return g, set, append(below, group)
}

// madeFrom are the labels of what Grove makes from a set.
func madeFrom(set string, labels map[string]string) map[string]string {
	all := map[string]string{common.LabelManagedByKey: common.LabelManagedByValue, common.LabelPartOfKey: set}
	maps.Copy(all, labels)
	return all
}

// TestServicesAreDoneOnlyOnceGroveHasUpdatedThem: a clique whose turn has not come
// looks as well as one that is through.
func TestServicesAreDoneOnlyOnceGroveHasUpdatedThem(t *testing.T) {
	restartOf := func(service string, set *grovev1alpha1.PodCliqueSet) {
		set.Generation++
		for _, template := range set.Spec.Template.Cliques {
			if template.Labels[v1alpha1.LabelComponent] == service {
				template.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "1"}
			}
		}
	}
	restarted := func(below []graph.Object, hash string) {
		clique := below[0].(*grovev1alpha1.PodClique)
		clique.Annotations, clique.Labels[common.LabelPodTemplateHash] = map[string]string{v1alpha1.AnnotationRestartAt: "1"}, hash
	}
	// begun is how releases of Grove show an update whose progress our module cannot read.
	begun := func(set *grovev1alpha1.PodCliqueSet) {
		set.Status.ObservedGeneration, set.Status.CurrentGenerationHash = new(set.Generation), new("2")
	}
	for rule, c := range map[string]struct {
		change   func(set *grovev1alpha1.PodCliqueSet, below []graph.Object)
		done     [2]bool
		updating bool
	}{
		"everything runs": {func(*grovev1alpha1.PodCliqueSet, []graph.Object) {}, [2]bool{true, true}, false},
		"a service whose clique has not been touched yet is not through, another is": {
			func(set *grovev1alpha1.PodCliqueSet, _ []graph.Object) { restartOf("A", set) }, [2]bool{false, true}, true,
		},
		"a clique that has its new template and no new pod is not through": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				restartOf("A", set)
				restarted(below, "2")
			}, [2]bool{false, true}, true,
		},
		"a clique all of whose pods are of the new template is through, though the set is not": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				restartOf("A", set)
				restarted(below, "2")
				below[0].(*grovev1alpha1.PodClique).Status.CurrentPodTemplateHash = new("2")
			}, [2]bool{true, true}, true,
		},
		"a group is through when each of its cliques is": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				restartOf("W", set)
				leader := below[1].(*grovev1alpha1.PodClique)
				leader.Annotations = map[string]string{v1alpha1.AnnotationRestartAt: "1"}
			}, [2]bool{true, false}, true,
		},
		"an update that is observed and has not ended goes on": {
			func(set *grovev1alpha1.PodCliqueSet, _ []graph.Object) {
				set.Status.RollingUpdateProgress = &grovev1alpha1.PodCliqueSetRollingUpdateProgress{}
			}, [2]bool{true, true}, true,
		},
		"an update that shows in the hash of the set alone goes on": {
			func(set *grovev1alpha1.PodCliqueSet, _ []graph.Object) {
				restartOf("A", set)
				begun(set)
			}, [2]bool{false, true}, true,
		},
		"it goes on until each clique has that hash": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				begun(set)
				below[3].(*grovev1alpha1.PodCliqueScalingGroup).Status.CurrentPodCliqueSetGenerationHash = new("2")
			}, [2]bool{true, true}, true,
		},
		"it goes on until each group has that hash": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				begun(set)
				below[0].(*grovev1alpha1.PodClique).Status.CurrentPodCliqueSetGenerationHash = new("2")
			}, [2]bool{true, true}, true,
		},
		"it has ended when all have it: a group answers for its cliques": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				begun(set)
				below[0].(*grovev1alpha1.PodClique).Status.CurrentPodCliqueSetGenerationHash = new("2")
				below[3].(*grovev1alpha1.PodCliqueScalingGroup).Status.CurrentPodCliqueSetGenerationHash = new("2")
			}, [2]bool{true, true}, false,
		},
		"what has no hash yet or is another set's is not waited for": {
			func(set *grovev1alpha1.PodCliqueSet, below []graph.Object) {
				begun(set)
				below[0].(*grovev1alpha1.PodClique).Status.CurrentPodCliqueSetGenerationHash = nil
				below[3].(*grovev1alpha1.PodCliqueScalingGroup).Labels[common.LabelPartOfKey] = "other"
			}, [2]bool{true, true}, false,
		},
	} {
		t.Run(rule, func(t *testing.T) {
			g, set, below := live()
			c.change(set, below)
			s := snapshot.Snapshot{Owned: []graph.Object{set}, Beneath: below}
			for i, p := range (Builder{}).Progress(g, s) {
				if p.Done != c.done[i] {
					t.Errorf("%s is done: %v (%s)", g.Components[i].Name, p.Done, p.Why)
				}
			}
			if got := (Builder{}).Updating(g, s); got != c.updating {
				t.Errorf("updating: %v", got)
			}
		})
	}
}

// TestReplicasWithANodeAreTold: pods that have none are why a service is not ready.
func TestReplicasWithANodeAreTold(t *testing.T) {
	g, set, below := live()
	below[0].(*grovev1alpha1.PodClique).Status.ScheduledReplicas = 1
	below[3].(*grovev1alpha1.PodCliqueScalingGroup).Status.ScheduledReplicas = 1
	var got []int32
	for _, p := range (Builder{}).Progress(g, snapshot.Snapshot{Owned: []graph.Object{set}, Beneath: below}) {
		got = append(got, *p.Scheduled)
	}
	if diff := cmp.Diff([]int32{1, 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARequeueIsNoRefusal(t *testing.T) {
	_, _, below := live()
	clique := below[0].(*grovev1alpha1.PodClique)
	clique.Status.Replicas = 1
	clique.Status.LastErrors = []grovev1alpha1.LastError{{Code: requeue, Description: "again"}, {Code: "ERR_CREATE_POD", Description: "exceeded quota"}}
	refused := Refused("A", below)
	if len(refused) != 1 || refused[0].Message != "exceeded quota" {
		t.Errorf("refused: %+v", refused)
	}
}

// TestAServiceIsStuckAfterItsDeadlineAndNotWhileItsModelLoads holds on Grove what
// holds on Deployments and LeaderWorkerSets.
func TestAServiceIsStuckAfterItsDeadlineAndNotWhileItsModelLoads(t *testing.T) {
	loading := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelComponent: "A"}}}
	loading.Spec.Containers = []corev1.Container{{Name: "main", StartupProbe: &corev1.Probe{}}}
	loading.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Started: new(false), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	again := *loading.DeepCopy()
	again.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	for rule, c := range map[string]struct {
		after time.Duration
		pods  []corev1.Pod
		stuck bool
		due   bool
	}{
		"before the deadline it may come up":              {after: time.Minute, due: true},
		"after it it is stuck":                            {after: 11 * time.Minute, stuck: true},
		"a model that loads for longer keeps nobody back": {after: 25 * time.Minute, pods: []corev1.Pod{loading}},
		"one that was ended once and loads again does":    {after: 25 * time.Minute, pods: []corev1.Pod{again}, stuck: true},
	} {
		t.Run(rule, func(t *testing.T) {
			g, set, below := live()
			below[0].(*grovev1alpha1.PodClique).Status.ReadyReplicas = 0
			s := snapshot.Snapshot{
				Owned: []graph.Object{set}, Beneath: below, Taken: time.Unix(100, 0).Add(c.after), Evidence: snapshot.Evidence{Pods: c.pods},
			}
			p := Builder{Deadline: 10 * time.Minute}.Progress(g, s)[0]
			if p.Done || p.Stuck != c.stuck || p.Due.IsZero() == c.due {
				t.Errorf("done %v, stuck %v, due %v", p.Done, p.Stuck, p.Due)
			}
		})
	}
}
