package world

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Attention is since when a rollout has been looked at, moved on by the breaks. Nobody takes its
// steps while the operator or the API server is away, and that it makes no progress then
// is not the candidate's fault. Nor is it that a model takes long to load.
type Attention struct {
	Since time.Time
	last  time.Time
}

// mostAway is how much of the time without a look counts: a rollout has one a second.
const mostAway = time.Minute

// Looked is the attention after one more look, at what was told of a rollout last and at
// the pods. A break counts as mostAway: looks that are far apart, as after errors, come to
// a deadline too. What was before the last progress is no part of that, and must not make
// up for a break.
func (a Attention) Looked(now time.Time, st *v1alpha1.RolloutStatus, pods []corev1.Pod) Attention {
	var progressed time.Time
	if st != nil && st.ProgressedAt != nil {
		progressed = st.ProgressedAt.Time
	}
	if a.last.IsZero() {
		a.Since = now
	} else if away := now.Sub(a.last); away > mostAway {
		if progressed.After(a.Since) {
			a.Since = progressed
		}
		a.Since = a.Since.Add(away - mostAway)
	}
	if st != nil && loads(st.Target, pods, now.Sub(progressed)) {
		a.Since = now
	}
	a.last = now
	return a
}

// loads reports whether a pod of a generation starts for the first time, and has the time
// of its startup probe since the last progress: a group that crashes has new pods every time.
func loads(generation string, pods []corev1.Pod, waited time.Duration) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelGeneration] == generation && int64(waited/time.Second) < startupSeconds(p) &&
			workload.Starting(snapshot.Evidence{Pods: []corev1.Pod{p}})
	})
}

// startupSeconds is how long the containers of a pod may take to start. As a Duration it
// would not always be in range.
func startupSeconds(p corev1.Pod) int64 {
	var most int64
	for _, c := range p.Spec.Containers {
		if probe := c.StartupProbe; probe != nil {
			most = max(most, int64(probe.InitialDelaySeconds)+int64(probe.PeriodSeconds)*int64(probe.FailureThreshold))
		}
	}
	return most
}
