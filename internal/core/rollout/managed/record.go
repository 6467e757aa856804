package managed

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// record puts on revisions what must outlive the graph's status: what is rolled out
// before anything of it is made, that it was aborted, and that it is tried again.
func (in Input) record(cell world.Cell, w generation.World, d *Decision) {
	spec := string(cell.Spec)
	in.completeStable(w, d)
	if in.restarts(cell, w) {
		in.recordRestart(cell, w, d)
		return
	}
	of := revision.OfGeneration(in.Revisions, spec)
	aborted := of != nil && revision.ResultOf(of) == revision.Aborted
	if of != nil {
		d.State.Revision = of.Revision
	}
	d.retried(in, of)
	switch {
	case w.Stable == cell.Spec:
		return
	case aborted && in.Policy.Retry == spec:
		d.renew(in, spec, of)
	case aborted:
		d.State.Failure = failureOf(of)
		return
	case of == nil || revision.ResultOf(of) != revision.Undecided:
		d.renew(in, spec, of)
	case in.aborts(d.State.Failure):
		d.abort(in, of)
	}
}

// numbers are those of the revisions of a cell's generations, of which one may be made just
// now. A restart has that of the spec, until it was aborted.
func (in Input) numbers(cell world.Cell, w generation.World, d *Decision) map[generation.ID]int64 {
	all := slices.Clone(in.Revisions)
	for _, r := range d.Record {
		if r.New {
			all = append(all, r.Revision)
		}
	}
	numbers := map[generation.ID]int64{}
	for _, id := range append(slices.Clone(cell.Live), cell.Spec) {
		of := revision.OfGeneration(all, string(id))
		if of == nil && id == cell.Spec && in.restarts(cell, w) {
			of = revision.OfGeneration(all, string(w.Stable))
		}
		if of != nil {
			numbers[id] = of.Revision
		}
	}
	return numbers
}

// begins reports whether a rollout of what a cell asks for is to be recorded as a new one.
func (in Input) begins(cell world.Cell) bool {
	of := revision.OfGeneration(in.Revisions, string(cell.Spec))
	return of == nil || revision.ResultOf(of) != revision.Undecided
}

// begun is when a candidate that was rolled out before is again, as in a retry: what it did
// earlier is not held against it. It is zero of one that is for the first time.
func (in Input) begun(id generation.ID) time.Time {
	of := revision.OfGeneration(in.Revisions, string(id))
	if of == nil {
		return time.Time{}
	}
	at := revision.RecordOf(of).StartedAt
	switch revision.ResultOf(of) {
	case revision.Aborted:
		return in.Sight.Now // it is about to be
	case revision.Superseded: // by the retry of a restart
		at = revision.RecordOf(of).EndedAt
	}
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

// recordRestart puts on a revision of its own that a restart was aborted; the one of the
// spec tells of the generation that serves. What a restart arrives at is handed over to it.
func (in Input) recordRestart(cell world.Cell, w generation.World, d *Decision) {
	spec := string(cell.Spec)
	if of := revision.OfGeneration(in.Revisions, string(w.Stable)); of != nil {
		d.State.Revision = of.Revision
	}
	of := revision.OfGeneration(in.Revisions, spec)
	d.retried(in, of)
	switch aborted := of != nil && revision.ResultOf(of) == revision.Aborted; {
	case aborted && in.Policy.Retry == spec:
		d.end(of, revision.Superseded, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))})
		d.forget(in, spec)
	case aborted:
		d.State.Failure, d.State.Revision = failureOf(of), of.Revision
	case in.aborts(d.State.Failure):
		fresh := of == nil
		if fresh {
			var err error
			if of, err = revision.OfRestart(in.Owner, spec, revision.Next(in.Revisions)); err != nil {
				return // what came as JSON can be encoded
			}
		}
		d.State.Revision = of.Revision
		d.abort(in, of)
		d.Record[len(d.Record)-1].New = fresh
	}
}

// aborts reports whether a candidate that failed is given up, rather than held.
func (in Input) aborts(f Failure) bool {
	return f.Reason != "" && (in.Policy.OnFailure != policy.OnFailureHold || f.Reason == analysis.AbortRequested)
}

// abort records why a revision was given up.
func (d *Decision) abort(in Input, of *appsv1.ControllerRevision) {
	d.end(of, revision.Aborted, in.certified(of, revision.Record{
		Reason: string(d.State.Failure.Reason), Message: d.State.Failure.Message, EndedAt: new(metav1.NewTime(in.Sight.Now)),
	}))
}

// failureOf is why an aborted revision was given up.
func failureOf(of *appsv1.ControllerRevision) Failure {
	was := revision.RecordOf(of)
	return Failure{analysis.AbortReason(was.Reason), was.Message}
}

// retried takes back the order to try a revision again once that is seen to be so: it is
// written before revisions are, and an operator may end in between.
func (d *Decision) retried(in Input, of *appsv1.ControllerRevision) {
	if of != nil && revision.ResultOf(of) != revision.Aborted && in.Policy.Retry == revision.Generation(of) && in.Policy.Retry != "" {
		d.Retract = append(d.Retract, v1alpha1.AnnotationRolloutRetry)
	}
}

// forget takes back the orders about a generation to pass and to abort. Its id is a digest
// of the spec, and names the next rollout of that too.
func (d *Decision) forget(in Input, id string) {
	note := func(annotation string) {
		if !slices.Contains(d.Retract, annotation) {
			d.Retract = append(d.Retract, annotation)
		}
	}
	if in.Policy.Abort == id && id != "" {
		note(v1alpha1.AnnotationRolloutAbort)
	}
	if in.Policy.Promote != nil && in.Policy.Promote.Generation == id {
		note(v1alpha1.AnnotationRolloutPromote)
	}
}

// handOver has the revision of the spec tell of the generation that a restart has arrived
// at, when the one before goes.
func (in Input) handOver(state CellState, d *Decision) {
	w := state.World
	if state.Step.Action != generation.Delete || state.Step.Generation != w.Stable || w.Target() != w.Spec || !in.restarts(state.Cell, w) {
		return
	}
	if of := revision.OfGeneration(in.Revisions, string(w.Stable)); of != nil {
		d.Record = append(d.Record, Recording{Revision: revision.WithGeneration(of, string(w.Spec))})
	}
}

// completeStable records that the generation that a rollout begins from was arrived at:
// the next change may come before everything of it was seen to be ready, and there must
// be something to go back to.
func (in Input) completeStable(w generation.World, d *Decision) {
	if w.Stable == w.Spec || graph.RecordedGeneration(in.Owner) != string(w.Stable) {
		return
	}
	if of := revision.OfGeneration(in.Revisions, string(w.Stable)); of != nil && revision.ResultOf(of) == revision.Undecided {
		d.end(of, revision.Completed, in.certified(of, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))}))
	}
}

// renew records that the spec is rolled out as a generation. The same spec has the same
// revision.
func (d *Decision) renew(in Input, spec string, of *appsv1.ControllerRevision) {
	now, err := revision.Build(in.Owner, spec, revision.Next(in.Revisions))
	if err != nil {
		return // what came as JSON can be encoded
	}
	d.State.Revision = now.Revision
	if slices.ContainsFunc(d.Record, func(r Recording) bool { return r.New && r.Revision.Name == now.Name }) {
		return // another cell begins with it
	}
	if of == nil || of.Name != now.Name {
		at := slices.IndexFunc(in.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == now.Name })
		if at < 0 {
			d.Record = append(d.Record, Recording{Revision: now, New: true})
			return
		}
		of = in.Revisions[at]
	}
	again, err := revision.WithResult(revision.Renewed(of, now), revision.Undecided, revision.Record{StartedAt: new(metav1.NewTime(in.Sight.Now))})
	if err != nil {
		return // what came as JSON can be encoded
	}
	d.Record = append(d.Record, Recording{Revision: again})
}

// end records what became of a revision.
func (d *Decision) end(of *appsv1.ControllerRevision, result revision.Result, record revision.Record) {
	if ended, err := revision.WithResult(of, result, record); err == nil {
		d.Record = append(d.Record, Recording{Revision: ended})
	}
}

// certified is a record with what the rollout was like, if that is the last that was told of.
func (in Input) certified(of *appsv1.ControllerRevision, record revision.Record) revision.Record {
	last := in.Owner.Status.Rollout
	if last == nil || last.Target != revision.Generation(of) {
		return record
	}
	record.StartedAt, record.Lowest, record.StartSeconds = last.StartedAt, map[string]int32{}, map[string]int32{}
	for name, role := range last.Roles {
		record.Lowest[name] = role.Lowest
		if took := in.started(last.Target, name); took != nil {
			record.StartSeconds[name] = took.P50Seconds
		}
	}
	if last.GPUs != nil {
		record.PeakGPUs = last.GPUs.Peak
	}
	return record
}

// started is how long pods of a service in the generation that was rolled out took to
// start: those that are seen or, once nobody looks any more, those that the graph's status
// tells of; nil if that is not known.
func (in Input) started(id, service string) *v1alpha1.StartupTimes {
	if len(in.Sight.Pods) == 0 {
		return in.Owner.Status.Services[service].Startup
	}
	var pods []corev1.Pod
	for _, p := range in.Sight.Pods {
		if p.Labels[v1alpha1.LabelGeneration] == id && p.Labels[v1alpha1.LabelComponent] == service {
			pods = append(pods, p)
		}
	}
	return workload.Startup(pods)
}

// settle looks after the revisions of a graph that rolls nothing: what runs in full is
// completed, what was left on the way superseded, and the oldest go.
func (d *Decision) settle(in Input) {
	surplus := revision.Surplus(in.Revisions, in.Settings.HistoryLimit, append(slices.Clone(d.State.Live), aborted(d)...))
	if len(d.Rolling) == 0 && in.Ready(d.Graph) {
		for _, id := range d.State.Live {
			of := revision.OfGeneration(in.Revisions, id)
			switch {
			case of == nil && id == d.Graph.Generation && revision.Stable(in.Revisions) == nil:
				if first, err := revision.Build(in.Owner, id, revision.Next(in.Revisions)); err == nil {
					if first, err = revision.WithResult(first, revision.Completed, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))}); err == nil {
						d.Record = append(d.Record, Recording{Revision: first, New: true})
					}
				}
			case of == nil && id == d.Graph.Generation:
				d.adopt(in, id)
			case of != nil && revision.ResultOf(of) != revision.Completed:
				d.forget(in, id)
				d.end(of, revision.Completed, in.certified(of, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))}))
			}
		}
		for _, r := range in.Revisions {
			if revision.ResultOf(r) == revision.Undecided && !slices.Contains(d.State.Live, revision.Generation(r)) && !slices.Contains(surplus, r) {
				d.end(r, revision.Superseded, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))})
			}
		}
		if len(surplus) == 0 { // what goes is not written again
			d.refresh(in)
		}
	}
	for _, r := range in.Revisions {
		if !slices.Contains(surplus, r) {
			d.Keep = append(d.Keep, r)
		}
	}
}

// refresh records the spec of a generation that has changed without a rollout, such as its
// replicas: what an undo goes back to is what ran last, and no earlier spec of the same
// workers. What was read before anything of it was carried out is not known to run.
func (d *Decision) refresh(in Input) {
	if len(d.Record) > 0 || in.Owner.Status.ObservedGeneration != in.Owner.Generation {
		return
	}
	var last *appsv1.ControllerRevision
	for _, id := range d.State.Live {
		if of := revision.OfGeneration(in.Revisions, id); of != nil && (last == nil || of.Revision > last.Revision) {
			last = of
		}
	}
	if last == nil {
		return
	}
	now, err := revision.Build(in.Owner, revision.Generation(last), revision.Next(in.Revisions))
	if err != nil || now.Name == last.Name {
		return // what came as JSON can be encoded
	}
	at := slices.IndexFunc(in.Revisions, func(r *appsv1.ControllerRevision) bool { return r.Name == now.Name })
	if at >= 0 {
		now = revision.Renewed(in.Revisions[at], now)
	}
	if now, err = revision.WithResult(now, revision.Completed, revision.Record{EndedAt: new(metav1.NewTime(in.Sight.Now))}); err == nil {
		d.Record = append(d.Record, Recording{Revision: now, New: at < 0})
		d.end(last, revision.Superseded, revision.RecordOf(last))
	}
}

// adopt has the revision of the spec tell of the generation that runs it, where that was
// not handed over: an operator may end after the generation before was deleted.
func (d *Decision) adopt(in Input, id string) {
	now, err := revision.Build(in.Owner, id, 0)
	if err != nil {
		return // what came as JSON can be encoded
	}
	for _, r := range in.Revisions {
		if r.Name == now.Name && revision.ResultOf(r) == revision.Completed {
			d.Record = append(d.Record, Recording{Revision: revision.WithGeneration(r, id)})
		}
	}
}

// aborted is the generation that the spec asks for and must not be tried: its revision
// is what remembers that.
func aborted(d *Decision) []string {
	var ids []string
	for _, c := range d.State.Cells {
		ids = append(ids, string(c.Cell.Spec))
	}
	return ids
}
