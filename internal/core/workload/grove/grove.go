// Package grove runs a whole graph as one Grove PodCliqueSet: a clique for each
// component that fits on one node, and a scaling group of a leader and a worker
// clique for each that spans several. Workers of a later generation than the first
// have a set of their own.
package grove

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ai-dynamo/grove/operator/api/common"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/contract"
	"github.com/dynamo-operator/dynamo-operator/internal/core/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// kaiScheduler places whole gangs from queues.
const kaiScheduler = "kai-scheduler"

// Builder implements workload.GraphBuilder.
type Builder struct {
	// TerminationDelay is how long a gang may be short of pods before Grove
	// ends it; none when it is zero.
	TerminationDelay time.Duration
	// Queue is the KAI queue that pods are scheduled from; empty without KAI.
	Queue string
	// Deadline is how long the pods of a component may make no progress.
	Deadline time.Duration
	// Graph and Defaults are what workers are read back by, where they come in
	// Generations.
	Graph       *v1alpha1.DynamoGraphDeployment
	Defaults    graph.Defaults
	Generations bool
}

var (
	_ workload.GraphBuilder = Builder{}
	_ workload.PodOwner     = Builder{}
	_ workload.Rescaler     = Builder{}
	_ workload.Updater      = Builder{}
	_ workload.Queuer       = Builder{}
	_ workload.Packer       = Builder{}
	_ workload.Generational = Builder{}
)

// Made implements workload.GraphBuilder.
func (Builder) Made(object graph.Object) (graph.Ref, bool) {
	_, ok := object.(*grovev1alpha1.PodCliqueSet)
	return graph.Ref{Kind: "PodCliqueSet", Name: object.GetName()}, ok
}

// OwnsPod implements workload.PodOwner.
func (Builder) OwnsPod(labels map[string]string) bool { return labels[common.LabelPodClique] != "" }

// Follower reports whether a pod lends its node to a leader, or holds weights, and
// serves no API, by its labels.
func Follower(labels map[string]string) bool {
	clique := labels[common.LabelPodClique]
	return strings.HasSuffix(clique, graph.Component{}.WorkerClique()) ||
		labels[common.LabelPodCliqueScalingGroup] != "" && ofRank.MatchString(clique)
}

// SetOf is the name of the PodCliqueSet that an object was made from; empty for an
// object of somebody else. Cliques of a scaling group are owned by that, and carry
// the set's name as all that Grove makes does.
func SetOf(object metav1.Object) string {
	for _, ref := range object.GetOwnerReferences() {
		if ref.Kind == "PodCliqueSet" && ref.APIVersion == grovev1alpha1.SchemeGroupVersion.String() {
			return ref.Name
		}
	}
	if labels := object.GetLabels(); labels[common.LabelManagedByKey] == common.LabelManagedByValue {
		return labels[common.LabelPartOfKey]
	}
	return ""
}

// SchedulingQueue implements workload.Queuer.
func (b Builder) SchedulingQueue() string { return b.Queue }

// Build returns the graph's PodCliqueSet, and that of its workers where they are of a
// later generation.
func (b Builder) Build(g *graph.Graph, pods workload.Pods) ([]graph.Object, error) {
	var objects []graph.Object
	for _, name := range sets(g) {
		object, err := b.set(g, name, pods)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// set is one PodCliqueSet of a graph.
func (b Builder) set(whole *graph.Graph, name string, pods workload.Pods) (graph.Object, error) {
	g := part(whole, name)
	template := grovev1alpha1.PodCliqueSetTemplateSpec{
		StartupType:           new(grovev1alpha1.CliqueStartupTypeAnyOrder),
		HeadlessServiceConfig: &grovev1alpha1.HeadlessServiceConfig{PublishNotReadyAddresses: true},
	}
	if b.TerminationDelay > 0 {
		template.TerminationDelay = &metav1.Duration{Duration: b.TerminationDelay}
	}
	rules := contract.Of(g.Contract)
	template.PriorityClassName = g.PriorityClass
	var more extension
	for _, c := range g.Components {
		cliques, err := b.cliques(c, pods)
		if err != nil {
			return nil, fmt.Errorf("service %s: %w", c.Name, err)
		}
		for _, clique := range cliques {
			clique.Spec.StartsAfter = append(clique.Spec.StartsAfter, startsAfter(g, c)...)
			if len(clique.Spec.StartsAfter) > 0 {
				template.StartupType = new(grovev1alpha1.CliqueStartupTypeExplicit)
			}
		}
		template.Cliques = append(template.Cliques, cliques...)
		more.constrain(g, c, len(template.Cliques)-len(cliques), len(template.PodCliqueScalingGroupConfigs))
		if !grouped(c) {
			continue
		}
		group := grovev1alpha1.PodCliqueScalingGroupConfig{
			Name: c.Clique, Replicas: new(firstReplicas(c)), MinAvailable: new(minAvailable(c)),
		}
		for _, clique := range cliques {
			group.CliqueNames = append(group.CliqueNames, clique.Name)
		}
		more.share(c, len(template.PodCliqueScalingGroupConfigs))
		template.PodCliqueScalingGroupConfigs = append(template.PodCliqueScalingGroupConfigs, group)
	}
	set := &grovev1alpha1.PodCliqueSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: g.Namespace},
		Spec:       grovev1alpha1.PodCliqueSetSpec{Replicas: 1, Template: template},
	}
	if rules.Objects.SetMetadata {
		set.Labels, set.Annotations = setLabels(g), g.Marks()
		maps.Copy(set.Annotations, g.Annotations)
		more.strategy = g.UpdateStrategy
	}
	if err := b.generate(set, whole, g); err != nil {
		return nil, err
	}
	return more.extend(set)
}

// setLabels are the graph's own, and its name.
func setLabels(g *graph.Graph) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, g.Labels)
	labels[v1alpha1.LabelGraphName] = g.Name
	return labels
}

// grouped reports whether a component is a scaling group of several cliques.
func grouped(c graph.Component) bool { return c.Multinode() || c.SharesAcrossPods() }

// minAvailable is how many replicas a gang needs to start.
func minAvailable(c graph.Component) int32 {
	if c.MinAvailable != nil && contract.Of(c.Contract).Groups.WholeCliques {
		return *c.MinAvailable
	}
	return 1
}

// firstReplicas is the number in a set. Grove refuses one that its gang could not start
// with, and another minAvailable later, and takes none for one; it reads the number once,
// and from then on what an adapter, a budget or a user that wants none asks for is told to
// what was made.
func firstReplicas(c graph.Component) int32 {
	if c.Replicas == 0 || c.MinAvailable != nil && c.Adapted {
		return max(c.Replicas, minAvailable(c))
	}
	return c.Replicas
}

// cliques are the cliques of one component.
func (b Builder) cliques(c graph.Component, pods workload.Pods) ([]*grovev1alpha1.PodCliqueTemplateSpec, error) {
	if c.SharesAcrossPods() {
		return b.sharing(c, pods)
	}
	if !c.Multinode() {
		one, err := b.clique(c, c.Clique, firstReplicas(c), engine.Group{Position: engine.Alone, Nodes: 1}, pods)
		if err == nil {
			one.Spec.MinAvailable = new(minAvailable(c))
		}
		return []*grovev1alpha1.PodCliqueTemplateSpec{one}, err
	}
	leader, err := b.clique(c, c.LeaderClique(), 1, place(c, engine.Leader), pods)
	if err != nil {
		return nil, err
	}
	if c.Engine == graph.EngineTRTLLM {
		// mpirun needs the SSH servers of the workers.
		leader.Spec.StartsAfter = []string{c.WorkerClique()}
	}
	worker, err := b.clique(c, c.WorkerClique(), c.Nodes-1, place(c, engine.Worker), pods)
	if err == nil && contract.Of(c.Contract).Groups.WholeCliques {
		worker.Spec.MinAvailable = new(worker.Spec.Replicas)
	}
	return []*grovev1alpha1.PodCliqueTemplateSpec{leader, worker}, err
}

func (b Builder) clique(c graph.Component, name string, replicas int32, at engine.Group, pods workload.Pods) (*grovev1alpha1.PodCliqueTemplateSpec, error) {
	template, err := pods(c, at)
	if err != nil {
		return nil, err
	}
	b.queue(&template)
	if template.Annotations == nil {
		template.Annotations = map[string]string{}
	}
	template.Annotations[v1alpha1.AnnotationDiscoveryBackend] = string(c.Discovery)
	if c.DiscoveryMode != "" && contract.Of(c.Contract).Pods.Discovered {
		template.Annotations[v1alpha1.AnnotationDiscoveryMode] = string(c.DiscoveryMode)
	}
	return &grovev1alpha1.PodCliqueTemplateSpec{
		Name: name, Labels: template.Labels, Annotations: template.Annotations,
		Spec: grovev1alpha1.PodCliqueSpec{
			RoleName: name, Replicas: replicas, MinAvailable: new(int32(1)), PodSpec: template.Spec,
		},
	}, nil
}

// queue puts a pod into the KAI queue, unless the user chose another scheduler.
func (b Builder) queue(template *corev1.PodTemplateSpec) {
	chosen := template.Spec.SchedulerName
	if b.Queue == "" || (chosen != "" && chosen != kaiScheduler) {
		return
	}
	template.Spec.SchedulerName = kaiScheduler
	template.Labels[v1alpha1.LabelKaiQueue] = b.Queue
}

func place(c graph.Component, position engine.Position) engine.Group {
	host := func(clique string, i int) string {
		return fmt.Sprintf("$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-%s-%d.$(GROVE_HEADLESS_SERVICE)", clique, i)
	}
	leader := host(c.LeaderClique(), 0)
	return engine.Group{Position: position, Nodes: int(c.Nodes), Addresses: engine.Addresses{
		LeaderExec:  leader,
		LeaderShell: leader,
		WorkerShell: func(i int) string { return host(c.WorkerClique(), i-1) },
		// Workers are counted from 0 in their clique, from 1 in the group.
		Rank:      "$((GROVE_PCLQ_POD_INDEX + 1))",
		RankTimes: func(n int) string { return fmt.Sprintf("$(( %d * $((GROVE_PCLQ_POD_INDEX + 1)) ))", n) },
	}}
}

// LiveName is the name that Grove gives to the clique or scaling group of a
// component in the only replica of the set.
func LiveName(c graph.Component) string {
	return liveName(c.CliqueSet, c.Clique)
}

// Progress reads the clique or scaling group of each component.
func (b Builder) Progress(g *graph.Graph, s snapshot.Snapshot) []workload.Progress {
	var all []workload.Progress
	for _, c := range g.Components {
		p := cliqueProgress(c, s)
		if grouped(c) {
			p = groupProgress(c, s)
		}
		p.Seen = s.Evidence.Of(c.Name)
		p.Seen.Refused = append(p.Seen.Refused, Refused(c.Name, s.Beneath)...)
		set, found := snapshot.Find[*grovev1alpha1.PodCliqueSet](s, c.CliqueSet)
		switch {
		case s.Outdated("PodCliqueSet", c.CliqueSet):
			p.Done, p.Why = false, "PodCliqueSet is being updated"
		case p.Done && found && updating(set, s) && !rolledOut(c, set, s):
			p.Done, p.Why = false, fmt.Sprintf("PodCliqueSet %s has not updated its pods yet", set.Name)
		case !p.Done && found:
			if p.Waiting = waitsFor(c, set, s); len(p.Waiting) > 0 {
				p.Why = fmt.Sprintf("waiting for %s to be ready", strings.Join(p.Waiting, ", "))
			}
		}
		all = append(all, p.Judged(moved(c, set, s), b.Deadline, s.Taken))
	}
	return all
}

// moved is when something last happened to what runs a component.
func moved(c graph.Component, set *grovev1alpha1.PodCliqueSet, s snapshot.Snapshot) time.Time {
	if set == nil {
		return time.Time{}
	}
	if s.Outdated("PodCliqueSet", set.Name) {
		return s.Taken
	}
	last := workload.Moved(set, nil)
	for _, service := range append(before(c, set), c.Name) { // it starts when those before it are ready
		for _, clique := range cliquesOf(graph.Component{Name: service, CliqueSet: set.Name}, s) {
			last = workload.Latest(last, workload.Moved(clique, clique.Status.Conditions))
		}
	}
	return last
}

// requeue is the code under which Grove notes that it looks at an object again.
const requeue = "ERR_CONTINUE_RECONCILE_AND_REQUEUE"

// Refused reads what Grove was told when it was to make pods of a service. An
// error stays in the status of a clique that has recovered from it.
func Refused(service string, beneath []graph.Object) []snapshot.Refusal {
	var all []snapshot.Refusal
	for _, object := range beneath {
		clique, ok := object.(*grovev1alpha1.PodClique)
		if !ok || clique.Labels[v1alpha1.LabelComponent] != service || clique.Status.Replicas >= clique.Spec.Replicas {
			continue
		}
		for _, e := range clique.Status.LastErrors {
			if e.Code == requeue {
				continue
			}
			all = append(all, snapshot.Refusal{By: "PodClique/" + clique.Name, Message: e.Description})
		}
	}
	return all
}

func cliqueProgress(c graph.Component, s snapshot.Snapshot) workload.Progress {
	p := workload.Progress{Kind: workload.KindPodClique, Name: LiveName(c)}
	clique, found := snapshot.Find[*grovev1alpha1.PodClique](s, p.Name)
	if !found {
		p.Why = "PodClique " + p.Name + " not created yet"
		return p
	}
	st := clique.Status
	p.Replicas, p.Updated, p.Ready, p.Scheduled = st.Replicas, st.UpdatedReplicas, new(st.ReadyReplicas), new(st.ScheduledReplicas)
	p.Why = missing(count{"ready", st.ReadyReplicas}, st.UpdatedReplicas, st.Replicas, c.Replicas, clique.Generation, st.ObservedGeneration)
	p.Done = p.Why == ""
	return p
}

func groupProgress(c graph.Component, s snapshot.Snapshot) workload.Progress {
	p := workload.Progress{Kind: workload.KindPodCliqueScalingGroup, Name: LiveName(c)}
	group, found := snapshot.Find[*grovev1alpha1.PodCliqueScalingGroup](s, p.Name)
	if !found {
		p.Why = "PodCliqueScalingGroup " + p.Name + " not created yet"
		return p
	}
	st := group.Status
	p.Replicas, p.Updated, p.Available, p.Scheduled = st.Replicas, st.UpdatedReplicas, new(st.AvailableReplicas), new(st.ScheduledReplicas)
	p.Why = missing(count{"available", st.AvailableReplicas}, st.UpdatedReplicas, st.Replicas, c.Replicas, group.Generation, st.ObservedGeneration)
	p.Done = p.Why == ""
	return p
}

type count struct {
	word string
	n    int32
}

// missing says in one phrase what a clique or group lacks of want replicas.
func missing(up count, updated, replicas, want int32, generation int64, observed *int64) string {
	switch {
	case observed == nil || *observed < generation:
		return "it has not been observed yet"
	case want == 0 && replicas == 0:
		return ""
	case up.n != want:
		return fmt.Sprintf("%d of %d replicas %s", up.n, want, up.word)
	case updated != want:
		return fmt.Sprintf("%d of %d replicas updated", updated, want)
	case replicas != want:
		return fmt.Sprintf("%d old replicas are still terminating", replicas-want)
	default:
		return ""
	}
}
