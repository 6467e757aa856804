package graphdeployment

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/cluster/apply"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
	"github.com/dynamo-operator/dynamo-operator/internal/core/status"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete

// Rollouts are the operator's settings for rollouts of workers.
type Rollouts struct {
	// Generations keeps old and new workers apart.
	Generations                     bool
	NoSpareAfter, AdmissionDeadline time.Duration
	managed.Settings
}

// Frontends tell to how many workers they send requests.
type Frontends interface {
	Ask(graph types.NamespacedName, frontends []netip.AddrPort, models []string, now time.Time) world.Admission
}

// Workers tell what became of the requests of a candidate and of those beside it.
type Workers interface {
	Ask(graph types.NamespacedName, all []analysis.Comparison, now time.Time) map[string]analysis.Series
}

// generations is what was seen of the generations of a graph's workers.
type generations struct {
	cells     []world.Cell
	policy    policy.Policy
	sight     world.Sight
	revisions []*appsv1.ControllerRevision
	// requests of candidates, by cell.
	requests map[string]analysis.Series
	// behind says that the last step is not to be seen yet.
	behind bool
	// whole says that a generation is made in one piece.
	whole bool
	// unfit is why the workers of the graph cannot come in generations.
	unfit string
	// restart is the step of one, which workers in generations take as their cells do.
	restart rollout.Step
}

// generations reads them. Pods and frontends are only asked for while one generation
// replaces another.
func (w Observer) generations(ctx context.Context, dgd *v1alpha1.DynamoGraphDeployment, seen *observation, now time.Time) (err error) {
	by, able := seen.builder.(workload.Generational)
	seen.sight = world.Sight{Now: now, NoSpareAfter: w.Rollouts.NoSpareAfter, AdmissionDeadline: w.Rollouts.AdmissionDeadline}
	for _, o := range seen.Owned {
		if r, ok := o.(*appsv1.ControllerRevision); ok && r.DeletionTimestamp == nil {
			seen.revisions = append(seen.revisions, r)
		}
	}
	if !able || !w.Rollouts.Generations {
		seen.restart, _ = seen.nextRestart(dgd)
		return nil
	}
	seen.policy, _ = policy.Parse(dgd.Annotations) // validation tells of what cannot be read
	if seen.unfit = by.Unfit(seen.graph); seen.unfit != "" {
		seen.restart, _ = seen.nextRestart(dgd)
		return nil
	}
	members := by.Members(seen.graph, seen.Snapshot)
	seen.whole = by.Whole()
	seen.cells = world.Cells(seen.graph, members, world.Rules{
		Isolated: seen.policy.Isolation != policy.IsolationNone, Recorded: generation.ID(seen.graph.Generation),
		Named: func(service, id string, first bool) graph.Membership { return by.Named(seen.graph, service, id, first) },
	})
	seen.restart, seen.cells = seen.nextRestart(dgd)
	seen.behind = w.Expected.unmet(dgd.UID, members, now)
	if !slices.ContainsFunc(seen.cells, world.Cell.Rolling) {
		w.Crashes.forget(dgd.UID)
		return nil
	}
	evidence, err := w.Pods.Inspect(ctx, dgd.Namespace, dgd.Name, "")
	if err != nil {
		return err
	}
	seen.sight.Pods = evidence.Pods
	crashes, attention := w.Crashes.seen(dgd, evidence.Pods, now)
	seen.sight.Crashes, seen.sight.Since, seen.sight.Reached = crashes, attention.Since, attention.Reached
	w.admission(dgd, seen, now)
	if w.Workers != nil {
		seen.requests = w.Workers.Ask(client.ObjectKeyFromObject(dgd), managed.Comparisons(seen.input(dgd, seen.graph)), now)
	}
	return nil
}

// admission asks frontends which workers they know: all of a graph, or those of each
// generation where frontends are of one.
func (w Observer) admission(dgd *v1alpha1.DynamoGraphDeployment, seen *observation, now time.Time) {
	if w.Frontends == nil {
		return
	}
	if !seen.graph.Paired {
		settled := slices.DeleteFunc(frontends(seen.graph, seen.sight.Pods), func(p corev1.Pod) bool { return !world.ReadyFor(p, world.Settled, now) })
		seen.sight.Admission = w.ask(client.ObjectKeyFromObject(dgd), settled, seen.graph, now)
		return
	}
	seen.sight.Paired = map[generation.ID]world.Admission{}
	for _, cell := range seen.cells {
		for _, id := range cell.Live {
			of := types.NamespacedName{Namespace: dgd.Namespace, Name: dgd.Name + "/" + string(id)}
			seen.sight.Paired[id] = w.ask(of, cell.Frontends(id, seen.sight), seen.graph, now)
		}
	}
}

// ask is what some frontends say and have said of late, and since when all of them can.
func (w Observer) ask(of types.NamespacedName, frontends []corev1.Pod, g *graph.Graph, now time.Time) world.Admission {
	said := w.Frontends.Ask(of, addresses(frontends), models(g), now)
	said.Since = world.LastReady(frontends)
	return w.Admissions.seen(of, said, now, w.Rollouts.AdmissionDeadline)
}

// nextRestart is the step of a restart, and the cells of workers as it asks for them.
func (w observation) nextRestart(dgd *v1alpha1.DynamoGraphDeployment) (rollout.Step, []world.Cell) {
	workers := status.Workers{Cells: w.cells, Aborted: map[generation.ID]string{}}
	for _, id := range revision.AbortedGenerations(w.revisions) {
		if id != w.policy.Retry {
			workers.Aborted[generation.ID(id)] = revision.RecordOf(revision.OfGeneration(w.revisions, id)).Message
		}
	}
	return status.NextRestart(dgd, w.wanted(w.Scale(w.graph)).Limited(w.granted), w.builder, w.Snapshot, workers)
}

// frontends are the pods of a graph's frontends.
func frontends(g *graph.Graph, pods []corev1.Pod) []corev1.Pod {
	var all []corev1.Pod
	for _, p := range pods {
		if slices.ContainsFunc(g.Components, func(c graph.Component) bool {
			return c.Role == graph.RoleFrontend && c.Name == p.Labels[v1alpha1.LabelComponent]
		}) {
			all = append(all, p)
		}
	}
	return all
}

// addresses are where frontends serve whose pods have one.
func addresses(pods []corev1.Pod) []netip.AddrPort {
	var all []netip.AddrPort
	for _, p := range pods {
		if address, err := netip.ParseAddr(p.Status.PodIP); err == nil {
			all = append(all, netip.AddrPortFrom(address, pod.FrontendPort(p)))
		}
	}
	return all
}

// models are those that workers of a graph are known to serve.
func models(g *graph.Graph) []string {
	var all []string
	for _, c := range g.Components {
		if c.Role.RunsEngine() && c.Model != "" {
			all = append(all, c.Model)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// input is what is known of the generations of a graph.
func (w observation) input(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph) managed.Input {
	return managed.Input{
		Owner: dgd, Graph: g, Cells: w.cells, Sight: w.sight, Policy: w.policy, Revisions: w.revisions, Requests: w.requests, Behind: w.behind, Whole: w.whole,
		Ready: func(g *graph.Graph) bool {
			return !slices.ContainsFunc(w.builder.Progress(g, w.Snapshot), func(p workload.Progress) bool { return !p.Done })
		},
	}
}

// managed decides what is done about the generations of a graph.
func (w observation) managed(dgd *v1alpha1.DynamoGraphDeployment, g *graph.Graph, s managed.Settings) managed.Decision {
	in := w.input(dgd, g)
	in.Settings = s
	return managed.Next(in)
}

// carried leaves to the builder what becomes of workers that are not rendered.
func (w observation) carried(d managed.Decision, desired []graph.Desired) []graph.Desired {
	by, able := w.builder.(workload.Generational)
	if !able {
		return desired
	}
	return by.Carry(d.Graph, desired, d.Carried(), w.Snapshot)
}

// patches are the changes of single fields that a decision asks for, and records what is
// made new for it.
func patches(d managed.Decision, seen []*appsv1.ControllerRevision) (changed []apply.ChildPatch, records []graph.Desired) {
	for _, r := range d.Resize {
		changed = append(changed, apply.ChildPatch{Object: r.Object, Fields: map[string]any{"spec": map[string]any{"replicas": r.Replicas}}})
	}
	for _, r := range d.Record {
		if r.New {
			fresh := r.Revision.DeepCopy()
			fresh.OwnerReferences = nil // as all that is made for an owner gets one
			records = append(records, graph.Desired{Object: fresh, CreateOnly: true})
			continue
		}
		at := slices.IndexFunc(seen, func(o *appsv1.ControllerRevision) bool { return o.Name == r.Revision.Name })
		if at < 0 {
			continue
		}
		annotations := map[string]any{}
		for _, key := range []string{v1alpha1.AnnotationRolloutResult, v1alpha1.AnnotationRolloutRecord, v1alpha1.AnnotationChangeCause} {
			annotations[key] = nil
			if value, said := r.Revision.Annotations[key]; said {
				annotations[key] = value
			}
		}
		changed = append(changed, apply.ChildPatch{Object: seen[at], Fields: map[string]any{
			"revision": r.Revision.Revision,
			"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{v1alpha1.LabelGeneration: r.Revision.Labels[v1alpha1.LabelGeneration]}},
		}})
	}
	return changed, records
}

// Expectations are the steps that were written and that the informers do not show yet:
// from a world without them another step must not be taken. They are not needed after a
// restart, when everything is read anew.
type Expectations struct {
	mu sync.Mutex
	by map[types.UID]expectation
}

type expectation struct {
	told  []managed.Expectation
	until time.Time
}

// expectFor bounds how long an informer can be behind: what is not seen by then somebody
// else has changed since.
const expectFor = 5 * time.Second

// expect notes what workers of a graph were told, as far as that was written: children
// tell by name, and what others have made if all went well.
func (e *Expectations) expect(of types.UID, told []managed.Expectation, written []graph.Ref, failed bool, now time.Time) {
	told = slices.DeleteFunc(slices.Clone(told), func(t managed.Expectation) bool {
		if t.Object == "" {
			return failed
		}
		return !slices.ContainsFunc(written, func(ref graph.Ref) bool {
			return ref.Name == t.Object && slices.Contains([]string{v1alpha1.KindDynamoComponentDeployment, "PodCliqueSet"}, ref.Kind)
		})
	})
	if e == nil || len(told) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[types.UID]expectation{}
	}
	e.by[of] = expectation{told, now.Add(expectFor)}
}

// unmet reports whether a step of a graph is not to be seen yet.
func (e *Expectations) unmet(graph types.UID, members []workload.Member, now time.Time) bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	waits, there := e.by[graph]
	if !there {
		return false
	}
	missing := slices.ContainsFunc(waits.told, func(t managed.Expectation) bool {
		return !slices.ContainsFunc(members, func(m workload.Member) bool {
			return m.Service == t.Service && m.Generation == t.Generation && m.Told() == t.Replicas
		})
	})
	if missing && now.Before(waits.until) {
		return true
	}
	delete(e.by, graph)
	return false
}

// Admissions remembers what the frontends of graphs said of late. An operator that starts
// anew begins again.
type Admissions struct {
	mu sync.Mutex
	by map[types.NamespacedName]world.AdmissionLog
}

// seen adds what frontends say, and returns it with what counts of that before.
func (a *Admissions) seen(of types.NamespacedName, said world.Admission, now time.Time, counts time.Duration) world.Admission {
	if a == nil || !said.Known {
		return said
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.by, func(_ types.NamespacedName, l world.AdmissionLog) bool { return l.Stale(now) })
	if a.by == nil {
		a.by = map[types.NamespacedName]world.AdmissionLog{}
	}
	a.by[of] = a.by[of].Seen(said, now, counts)
	return a.by[of].With(said)
}

// Crashes remembers those of the pods of graphs while their workers are rolled out. An
// operator that starts anew begins again.
type Crashes struct {
	mu sync.Mutex
	by map[types.UID]lastCrashes
}

type lastCrashes struct {
	world.CrashLog
	world.Attention
	at time.Time
}

// seen adds what the pods and the status of a graph show, and returns what counts.
func (c *Crashes) seen(dgd *v1alpha1.DynamoGraphDeployment, pods []corev1.Pod, now time.Time) ([]world.Crash, world.Attention) {
	if c == nil {
		return nil, world.Attention{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.by, func(_ types.UID, l lastCrashes) bool { return now.Sub(l.at) > world.CrashWindow })
	if c.by == nil {
		c.by = map[types.UID]lastCrashes{}
	}
	last := c.by[dgd.UID]
	is := lastCrashes{last.Seen(pods, now), last.Looked(now, dgd.Status.Rollout, pods), now}
	c.by[dgd.UID] = is
	return is.Crashes(), is.Attention
}

// forget drops a graph whose workers are not rolled out any more.
func (c *Crashes) forget(graph types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, graph)
}
