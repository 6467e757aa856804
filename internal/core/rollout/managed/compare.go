package managed

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/ai-dynamo/grove/operator/api/common"
	corev1 "k8s.io/api/core/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// Comparisons are the candidates whose requests are to be compared with those of the
// stable generation, and the pods that count them: workers and, where generations have
// frontends of their own, those by themselves. One that users let pass every step
// has their word, and is not judged any more.
func Comparisons(in Input) []analysis.Comparison {
	var all []analysis.Comparison
	for _, cell := range in.Cells {
		if !cell.Rolling() || !in.judged(cell) {
			continue
		}
		w := cell.World(in.Graph, in.Sight)
		stable := in.stableOf(cell, w)
		w.Stable = stable
		if in.restarts(cell, w) {
			continue
		}
		of := revision.OfGeneration(in.Revisions, string(cell.Spec))
		if stable == cell.Spec || of == nil || revision.ResultOf(of) != revision.Undecided {
			continue // no rollout of it is recorded yet, nor a retry
		}
		c := analysis.Comparison{Cell: cell.String(), Candidate: string(cell.Spec), Stable: string(stable), Revision: of.Revision, Pods: in.counting(cell, stable)}
		all = append(all, c)
		if cell.Paired {
			c.Cell, c.Pods = ofFrontends(cell), in.frontends(cell, stable)
			all = append(all, c)
		}
	}
	return all
}

// ofFrontends names the comparison of a cell's frontends: no service has such a name.
func ofFrontends(cell world.Cell) string { return cell.String() + "/frontends" }

func (in Input) judged(cell world.Cell) bool {
	return in.Policy.Analysis != policy.AnalysisOff && !in.Policy.Unjudged(string(cell.Spec))
}

// compare is what the requests of a cell's candidate come to; nil if they are not
// compared. Frontends of its own see every request, and all of it: they have the word
// if they can tell, but that a worker fails is seen there alone if another makes it good.
func (in Input) compare(cell world.Cell) *analysis.Judgement {
	if !in.judged(cell) {
		return nil
	}
	workers := in.Requests[cell.String()].Judge(in.Policy.SLO)
	if !cell.Paired || workers.Verdict == policy.VerdictFail {
		return &workers
	}
	frontends := in.Requests[ofFrontends(cell)].Judge(in.Policy.SLO)
	if frontends.Verdict == policy.VerdictInconclusive && (workers.Verdict != policy.VerdictInconclusive || frontends.Samples == 0) {
		return &workers
	}
	return &frontends
}

// frontends are those of a candidate and of the stable generation that can be asked.
func (in Input) frontends(cell world.Cell, stable generation.ID) []analysis.Pod {
	var all []analysis.Pod
	for _, id := range []generation.ID{cell.Spec, stable} {
		for _, p := range cell.Frontends(id, in.Sight) {
			if address, err := netip.ParseAddr(p.Status.PodIP); err == nil {
				all = append(all, analysis.Pod{
					UID: string(p.UID), Address: address, Port: pod.FrontendPort(p), Candidate: id == cell.Spec,
					Duty: analysis.Duty{Entry: true, FirstToken: true},
				})
			}
		}
	}
	slices.SortFunc(all, func(a, b analysis.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

// counting are the ready pods of a candidate and of the stable generation. Of a group of
// nodes the first one counts.
func (in Input) counting(cell world.Cell, stable generation.ID) []analysis.Pod {
	prefills := func(c graph.Component) bool { return generation.Part(c) == graph.RolePrefill }
	var parts []graph.Component
	for _, c := range in.Graph.Components {
		if c.Role.RunsEngine() && slices.Contains(cell.Services, c.Name) {
			parts = append(parts, c)
		}
	}
	entries := in.workerEntries(cell)
	split := slices.ContainsFunc(parts, prefills)
	var all []analysis.Pod
	for _, p := range in.Sight.Pods {
		id := generation.ID(p.Labels[v1alpha1.LabelGeneration])
		at := slices.IndexFunc(parts, func(c graph.Component) bool { return c.Name == p.Labels[v1alpha1.LabelComponent] })
		address, err := netip.ParseAddr(p.Status.PodIP)
		if at < 0 || err != nil || id != cell.Spec && id != stable || !world.Ready(p) || follows(p.Labels) {
			continue
		}
		duty := analysis.Duty{Entry: slices.Contains(entries, parts[at].Name)}
		duty.FirstToken = prefills(parts[at]) || duty.Entry && !split
		all = append(all, analysis.Pod{UID: string(p.UID), Address: address, Port: systemPort(p), Candidate: id == cell.Spec, Duty: duty})
	}
	slices.SortFunc(all, func(a, b analysis.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return all
}

// workerEntries are the workers by which requests enter a cell: those that it has
// behind its frontends, if these are its entries.
func (in Input) workerEntries(cell world.Cell) []string {
	if !cell.Paired {
		return cell.Entries
	}
	shared := *in.Graph
	shared.Paired = false
	var all []string
	for _, of := range generation.Cells(&shared) {
		all = append(all, of.Entries...)
	}
	return all
}

// follows reports whether a pod lends its node to the first one of its group.
func follows(labels map[string]string) bool {
	return cmp.Or(labels[lwsv1.WorkerIndexLabelKey], "0") != "0" || strings.HasSuffix(labels[common.LabelPodClique], graph.Component{}.WorkerClique())
}

// systemPort is where a worker tells what it has counted: the port of that name, or the
// usual one.
func systemPort(p corev1.Pod) uint16 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == pod.PortNameSystem {
				return uint16(port.ContainerPort)
			}
		}
	}
	return pod.PortSystem
}
