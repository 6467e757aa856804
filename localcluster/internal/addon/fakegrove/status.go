package fakegrove

import (
	"fmt"
	"slices"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	"github.com/ai-dynamo/grove/operator/api/common/constants"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// cliqueStatus counts the pods of a clique.
func (w world) cliqueStatus(p place, clique *grovev1alpha1.PodClique) grovev1alpha1.PodCliqueStatus {
	pods := w.pods[clique.Name]
	s := *clique.Status.DeepCopy()
	s.ObservedGeneration = new(clique.Generation)
	s.Replicas = count(pods, alive)
	s.ReadyReplicas = count(pods, ready)
	s.ScheduledReplicas = count(pods, scheduled)
	s.UpdatedReplicas = count(pods, func(pod *corev1.Pod) bool { return updated(pod, clique) })
	s.Selector = new(selector(common.LabelPodClique, clique.Name))
	if w.complete(clique) {
		s.CurrentPodTemplateHash = new(revision(clique))
		if w.current(p, clique) {
			s.CurrentPodCliqueSetGenerationHash = new(setRevision(w.set))
		}
	}
	s.LastErrors = lastErrors(s.LastErrors, w.refused[clique.Name])
	if s.LastErrors == nil && s.UpdatedReplicas < clique.Spec.Replicas {
		s.LastErrors = requeued(clique.Status.LastErrors, w.now)
	}
	need := minAvailable(clique)
	breached(&s.Conditions, clique.Generation, s.ReadyReplicas, need, "pods ready",
		constants.ConditionReasonInsufficientReadyPods, constants.ConditionReasonSufficientReadyPods)
	condition := metav1.Condition{
		Type: constants.ConditionTypePodCliqueScheduled, Status: metav1.ConditionTrue,
		Reason:             constants.ConditionReasonSufficientScheduledPods,
		Message:            fmt.Sprintf("%d pods scheduled, %d needed", s.ScheduledReplicas, need),
		ObservedGeneration: clique.Generation,
	}
	if s.ScheduledReplicas < need {
		condition.Status, condition.Reason = metav1.ConditionFalse, constants.ConditionReasonInsufficientScheduledPods
	}
	meta.SetStatusCondition(&s.Conditions, condition)
	return s
}

// lastErrors keeps the time of an error that is still the same.
func lastErrors(before []grovev1alpha1.LastError, now error) []grovev1alpha1.LastError {
	switch {
	case now == nil:
		return nil
	case len(before) == 1 && before[0].Description == now.Error():
		return before
	default:
		return []grovev1alpha1.LastError{{Code: "ERR_CREATE_POD", Description: now.Error(), ObservedAt: metav1.Now()}}
	}
}

// requeued is what Grove leaves in the status of an object that it looks at again, as if that were an error.
func requeued(before []grovev1alpha1.LastError, now time.Time) []grovev1alpha1.LastError {
	const code = "ERR_CONTINUE_RECONCILE_AND_REQUEUE"
	if len(before) == 1 && before[0].Code == code {
		return before
	}
	return []grovev1alpha1.LastError{{Code: code, Description: "waiting for pods, requeuing", ObservedAt: metav1.NewTime(now)}}
}

// updated says that a pod is what its clique asks for now.
func updated(pod *corev1.Pod, clique *grovev1alpha1.PodClique) bool {
	return alive(pod) && pod.Labels[common.LabelPodTemplateHash] == revision(clique)
}

// groupStatus counts the replicas of a scaling group, each by its weakest clique.
func (w world) groupStatus(group *grovev1alpha1.PodCliqueScalingGroup) grovev1alpha1.PodCliqueScalingGroupStatus {
	s := *group.Status.DeepCopy()
	s.ObservedGeneration = new(group.Generation)
	s.Selector = new(selector(common.LabelPodCliqueScalingGroup, group.Name))
	s.Replicas, s.ScheduledReplicas, s.AvailableReplicas, s.UpdatedReplicas = 0, 0, 0, 0
	for replica := range int(group.Spec.Replicas) {
		h := w.health(func(p place) bool {
			return p.group != nil && p.group.Name == group.Name && p.groupReplica == replica
		})
		s.Replicas += h.exists
		s.ScheduledReplicas += h.scheduled
		s.AvailableReplicas += h.available
		s.UpdatedReplicas += h.updated
	}
	if s.UpdatedReplicas == group.Spec.Replicas {
		s.CurrentPodCliqueSetGenerationHash = new(setRevision(w.set))
	}
	need := min(orOne(group.Spec.MinAvailable), group.Spec.Replicas)
	breached(&s.Conditions, group.Generation, s.AvailableReplicas, need, "replicas available",
		constants.ConditionReasonInsufficientAvailablePCSGReplicas, constants.ConditionReasonSufficientAvailablePCSGReplicas)
	return s
}

// setStatus counts the replicas of the set. A change of its templates begins an update, and the generation that brought
// it counts as observed only when that is over.
func (w world) setStatus() grovev1alpha1.PodCliqueSetStatus {
	s := *w.set.Status.DeepCopy()
	s.Selector = new(selector(common.LabelPartOfKey, w.set.Name))
	s.Replicas, s.AvailableReplicas, s.UpdatedReplicas = w.set.Spec.Replicas, 0, 0
	s.PodGangStatutes = nil
	for replica := range int(w.set.Spec.Replicas) {
		h := w.health(func(p place) bool { return p.replica == replica && guaranteed(p) })
		s.AvailableReplicas += h.available
		s.UpdatedReplicas += w.health(func(p place) bool { return p.replica == replica }).updated
		phase := grovev1alpha1.PodGangPending
		switch {
		case h.available == 1:
			phase = grovev1alpha1.PodGangRunning
		case h.scheduled == 1:
			phase = grovev1alpha1.PodGangStarting
		}
		s.PodGangStatutes = append(s.PodGangStatutes, grovev1alpha1.PodGangStatus{Name: serviceName(w.set, replica), Phase: phase})
	}
	now := setRevision(w.set)
	if s.CurrentGenerationHash != nil && *s.CurrentGenerationHash != now {
		s.RollingUpdateProgress = &grovev1alpha1.PodCliqueSetRollingUpdateProgress{UpdateStartedAt: metav1.NewTime(w.now)}
	}
	s.CurrentGenerationHash = &now
	if progress := s.RollingUpdateProgress; progress != nil && progress.UpdateEndedAt == nil {
		if w.updating() {
			return s
		}
		progress.UpdateEndedAt = new(metav1.NewTime(w.now))
	}
	s.ObservedGeneration = new(w.set.Generation)
	return s
}

// updating says that a clique is not yet what its template asks for, or that its pods are not.
func (w world) updating() bool {
	return slices.ContainsFunc(w.places(), func(p place) bool {
		clique := w.cliques[p.name()]
		return clique == nil || !w.current(p, clique) || !w.complete(clique)
	})
}

// guaranteed leaves out the replicas of a group beyond those that its set cannot do without.
func guaranteed(p place) bool {
	return p.group == nil || p.groupReplica < int(orOne(p.group.Spec.MinAvailable))
}

// health is 1 or 0 for each thing that can be said of all cliques of a replica.
type health struct{ exists, scheduled, available, updated int32 }

func (w world) health(belongs func(place) bool) health {
	var cliques int
	h := health{1, 1, 1, 1}
	for _, p := range w.places() {
		if !belongs(p) {
			continue
		}
		cliques++
		clique := w.cliques[p.name()]
		if clique == nil || clique.DeletionTimestamp != nil {
			return health{}
		}
		pods, need := w.pods[clique.Name], minAvailable(clique)
		if count(pods, scheduled) < need {
			h.scheduled = 0
		}
		if count(pods, ready) < need {
			h.available = 0
		}
		current := count(pods, func(pod *corev1.Pod) bool { return updated(pod, clique) })
		if current != clique.Spec.Replicas || current != count(pods, alive) || !w.current(p, clique) {
			h.updated = 0
		}
	}
	if cliques == 0 {
		return health{}
	}
	return h
}

func breached(conditions *[]metav1.Condition, generation int64, have, need int32, what, insufficient, sufficient string) {
	condition := metav1.Condition{
		Type: constants.ConditionTypeMinAvailableBreached, Status: metav1.ConditionFalse, Reason: sufficient,
		Message: fmt.Sprintf("%d %s, %d needed", have, what, need), ObservedGeneration: generation,
	}
	if have < need {
		condition.Status, condition.Reason = metav1.ConditionTrue, insufficient
	}
	meta.SetStatusCondition(conditions, condition)
}

func selector(key, value string) string {
	return labels.SelectorFromSet(labels.Set{key: value}).String()
}

// placeOf finds where a live clique stands.
func placeOf(places []place, name string) (place, bool) {
	i := slices.IndexFunc(places, func(p place) bool { return p.name() == name })
	if i < 0 {
		return place{}, false
	}
	return places[i], true
}
