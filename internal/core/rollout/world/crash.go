package world

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
)

// Crashes of a generation that has served are too many when there are MostCrashes within
// CrashWindow: one may be the node's.
const (
	MostCrashes = 3
	CrashWindow = 10 * time.Minute
)

// Crash is the end of a container in a pod that has been ready.
type Crash struct {
	Generation, Service, Pod string
	At                       time.Time
}

// CrashLog is what is remembered of the crashes of a graph's pods: they themselves tell of
// the last alone. What came before the first look is not known, nor does it count.
type CrashLog struct {
	pods    map[string]crashed
	crashes []Crash
}

// crashed is what was seen of one pod.
type crashed struct {
	served bool
	// ends are the containers that had ended.
	ends []string
}

// Seen adds what pods show now to what was seen before, and forgets what does not count
// any more.
func (l CrashLog) Seen(pods []corev1.Pod, now time.Time) CrashLog {
	next := CrashLog{pods: map[string]crashed{}}
	for _, c := range l.crashes {
		if now.Sub(c.At) < CrashWindow {
			next.crashes = append(next.crashes, c)
		}
	}
	for _, p := range pods {
		was, known := l.pods[string(p.UID)]
		is := crashed{served: was.served || ready(p).Status == corev1.ConditionTrue || wasReady(p), ends: ended(p)}
		next.pods[string(p.UID)] = is
		if !known || !is.served || p.DeletionTimestamp != nil {
			continue
		}
		for _, id := range is.ends {
			if !slices.Contains(was.ends, id) {
				next.crashes = append(next.crashes, Crash{
					Generation: p.Labels[v1alpha1.LabelGeneration], Service: p.Labels[v1alpha1.LabelComponent], Pod: p.Name, At: now,
				})
			}
		}
	}
	return next
}

// Crashes are those that count.
func (l CrashLog) Crashes() []Crash { return l.crashes }

// ended are the containers of a pod that are known to have ended: of each the one that
// ran last, and the one before. A restart has another id.
func ended(p corev1.Pod) []string {
	var ids []string
	for _, s := range p.Status.ContainerStatuses {
		for _, t := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
			if t != nil {
				ids = append(ids, cmp.Or(t.ContainerID, s.Name))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Crashed is how often a generation has crashed lately, and since its rollout began, after
// it had served, and the pod that did so last.
func (c Cell) Crashed(id generation.ID, s Sight, begun time.Time) (times int, pod string) {
	for _, crash := range s.Crashes {
		if crash.Generation == string(id) && slices.Contains(c.Services, crash.Service) && s.Now.Sub(crash.At) < CrashWindow && crash.At.After(begun) {
			times, pod = times+1, crash.Pod
		}
	}
	return times, pod
}
