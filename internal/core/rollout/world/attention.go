package world

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Attention is since when a rollout has come no further, moved on by breaks. Nobody takes its
// steps while the operator or the API server is away, and that it makes no progress then
// is not the candidate's fault. Nor is it that a model takes long to load.
type Attention struct {
	Since time.Time
	// Reached is when the step of the rollout was, moved on by the time in which it was left
	// for a while, as when it is scaled; zero if it has not been yet.
	Reached time.Time
	step    string
	last    time.Time
	// furthest is how far it has come, and arrived when it did.
	furthest distance
	arrived  time.Time
}

// mostAway is how much of the time without a look counts: a rollout has one a second.
const mostAway = time.Minute

// Looked is the attention after one more look, at what was told of a rollout last and at
// the pods. A break counts as mostAway: looks that are far apart, as after errors, come to
// a deadline too. What was before the last progress is no part of that, and must not make
// up for a break.
func (a Attention) Looked(now time.Time, st *v1alpha1.RolloutStatus, pods []corev1.Pod) Attention {
	var further bool
	a.furthest, further = a.furthest.with(st)
	switch {
	case a.last.IsZero():
		a.Since, a.arrived = now, now
	case further && st.ProgressedAt != nil:
		a.arrived = workload.Latest(a.arrived, st.ProgressedAt.Time)
		a.Since = workload.Latest(a.Since, a.arrived)
	}
	if away := now.Sub(a.last); away > mostAway && !a.last.IsZero() {
		a.Since = a.Since.Add(away - mostAway)
	}
	if st != nil && rests(st.Phase) {
		a.Since, a.arrived = now, now
	}
	if st != nil && loads(st.Target, pods, now.Sub(a.arrived)) {
		a.Since = now
	}
	a.step, a.Reached = a.stepped(now, st)
	a.last = now
	return a
}

// stepped is the step of a rollout, and when it was reached.
func (a Attention) stepped(now time.Time, st *v1alpha1.RolloutStatus) (step string, reached time.Time) {
	if st == nil || st.Step == "" {
		return "", time.Time{}
	}
	step = st.Target + " " + st.Step
	if step == a.step {
		reached = a.Reached
	}
	switch at := AtStep(st); {
	case at && reached.IsZero():
		reached = st.ProgressedAt.Time
	case !at && !reached.IsZero():
		reached = reached.Add(now.Sub(a.last))
	}
	return step, reached
}

// AtStep reports whether a rollout has all that its step allows, and stays there.
func AtStep(st *v1alpha1.RolloutStatus) bool {
	return st.Phase == string(generation.PhaseHeld) && st.ProgressedAt != nil &&
		st.Reason != string(generation.ReasonPaused) && st.Reason != string(generation.ReasonNothingDesired)
}

// rests reports whether a candidate has nothing to do in a phase: it waits for somebody
// else, or serves in full.
func rests(phase string) bool {
	return slices.Contains([]generation.Phase{generation.PhaseHeld, generation.PhaseDraining}, generation.Phase(phase))
}

// distance is how far a rollout has come at most: how much of its target has served, and
// how little was left of the others. A candidate that crashes and comes back comes no
// further by that.
type distance struct {
	target string
	// blocked says that it has no step to take for what is missing around it, and desired are the replicas to arrive at:
	// with either it begins again.
	blocked       bool
	desired       map[string]int32
	serving, left int32
}

// with is the distance with what is told of a rollout, and whether that is further.
func (d distance) with(st *v1alpha1.RolloutStatus) (distance, bool) {
	if st == nil {
		return distance{}, false
	}
	is := distance{target: st.Target, blocked: st.Phase == string(generation.PhaseBlocked) && st.Reason != string(generation.ReasonNotAdmitted), desired: map[string]int32{}}
	for name, role := range st.Roles {
		is.desired[name] = role.Desired
	}
	is.serving, is.left = Distance(st)
	if d.target != is.target || d.blocked != is.blocked || !maps.Equal(d.desired, is.desired) {
		return is, true
	}
	further := is.serving > d.serving || is.left < d.left
	is.serving, is.left = max(is.serving, d.serving), min(is.left, d.left)
	return is, further
}

// Distance is how much of a rollout's target serves, and how much is left of the others.
func Distance(st *v1alpha1.RolloutStatus) (serving, left int32) {
	for _, g := range st.Generations {
		for _, r := range g.Roles {
			if g.ID == st.Target {
				serving += min(r.Routable, r.Replicas)
			} else {
				left += r.Replicas + r.Leaving
			}
		}
	}
	return serving, left
}

// loads reports whether a pod of a generation starts for the first time, and has the time
// of its startup probe since it came further last: a group that crashes has new pods every time.
func loads(id string, pods []corev1.Pod, waited time.Duration) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelGeneration] == id && int64(waited/time.Second) < startupSeconds(p) &&
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
