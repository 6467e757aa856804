package fakegrove

import (
	"fmt"
	"slices"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// step is what one pass does to pods.
type step struct {
	create, remove []*corev1.Pod
}

// unit is what is replaced as one: a pod of a clique that scales alone, or all pods of a group's replica, which serve
// together.
type unit struct {
	available bool
	outdated  []*corev1.Pod
}

// next decides it:
//
//	a pod beyond its clique's replicas, or one that ended    is removed
//	a pod that is missing                                    is created, once the cliques before it are ready
//	an outdated pod of a unit that does not serve            is removed
//	an outdated pod of a unit that serves                    is removed when every unit beside it serves
func (w world) next() step {
	var s step
	rollouts := map[string][]unit{} // by clique, or by group
	index := map[string]int{}       // of a group's replica in its rollout
	for _, p := range w.places() {
		clique := w.cliques[p.name()]
		if clique == nil || clique.DeletionTimestamp != nil {
			continue
		}
		have := map[string]*corev1.Pod{}
		for _, pod := range w.pods[clique.Name] {
			have[pod.Name] = pod
		}
		for i := range int(clique.Spec.Replicas) {
			pod := have[podName(clique.Name, i)]
			delete(have, podName(clique.Name, i))
			u := unit{available: pod != nil && ready(pod)}
			switch {
			case pod == nil && w.mayStart(clique):
				s.create = append(s.create, p.pod(clique, i))
			case pod == nil:
			case ended(pod):
				s.remove = append(s.remove, pod)
			case pod.Labels[common.LabelPodTemplateHash] != revision(clique):
				u.outdated = []*corev1.Pod{pod}
			}
			if p.group == nil {
				rollouts[clique.Name] = append(rollouts[clique.Name], u)
				continue
			}
			replica := fmt.Sprintf("%s/%d", p.group.Name, p.groupReplica)
			at, seen := index[replica]
			if !seen {
				index[replica] = len(rollouts[p.group.Name])
				rollouts[p.group.Name] = append(rollouts[p.group.Name], u)
				continue
			}
			whole := &rollouts[p.group.Name][at]
			whole.available = whole.available && u.available
			whole.outdated = append(whole.outdated, u.outdated...)
		}
		for _, pod := range w.pods[clique.Name] {
			if have[pod.Name] != nil {
				s.remove = append(s.remove, pod)
			}
		}
	}
	for _, units := range rollouts {
		s.remove = append(s.remove, replace(units)...)
	}
	s.remove = slices.DeleteFunc(s.remove, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	return s
}

// turn is the clique or group that is updated now, in the order of the template: one after the other, and none before a
// moment has passed since the update began. It is empty while there is nothing to update.
func (w world) turn() string {
	begun, known := w.set.Status.RollingUpdateProgress, w.set.Status.CurrentGenerationHash
	switch {
	case known != nil && *known != setRevision(w.set): // the update has not begun
		return ""
	case begun != nil && begun.UpdateEndedAt == nil && w.now.Sub(begun.UpdateStartedAt.Time) < pause:
		return ""
	}
	for _, p := range w.places() {
		if clique := w.cliques[p.name()]; clique != nil && (!w.current(p, clique) || !w.complete(clique)) {
			return p.unit()
		}
	}
	return ""
}

// unit is what is updated at one time: a clique that scales alone, or a group as a whole.
func (p place) unit() string {
	if p.group != nil {
		return p.group.Name
	}
	return p.name()
}

// current says that a clique is what its template asks for.
func (w world) current(p place, clique *grovev1alpha1.PodClique) bool {
	return revision(clique) == p.revision()
}

// complete says that a clique's pods are all what the clique asks for, and serve.
func (w world) complete(clique *grovev1alpha1.PodClique) bool {
	pods := w.pods[clique.Name]
	updated := count(pods, func(pod *corev1.Pod) bool { return updated(pod, clique) && ready(pod) })
	return updated == clique.Spec.Replicas && updated == count(pods, alive)
}

// revision is the template that a clique has.
func revision(clique *grovev1alpha1.PodClique) string {
	return clique.Labels[common.LabelPodTemplateHash]
}

// replace picks the outdated pods whose turn it is.
func replace(units []unit) []*corev1.Pod {
	var turn []*corev1.Pod
	all := true
	for _, u := range units {
		if !u.available {
			all = false
			turn = append(turn, u.outdated...)
		}
	}
	if !all {
		return turn
	}
	for _, u := range slices.Backward(units) {
		if len(u.outdated) > 0 {
			return u.outdated
		}
	}
	return nil
}

// mayStart holds pods back until enough of each clique before them is ready.
func (w world) mayStart(clique *grovev1alpha1.PodClique) bool {
	for _, name := range clique.Spec.StartsAfter {
		before := w.cliques[name]
		if before == nil || count(w.pods[name], ready) < minAvailable(before) {
			return false
		}
	}
	return true
}

// minAvailable is how many pods make a clique serve: never more than it is asked to have.
func minAvailable(clique *grovev1alpha1.PodClique) int32 {
	if clique.Spec.MinAvailable == nil {
		return clique.Spec.Replicas
	}
	return min(*clique.Spec.MinAvailable, clique.Spec.Replicas)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func ready(pod *corev1.Pod) bool {
	return alive(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func alive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !ended(pod) }

func scheduled(pod *corev1.Pod) bool { return alive(pod) && pod.Spec.NodeName != "" }

func count(pods []*corev1.Pod, is func(*corev1.Pod) bool) int32 {
	var n int32
	for _, pod := range pods {
		if is(pod) {
			n++
		}
	}
	return n
}
