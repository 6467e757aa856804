// Package component runs a graph as one DynamoComponentDeployment a service. Each
// has a controller of its own, which makes the rest and tells how far it is.
package component

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/pickerconfig"
	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Builder implements workload.GraphBuilder. To read how far a graph is it needs
// neither of its fields.
type Builder struct {
	Graph    *v1alpha1.DynamoGraphDeployment
	Defaults graph.Defaults
}

var (
	_ workload.GraphBuilder = Builder{}
	_ workload.Generational = Builder{}
)

// Build returns the graph's DynamoComponentDeployments up to the first that cannot
// be made. Their pods are rendered by their own controller.
func (b Builder) Build(g *graph.Graph, _ workload.Pods) ([]graph.Object, error) {
	var objects []graph.Object
	for _, c := range g.Components {
		component, err := b.component(c, g.Engine())
		if err != nil {
			return objects, fmt.Errorf("service %s: %w", c.Name, err)
		}
		if g.TakenOver != "" {
			metav1.SetMetaDataAnnotation(&component.ObjectMeta, v1alpha1.AnnotationAdoptedGeneration, g.TakenOver)
		}
		objects = append(objects, component)
	}
	return objects, nil
}

// Store is the component of a service, for whoever keeps it elsewhere.
func (b Builder) Store(c graph.Component, engine graph.Engine) (*v1alpha1.DynamoComponentDeployment, error) {
	return b.component(c, engine)
}

// component carries a service over field by field, in the user's own words, so
// that a reader of the component sees what the graph says.
func (b Builder) component(c graph.Component, engine graph.Engine) (*v1alpha1.DynamoComponentDeployment, error) {
	if c.Contract == graph.ContractV1 || conversion.MeansBeta(b.Graph) {
		return b.beta(c, engine)
	}
	spec, err := graph.Service(b.Graph, c.Name, b.Defaults)
	if err != nil {
		return nil, err
	}
	spec.ServiceName = c.Name
	spec.Annotations = c.Annotations
	if c.Adapted {
		spec.Replicas = new(c.Replicas)
	}
	spec.DynamoNamespace = new(c.DynamoNamespace)
	if c.Role == graph.RolePlanner {
		spec.ExtraPodSpec = withAccount(spec.ExtraPodSpec, pod.PlannerAccount)
		if c.Native {
			spec.ExtraPodSpec.MainContainer = c.Main
		}
	}
	if c.Activated {
		spec.ExtraPodSpec = &v1alpha1.ExtraPodSpec{PodSpec: c.Pod, MainContainer: c.Main}
		spec.LivenessProbe, spec.ReadinessProbe = c.Liveness, c.Readiness
	}
	if spec.EPPConfig, err = pickerconfig.Complete(spec.EPPConfig); err != nil {
		return nil, fmt.Errorf("eppConfig.config: %w", err)
	}
	system := systemLabels(c)
	labels := map[string]string{}
	maps.Copy(labels, spec.Labels)
	maps.Copy(labels, system)
	spec.Labels = labels
	var annotations map[string]string
	if c.Generation != "" { // which counts with its contract
		system[v1alpha1.LabelGeneration] = c.Generation
		annotations = map[string]string{v1alpha1.AnnotationRuntimeContract: string(c.Contract)}
	}
	return &v1alpha1.DynamoComponentDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: c.ObjectName, Namespace: c.Namespace, Labels: system, Annotations: annotations},
		Spec:       v1alpha1.DynamoComponentDeploymentSpec{BackendFramework: b.Graph.Spec.BackendFramework, SharedSpec: spec},
	}, nil
}

func systemLabels(c graph.Component) map[string]string {
	return map[string]string{
		v1alpha1.LabelGraphName:       c.Graph,
		v1alpha1.LabelComponent:       c.Name,
		v1alpha1.LabelDynamoNamespace: c.DynamoNamespace,
	}
}

// withAccount makes pods run under an account, whatever the user wrote.
func withAccount(users *v1alpha1.ExtraPodSpec, name string) *v1alpha1.ExtraPodSpec {
	extra, spec := v1alpha1.ExtraPodSpec{}, corev1.PodSpec{}
	if users != nil {
		extra = *users
	}
	if extra.PodSpec != nil {
		spec = *extra.PodSpec
	}
	spec.ServiceAccountName = name
	extra.PodSpec = &spec
	return &extra
}

// Made implements workload.GraphBuilder.
func (Builder) Made(object graph.Object) (graph.Ref, bool) {
	_, ok := object.(*v1alpha1.DynamoComponentDeployment)
	return graph.Ref{Kind: v1alpha1.KindDynamoComponentDeployment, Name: object.GetName()}, ok
}

// Mark implements workload.GraphBuilder. What is stored as v1beta1 says it has all
// annotations in its pod template.
func (Builder) Mark(_ *graph.Graph, c graph.Component, s snapshot.Snapshot) (id string, made bool) {
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found {
		return "", false
	}
	id = dcd.Spec.Annotations[v1alpha1.AnnotationRestartAt]
	if of := dcd.Spec.ExtraPodMetadata; of != nil {
		id = cmp.Or(id, of.Annotations[v1alpha1.AnnotationRestartAt])
	}
	return id, true
}

// InOrder leaves out the components that wait for others to be ready.
func (b Builder) InOrder(g *graph.Graph, desired []graph.Desired, s snapshot.Snapshot) []graph.Desired {
	waits := map[string]bool{}
	for i, p := range b.Progress(g, s) {
		waits[g.Components[i].ObjectName] = len(p.Waiting) > 0
	}
	return slices.DeleteFunc(desired, func(d graph.Desired) bool {
		ref, ok := b.Made(d.Object)
		return ok && waits[ref.Name]
	})
}

// Progress reads what each component says of itself.
func (Builder) Progress(g *graph.Graph, s snapshot.Snapshot) []workload.Progress {
	var (
		all    []workload.Progress
		starts []rollout.Start
	)
	for _, c := range g.Components {
		p, made := progress(c, s)
		all = append(all, p)
		starts = append(starts, rollout.Start{Name: c.Name, After: c.StartAfter, Made: made, Ready: p.Done})
	}
	waiting := rollout.Waiting(starts)
	for i, c := range g.Components {
		if before := waiting[c.Name]; len(before) > 0 {
			all[i].Waiting, all[i].Why = before, fmt.Sprintf("waiting for %s to be ready", strings.Join(before, ", "))
		}
	}
	return all
}

// progress reads one component, and whether it exists. One that was not made yet
// shows zero replicas of the kind that will run it.
func progress(c graph.Component, s snapshot.Snapshot) (p workload.Progress, made bool) {
	p = workload.Progress{Kind: workload.KindDeployment, Name: c.ObjectName}
	if c.Multinode() {
		p.Kind = workload.KindLeaderWorkerSet
	}
	dcd, found := snapshot.Find[*v1alpha1.DynamoComponentDeployment](s, c.ObjectName)
	if !found {
		p.Why = "not created yet"
		return p, false
	}
	if seen := dcd.Status.Service; seen != nil {
		p.Kind, p.Name = workload.Kind(seen.ComponentKind), seen.ComponentName
		p.Replicas, p.Updated, p.Ready, p.Available = seen.Replicas, seen.UpdatedReplicas, seen.ReadyReplicas, seen.AvailableReplicas
		p.Startup = seen.Startup
	}
	available := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
	switch {
	case s.Outdated(v1alpha1.KindDynamoComponentDeployment, dcd.Name):
		p.Why = "being updated"
	case available == nil || dcd.Status.ObservedGeneration < dcd.Generation:
		p.Why = "not observed yet"
	case available.Status != metav1.ConditionTrue:
		p.Reason, p.Why = cmp.Or(available.Reason, v1alpha1.ReasonServicesNotReady), available.Message
		p.Stuck = meta.IsStatusConditionFalse(dcd.Status.Conditions, v1alpha1.ConditionProgressing)
	default:
		p.Done = true
	}
	return p, true
}

// Members implements workload.Generational.
func (b Builder) Members(g *graph.Graph, s snapshot.Snapshot) []workload.Member {
	var all []workload.Member
	for _, object := range s.Owned {
		dcd, ok := object.(*v1alpha1.DynamoComponentDeployment)
		if !ok || dcd.DeletionTimestamp != nil {
			continue
		}
		service := dcd.Labels[v1alpha1.LabelComponent]
		at := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Name == service })
		if at >= 0 && !g.InGeneration(g.Components[at]) {
			continue
		}
		m := workload.Member{Service: service, Generation: dcd.Labels[v1alpha1.LabelGeneration], Object: dcd, Replicas: 1, Foreign: true}
		m.Name = graph.Membership{Generation: m.Generation, ObjectName: dcd.Name}
		if dcd.Spec.Replicas != nil {
			m.Replicas = *dcd.Spec.Replicas
		}
		// What is told its contract was made by us; what cannot be read is left alone. A
		// paired graph takes what runs under the seed's for its first generation.
		if one, err := graph.FromComponentDeployment(dcd, b.Defaults); err == nil {
			m.Stored, m.Foreign = one.Components[0], one.Contract != graph.ContractV1 && !g.Paired
		}
		if at < 0 && (m.Foreign || m.Generation == "" && !g.Paired || !g.InGeneration(m.Stored)) {
			continue // the graph does not have it any more, and no generation does
		}
		all = append(all, m)
	}
	return withWorkers(g, all)
}

// withWorkers has frontends that were made before their graph was paired be of the
// generation of its workers: the recorded one, if there is any of that.
func withWorkers(g *graph.Graph, members []workload.Member) []workload.Member {
	frontend := func(m workload.Member) bool { return m.Stored.Role == graph.RoleFrontend }
	at := slices.IndexFunc(members, func(m workload.Member) bool { return !frontend(m) && m.Generation == g.Generation })
	if at < 0 {
		at = slices.IndexFunc(members, func(m workload.Member) bool { return !frontend(m) })
	}
	for i := range members {
		if m := &members[i]; at >= 0 && frontend(*m) && m.Stored.Generation == "" {
			m.Generation = members[at].Generation
			m.Name.Generation = m.Generation
		}
	}
	return members
}

// Named implements workload.Generational.
func (Builder) Named(g *graph.Graph, service, generation string, first bool) graph.Membership {
	m := graph.Membership{Generation: generation, ObjectName: graph.GenerationName(g.Name, service, generation)}
	if first {
		m.ObjectName = graph.ComponentName(g.Name, service)
	}
	return m
}

// Unfit implements workload.Generational.
func (Builder) Unfit(*graph.Graph) string { return "" }

// Whole implements workload.Generational: each component is made by itself.
func (Builder) Whole() bool { return false }

// Carry implements workload.Generational: components that stay as they are stored are
// none of what is desired.
func (b Builder) Carry(g *graph.Graph, desired []graph.Desired, carried workload.Carried, _ snapshot.Snapshot) []graph.Desired {
	var left []string
	for _, c := range g.Components {
		if slices.Contains(carried.Left, c.Name) {
			left = append(left, c.ObjectName)
		}
	}
	return slices.DeleteFunc(slices.Clone(desired), func(o graph.Desired) bool {
		ref, ok := b.Made(o.Object)
		return ok && slices.Contains(left, ref.Name)
	})
}
