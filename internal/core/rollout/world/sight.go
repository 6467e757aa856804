package world

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
)

// Sight is what was seen of the pods of a graph, and when.
type Sight struct {
	Pods []corev1.Pod
	// Crashes are those that were seen lately.
	Crashes []Crash
	// Since is when the rollout came further than before, or was first looked at, moved on by
	// the time in which nobody did, or its candidate loaded. It is zero if that is not known.
	Since time.Time
	// Reached is when the step of the rollout was, moved on by the time in which it was left
	// since; zero if it has not been yet, or that is not known.
	Reached time.Time
	// Admission is what the frontends say of the workers, and Paired what those of each
	// generation say, which know the workers of that alone.
	Admission Admission
	Paired    map[generation.ID]Admission
	Now       time.Time
	// NoSpareAfter is how long a pod may wait for a node before there is none for it.
	NoSpareAfter time.Duration
	// AdmissionDeadline is how long a worker and all frontends may be ready, and these may not
	// send it requests, before they refuse it; zero if they never do.
	AdmissionDeadline time.Duration
}

// Settled is how long a worker has to be ready to count where no frontend can be asked
// whether it sends it requests, and how long a frontend has to be to be asked: one that
// has just started knows no worker yet.
const Settled = 10 * time.Second

// LeastReady is how long a worker has to be ready to count at all, in seconds, unless its
// service says otherwise: one that crashes on its first requests is ready before.
const LeastReady = "5"

// MinReady is how long a worker has to be ready to count.
func MinReady(c graph.Component) time.Duration {
	n, err := strconv.ParseUint(cmp.Or(c.ObjectAnnotations()[v1alpha1.AnnotationMinReadySeconds], LeastReady), 10, 16)
	if err != nil {
		return 0 // validation refuses what is no number
	}
	return time.Duration(n) * time.Second
}

// World is what the planner goes by, but for what is on record.
func (c Cell) World(g *graph.Graph, s Sight) generation.World {
	w := generation.World{Spec: c.Spec, Paired: c.Paired}
	var parts []graph.Component
	for _, name := range c.Services {
		at := slices.IndexFunc(g.Components, func(o graph.Component) bool { return o.Name == name })
		if at < 0 {
			continue
		}
		of := g.Components[at]
		surge, unavailable := Tolerance(of)
		w.Roles = append(w.Roles, generation.Role{
			Name: name, Entry: slices.Contains(c.Entries, name), Desired: int(of.Replicas), Surge: surge, Unavailable: unavailable,
			GPUs: of.Resources.GPUs * int(max(1, of.Nodes)),
		})
		parts = append(parts, of)
	}
	for _, id := range c.Live {
		seen := generation.Generation{ID: id}
		var ready []int
		for _, of := range parts {
			r := c.replicas(id, of.Name, s)
			_, there := c.members[id][of.Name]
			r.Absent = !there && id != c.Spec // only what is asked for is made
			ready = append(ready, r.Ready)
			seen.Roles = append(seen.Roles, r)
		}
		for i, of := range parts {
			least := MinReady(of)
			relied := c.readyFor(id, of.Name, s, max(least, Settled))
			seen.Roles[i].Settling = seen.Roles[i].Ready - relied
			said := c.admission(id, s)
			if admitted, known := said.admitted(parts, ready, i, of.NamespaceOf(string(id)), c.Paired); known {
				seen.Roles[i].Routable = min(c.readyFor(id, of.Name, s, least), admitted)
				if s.AdmissionDeadline > 0 && s.Now.Sub(said.Since) >= s.AdmissionDeadline {
					lately, _ := Admission{Known: true, Workers: said.Lately}.admitted(parts, ready, i, of.NamespaceOf(string(id)), c.Paired)
					seen.Roles[i].Refused = max(0, c.readyFor(id, of.Name, s, max(least, s.AdmissionDeadline))-max(admitted, lately))
				}
				continue
			}
			seen.Roles[i].Routable = relied
		}
		w.Generations = append(w.Generations, seen)
	}
	return w
}

// admission is what those frontends say that send requests to a generation.
func (c Cell) admission(id generation.ID, s Sight) Admission {
	if c.Paired {
		return s.Paired[id]
	}
	return s.Admission
}

// Frontends are those of a generation that can tell which workers they know: the ones that
// have had the time to find them, or all that are ready before any has. What those do not
// know yet does not serve yet.
func (c Cell) Frontends(id generation.ID, s Sight) []corev1.Pod {
	var settled, ready []corev1.Pod
	for _, service := range c.Services {
		if m, there := c.members[id][service]; !there || m.Stored.Role != graph.RoleFrontend {
			continue
		}
		for _, group := range c.groups(id, service, s) {
			for _, p := range group {
				if ReadyFor(p, Settled, s.Now) {
					settled = append(settled, p)
				}
				if Ready(p) {
					ready = append(ready, p)
				}
			}
		}
	}
	if len(settled) > 0 {
		return settled
	}
	return ready
}

// Tolerance is how many replicas more than desired a worker may have while it is
// replaced, and how many fewer may serve, in the words of Deployments: the first rounds
// up, the second down. Both zero would lead nowhere, and means one more.
func Tolerance(c graph.Component) (surge, unavailable int) {
	if c.Recreated() {
		return 0, int(c.Replicas)
	}
	annotations := c.ObjectAnnotations()
	share := func(key string, up bool) int {
		text := annotations[key]
		if text == "" {
			text = "25%"
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(new(intstr.Parse(text)), int(c.Replicas), up)
		if err != nil || n < 0 {
			return 0 // validation refuses what is no number
		}
		return n
	}
	surge, unavailable = share(v1alpha1.AnnotationMaxSurge, true), share(v1alpha1.AnnotationMaxUnavailable, false)
	if surge == 0 && unavailable == 0 {
		surge = 1
	}
	return surge, min(unavailable, int(c.Replicas))
}

// replicas counts those of a service in a generation, but for those that are routable.
func (c Cell) replicas(id generation.ID, service string, s Sight) generation.Replicas {
	m, there := c.members[id][service]
	if !there {
		return generation.Replicas{}
	}
	r := generation.Replicas{Want: int(m.Replicas)}
	for _, group := range c.groups(id, service, s) {
		r.Exist++
		n, numbered := group.ordinal()
		switch {
		case group.whole(m.Stored.Nodes):
			r.Ready++
			if numbered {
				r.Ordinals = append(r.Ordinals, n)
			}
		case slices.ContainsFunc(group, func(p corev1.Pod) bool { return unplaced(p, s.Now, s.NoSpareAfter) }):
			r.Unschedulable++
		}
	}
	slices.Sort(r.Ordinals)
	return r
}

// Runs reports whether anything of a generation has replicas, or is to.
func (c Cell) Runs(id generation.ID, s Sight) bool {
	return slices.ContainsFunc(c.Services, func(service string) bool {
		r := c.replicas(id, service, s)
		return r.Want > 0 || r.Exist > 0
	})
}

// readyFor counts the replicas that have been ready for so long.
func (c Cell) readyFor(id generation.ID, service string, s Sight, least time.Duration) int {
	n := 0
	for _, group := range c.groups(id, service, s) {
		if group.whole(c.members[id][service].Stored.Nodes) && !slices.ContainsFunc(group, func(p corev1.Pod) bool { return !ReadyFor(p, least, s.Now) }) {
			n++
		}
	}
	return n
}

// Failing counts the replicas of a service in a generation that do not come up.
func (c Cell) Failing(id generation.ID, service string, s Sight) int {
	n := 0
	for _, group := range c.groups(id, service, s) {
		if slices.ContainsFunc(group, backingOff) {
			n++
		}
	}
	return n
}

// group are the pods of one replica.
type group []corev1.Pod

// groups are the replicas of a service in a generation. Pods of frontends that were made
// before their graph was paired have no label of it.
func (c Cell) groups(id generation.ID, service string, s Sight) []group {
	label := id
	if m, there := c.members[id][service]; there && m.Stored.Role == graph.RoleFrontend {
		label = generation.ID(m.Stored.Generation)
	}
	return groups(s.Pods, label, service)
}

// groups are the replicas of a service in a generation, those that leave among them.
// Pods that have ended hold nothing.
func groups(pods []corev1.Pod, id generation.ID, service string) []group {
	var all []group
	at := map[string]int{}
	for _, p := range pods {
		if p.Labels[v1alpha1.LabelComponent] != service || p.Labels[v1alpha1.LabelGeneration] != string(id) ||
			p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		key := p.Name
		if set := p.Labels[lwsv1.SetNameLabelKey]; set != "" {
			key = set + "/" + p.Labels[lwsv1.GroupIndexLabelKey]
		}
		if group := p.Labels[common.LabelPodCliqueScalingGroup]; group != "" {
			key = group + "/" + p.Labels[common.LabelPodCliqueScalingGroupReplicaIndex]
		}
		i, known := at[key]
		if !known {
			i = len(all)
			at[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], p)
	}
	return all
}

// ordinal is that of a replica, if whoever scales it goes by that: the highest go first,
// whether or not they are ready. Of pods by themselves those go first that are not.
func (g group) ordinal() (int, bool) {
	labels := g[0].Labels
	var text string
	switch {
	case labels[common.LabelPodCliqueScalingGroup] != "":
		text = labels[common.LabelPodCliqueScalingGroupReplicaIndex]
	case labels[lwsv1.SetNameLabelKey] != "":
		text = cmp.Or(labels[v1alpha1.LabelGroupInstance], labels[lwsv1.GroupIndexLabelKey]) // the former is a set's own, of one group
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// whole reports whether all pods of a replica are there to stay, and ready.
func (g group) whole(nodes int32) bool {
	return len(g) >= int(max(1, nodes)) && !slices.ContainsFunc(g, func(p corev1.Pod) bool {
		return !Ready(p)
	})
}

// Ready reports whether a pod is ready, and there to stay.
func Ready(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && ready(p).Status == corev1.ConditionTrue
}

// ReadyFor reports whether a pod has been ready for so long, and is there to stay.
func ReadyFor(p corev1.Pod, least time.Duration, now time.Time) bool {
	return Ready(p) && now.Sub(ready(p).LastTransitionTime.Time) >= least
}

// LastReady is when the last of some pods became ready; zero of none.
func LastReady(pods []corev1.Pod) time.Time {
	var last time.Time
	for _, p := range pods {
		if at := ready(p).LastTransitionTime.Time; at.After(last) {
			last = at
		}
	}
	return last
}

func ready(p corev1.Pod) corev1.PodCondition { return condition(p, corev1.PodReady) }

func condition(p corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return corev1.PodCondition{}
	}
	return p.Status.Conditions[at]
}

// unplaced reports whether a pod has waited for a node for so long that none is
// expected.
func unplaced(p corev1.Pod, now time.Time, least time.Duration) bool {
	c := condition(p, corev1.PodScheduled)
	return p.DeletionTimestamp == nil && p.Spec.NodeName == "" && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
		now.Sub(p.CreationTimestamp.Time) >= least
}

func backingOff(p corev1.Pod) bool {
	return p.DeletionTimestamp == nil && slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		w := s.State.Waiting
		return w != nil && (strings.HasSuffix(w.Reason, "BackOff") || strings.HasPrefix(w.Reason, "Err"))
	})
}

// wasReady reports whether a pod that is not ready has been: it is said to be unready
// when it starts, at the latest when its init containers are done, and again only after
// it was ready.
func wasReady(p corev1.Pod) bool {
	now, begun := ready(p), condition(p, corev1.PodInitialized)
	return now.Status == corev1.ConditionFalse && begun.Status == corev1.ConditionTrue && now.LastTransitionTime.After(begun.LastTransitionTime.Time)
}
