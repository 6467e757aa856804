package status

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// rolloutStatus tells how far the rollout of a graph's workers is. One that has ended
// stays as it was told last.
func rolloutStatus(last *v1alpha1.RolloutStatus, s managed.State, now metav1.Time) *v1alpha1.RolloutStatus {
	rolling := s.Rolling()
	if len(rolling) == 0 {
		return completed(last, s, now)
	}
	lead := leading(rolling)
	st := &v1alpha1.RolloutStatus{
		Revision: s.Revision, Target: string(lead.World.Target()), Stable: string(lead.World.Stable),
		Phase: string(lead.Step.Phase), Reason: string(lead.Step.Reason), Step: position(rolling, lead).String(),
		StartedAt: &now, ProgressedAt: &now, Roles: map[string]v1alpha1.RolloutRoleStatus{}, GPUs: &v1alpha1.RolloutGPUs{},
	}
	for _, c := range rolling {
		count(st, c)
	}
	st.GPUs.Peak = st.GPUs.Now
	slices.SortFunc(st.Generations, func(a, b v1alpha1.RolloutGeneration) int { return cmp.Compare(a.ID, b.ID) })
	if last != nil && (!ended(last.Phase) || ended(st.Phase)) {
		continued(st, last)
	}
	if j := s.Judgement; j != nil {
		st.Analysis = j.Told(st.Analysis)
	}
	st.Reason, st.Message = why(lead, s, st.Step)
	return st
}

// leading is the cell by which a rollout of several is told: one that is under way. Of those
// with its target it is one that has not reached its step, so that nothing is told of all
// before it is so, and then the least far.
func leading(rolling []managed.CellState) managed.CellState {
	at := slices.IndexFunc(rolling, underWay)
	if at < 0 {
		return rolling[0]
	}
	lead := rolling[at]
	for _, c := range rolling[at+1:] {
		if underWay(c) && c.World.Target() == lead.World.Target() && lessFar(c, lead) {
			lead = c
		}
	}
	return lead
}

func underWay(c managed.CellState) bool { return !ended(string(c.Step.Phase)) }

// asleep reports whether a cell waits for replicas to be desired: it has no step that
// others would have to wait at.
func asleep(c managed.CellState) bool { return c.Step.Reason == generation.ReasonNothingDesired }

// lessFar reports whether a cell has come less far in the steps than another.
func lessFar(a, b managed.CellState) bool {
	if asleep(a) || asleep(b) {
		return !asleep(a)
	}
	held := func(c managed.CellState) bool { return c.Step.Phase == generation.PhaseHeld }
	if held(a) != held(b) {
		return held(b)
	}
	step := func(c managed.CellState) int {
		if c.Position.Steps == 0 {
			return math.MaxInt // it has none to wait at
		}
		return c.Position.Step
	}
	return step(a) < step(b)
}

// position is the step that a rollout of several cells is told to be at: the earliest of
// those with one target. All of them go on from it, and those that have passed it, or
// cannot stop there, find their own again.
func position(rolling []managed.CellState, lead managed.CellState) policy.Position {
	at := lead.Position
	for _, c := range rolling {
		if p := c.Position; p.Steps > 0 && !asleep(c) && c.World.Target() == lead.World.Target() && (at.Steps == 0 || p.Step < at.Step) {
			at = p
		}
	}
	return at
}

func ended(phase string) bool { return generation.Phase(phase).Ended() }

// continued takes over what is remembered of the same rollout.
func continued(st, last *v1alpha1.RolloutStatus) {
	st.StartedAt, st.Analysis = last.StartedAt, last.Analysis
	if st.Target == last.Target {
		st.Revision = cmp.Or(st.Revision, last.Revision)
	}
	if last.GPUs != nil {
		st.GPUs.Peak = max(st.GPUs.Peak, last.GPUs.Peak)
	}
	for name, role := range st.Roles {
		if before, known := last.Roles[name]; known {
			role.Lowest = min(role.Lowest, before.Lowest)
			st.Roles[name] = role
		}
	}
	if !progressed(last, st) {
		st.ProgressedAt = last.ProgressedAt
	}
}

// completed is a rollout after which one generation is left, the graph's own. Of one that
// nobody carries on, as without generations, nothing is told.
func completed(last *v1alpha1.RolloutStatus, s managed.State, now metav1.Time) *v1alpha1.RolloutStatus {
	if last != nil && !ended(last.Phase) && len(s.Cells) == 0 {
		return nil
	}
	if last == nil || last.Phase == string(generation.PhaseCompleted) || len(s.Live) == 0 {
		return last
	}
	st := last.DeepCopy()
	st.Phase, st.Reason, st.Message, st.Step, st.ProgressedAt = string(generation.PhaseCompleted), "", "", "", &now
	st.Revision = cmp.Or(s.Revision, st.Revision)
	if !slices.Contains(s.Live, st.Target) {
		st.Target = s.Live[0]
	}
	st.Stable = st.Target
	st.Generations = slices.DeleteFunc(st.Generations, func(g v1alpha1.RolloutGeneration) bool { return !slices.Contains(s.Live, g.ID) })
	for i := range st.Generations {
		st.Generations[i].Share = "100%"
	}
	return st
}

// capacity is what serves in a world, as far as is told: replicas of the stable
// generation that have just become ready count, as they did before the rollout began. The
// planner waits until they can be relied upon.
func capacity(w generation.World) (replicas, effective []int) {
	w.Generations = slices.Clone(w.Generations)
	for i, g := range w.Generations {
		if g.ID != w.Stable {
			continue
		}
		roles := slices.Clone(g.Roles)
		for j := range roles {
			roles[j].Routable = roles[j].Likely()
		}
		w.Generations[i].Roles = roles
	}
	return generation.Capacity(w)
}

// floors are the least that must serve: nothing of a role that came with the candidate as
// long as the stable generation serves without it.
func floors(w generation.World) []int {
	all := generation.Floor(w.Roles)
	for i := range all {
		if w.Lacks(i) {
			all[i] = 0
		}
	}
	return all
}

// count adds what a cell has.
func count(st *v1alpha1.RolloutStatus, c managed.CellState) {
	replicas, effective := capacity(c.World)
	floor := floors(c.World)
	for i, role := range c.World.Roles {
		n := int32(min(replicas[i], effective[i]))
		st.Roles[role.Name] = v1alpha1.RolloutRoleStatus{Desired: int32(role.Desired), Floor: int32(floor[i]), Effective: n, Lowest: n}
	}
	entries := 0
	share := func(g generation.Generation) int {
		n := 0
		if !c.World.Complete(g.ID) {
			return 0
		}
		for i, r := range g.Roles {
			if c.World.Roles[i].Entry {
				n += min(r.Routable, r.Want)
			}
		}
		return n
	}
	for _, g := range c.World.Generations {
		entries += share(g)
	}
	for _, g := range c.World.Generations {
		at := slices.IndexFunc(st.Generations, func(o v1alpha1.RolloutGeneration) bool { return o.ID == string(g.ID) })
		if at < 0 {
			at = len(st.Generations)
			st.Generations = append(st.Generations, v1alpha1.RolloutGeneration{ID: string(g.ID), Revision: c.Revisions[g.ID], Roles: map[string]v1alpha1.RolloutReplicas{}})
		}
		one := &st.Generations[at]
		one.Share = fmt.Sprintf("%d%%", 100*share(g)/max(1, entries))
		for i, r := range g.Roles {
			name := c.World.Roles[i].Name
			one.Roles[name] = v1alpha1.RolloutReplicas{
				Replicas: int32(r.Want), Starting: int32(max(0, r.Want-r.Routable)), Routable: int32(r.Routable),
				Leaving: int32(max(0, r.Exist-r.Want)), Failing: int32(c.Failing[g.ID][name]),
			}
			st.GPUs.Now += int32(max(r.Exist, r.Want) * c.World.Roles[i].GPUs)
		}
	}
}

// progressed reports whether a rollout is nearer to its end than it was: more of the
// target serves, or less is left of the others. One that comes to stand at a step does so
// whatever it stood at before: the time of the step begins.
func progressed(was, is *v1alpha1.RolloutStatus) bool {
	if was.Target != is.Target || was.Phase != is.Phase || was.Step != is.Step || world.AtStep(is) && !world.AtStep(was) {
		return true
	}
	served, left := world.Distance(was)
	serves, leaves := world.Distance(is)
	return serves > served || leaves < left
}

// why says what a rollout waits for, or why it was given up.
func why(c managed.CellState, s managed.State, step string) (reason, message string) {
	reason = string(c.Step.Reason)
	target := c.World.Target()
	switch phase := c.Step.Phase; {
	case s.Failure.Reason != "":
		return string(s.Failure.Reason), s.Failure.Message
	case phase == generation.PhaseAborting || phase == generation.PhaseAborted:
		return string(analysis.AbortRequested), fmt.Sprintf("generation %s was aborted earlier; generation %s serves until the spec changes or a retry is asked for", c.World.Spec, target)
	case c.Step.Reason == generation.ReasonLevel:
		message = fmt.Sprintf("generation %s is at step %s", target, step)
		if c.Position.Waits == policy.WaitsForAnalysis {
			message += ", and too few of its requests were seen to pass it" // how many changes with every look
		}
		return string(c.Position.Waits), message
	case c.Step.Reason == generation.ReasonNoSpareGPU:
		return reason, fmt.Sprintf("no node has room for another replica of generation %s, and none may be taken away first: free some, or let one be missing (%s)", target, v1alpha1.AnnotationMaxUnavailable)
	case c.Step.Reason == generation.ReasonNotAdmitted:
		return reason, fmt.Sprintf("frontends send no requests to replicas of generation %s that have long been ready (%s): they may refuse its model card", target, strings.Join(refused(c.World), ", "))
	case c.Step.Reason == generation.ReasonNoPath:
		return reason, fmt.Sprintf("no step towards generation %s keeps what has to serve", target)
	case c.Step.Reason == generation.ReasonNothingDesired:
		return reason, fmt.Sprintf("no replicas are desired, or none that requests are divided over, as while a graph sleeps; generation %s is kept, and the rollout goes on with them", c.World.Stable)
	case phase == generation.PhaseHeld:
		return reason, "paused by annotation " + v1alpha1.AnnotationRolloutPaused
	case phase == generation.PhaseStarting:
		return reason, fmt.Sprintf("waiting for the first replicas of generation %s to serve", target)
	case phase == generation.PhaseDraining:
		return reason, fmt.Sprintf("generation %s serves in full; the others are leaving", target)
	default:
		return reason, fmt.Sprintf("generation %s takes over", target)
	}
}

// refused are the services of the target of which frontends refuse some.
func refused(w generation.World) []string {
	var names []string
	for _, g := range w.Generations {
		for i, r := range g.Roles {
			if g.ID == w.Target() && r.Refused > 0 {
				names = append(names, w.Roles[i].Name)
			}
		}
	}
	return names
}

// rollingUpdate is the same in the words of the original.
func rollingUpdate(last *v1alpha1.RollingUpdateStatus, st *v1alpha1.RolloutStatus) *v1alpha1.RollingUpdateStatus {
	if st == nil {
		return last
	}
	u := &v1alpha1.RollingUpdateStatus{StartTime: st.StartedAt}
	switch generation.Phase(st.Phase) {
	case generation.PhaseStarting:
		u.Phase = "Pending"
	case generation.PhaseCompleted:
		u.Phase, u.EndTime = "Completed", st.ProgressedAt
	case generation.PhaseAborted:
		u.Phase, u.EndTime = "Failed", st.ProgressedAt
	default:
		u.Phase = "InProgress"
	}
	for name, role := range st.Roles {
		rest, updated := int32(0), false
		for _, g := range st.Generations {
			if g.ID == st.Target {
				updated = g.Roles[name].Routable >= role.Desired
			} else {
				rest += g.Roles[name].Replicas + g.Roles[name].Leaving
			}
		}
		if updated && rest == 0 || u.Phase == "Completed" {
			u.UpdatedServices = append(u.UpdatedServices, name)
		}
	}
	slices.Sort(u.UpdatedServices)
	return u
}

// serving tells whether cells have what has to serve; nothing while no worker of the
// graph was ever rolled out.
func serving(g *graph.Graph, st v1alpha1.DynamoGraphDeploymentStatus, s managed.State) (v condition, told bool) {
	if st.Rollout == nil || g == nil || len(s.Cells) == 0 {
		return v, false
	}
	var low []string
	note := func(name string, has, floor int) {
		if has < floor {
			low = append(low, fmt.Sprintf("%s has %d of at least %d", name, has, floor))
		}
	}
	for _, c := range s.Cells {
		if c.Cell.Rolling() {
			replicas, _ := capacity(c.World)
			for i, floor := range floors(c.World) {
				note(c.World.Roles[i].Name, replicas[i], floor)
			}
			continue
		}
		var roles []generation.Role
		for _, o := range g.Components {
			if slices.Contains(c.Cell.Services, o.Name) {
				_, unavailable := world.Tolerance(o)
				roles = append(roles, generation.Role{Name: o.Name, Desired: int(o.Replicas), Unavailable: unavailable})
			}
		}
		for i, floor := range generation.Floor(roles) {
			ready := int32(0)
			if n := st.Services[roles[i].Name].ReadyReplicas; n != nil {
				ready = *n
			}
			note(roles[i].Name, int(ready), floor)
		}
	}
	if len(low) > 0 {
		return condition{false, v1alpha1.ReasonBelowFloor, strings.Join(low, "; ")}, true
	}
	return condition{true, v1alpha1.ReasonAtFloor, "every cell of workers has at least what a rollout has to leave"}, true
}

// rolloutStage is the stage of a graph whose workers are being rolled out, or stay
// against its spec; none of one that rolls nothing.
func rolloutStage(st *v1alpha1.RolloutStatus, s managed.State) (v condition, told bool) {
	if len(s.Rolling()) == 0 || st == nil {
		return v, false
	}
	message := fmt.Sprintf("%s: %s", st.Phase, st.Message)
	switch generation.Phase(st.Phase) {
	case generation.PhaseAborted, generation.PhaseAborting:
		return condition{false, v1alpha1.StageRolloutAborted, fmt.Sprintf("%s; generation %s serves", st.Message, st.Stable)}, true
	case generation.PhaseBlocked:
		return condition{true, v1alpha1.StageRolloutBlocked, message}, true
	case generation.PhaseHeld:
		return condition{true, v1alpha1.StageRolloutHeld, message}, true
	default:
		return condition{true, v1alpha1.StageRollingOut, message}, true
	}
}

// overGenerations adds up what several generations have of a service, as the original
// does: what is updated is of the target alone.
func overGenerations(seen v1alpha1.ServiceReplicaStatus, name string, s managed.State) v1alpha1.ServiceReplicaStatus {
	for _, c := range s.Rolling() {
		if !slices.Contains(c.Cell.Services, name) {
			continue
		}
		seen.ComponentNames, seen.Replicas, seen.UpdatedReplicas = nil, 0, 0
		seen.ScheduledReplicas = nil // counted by each workload for itself, and not by their generations
		ready, available := int32(0), int32(0)
		for i, g := range c.World.Generations {
			at := slices.IndexFunc(c.World.Roles, func(r generation.Role) bool { return r.Name == name })
			m, there := c.Cell.Member(g.ID, name)
			if at < 0 || !there {
				continue
			}
			r := c.World.Generations[i].Roles[at]
			seen.ComponentNames = append(seen.ComponentNames, m.Runs())
			seen.Replicas += int32(r.Exist)
			ready += int32(r.Ready)
			available += int32(r.Routable)
			if g.ID == c.World.Target() {
				seen.UpdatedReplicas = int32(r.Exist)
			}
		}
		seen.ReadyReplicas = &ready
		if seen.AvailableReplicas != nil {
			seen.AvailableReplicas = &available
		}
		slices.Sort(seen.ComponentNames)
	}
	return seen
}
