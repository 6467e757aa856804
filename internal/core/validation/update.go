package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// immutable finds changes of what cannot change. Each message names the way out.
func immutable(old, object graph.Object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		was := old.(*v1alpha1.DynamoGraphDeployment)
		errs := fixed(was.Spec.BackendFramework, o.Spec.BackendFramework, spec.Child("backendFramework"), "create a new graph for another engine")
		errs = append(errs, nodes(was, o, spec.Child("services"))...)
		return append(errs, claimed(was.Spec.PVCs, o.Spec.PVCs, spec.Child("pvcs"))...)
	case *v1alpha1.DynamoComponentDeployment:
		was := old.(*v1alpha1.DynamoComponentDeployment)
		return fixed(was.Spec.BackendFramework, o.Spec.BackendFramework, spec.Child("backendFramework"), "create a new component for another engine")
	case *v1alpha1.DynamoModel:
		was := old.(*v1alpha1.DynamoModel)
		errs := fixed(was.Spec.BaseModelName, o.Spec.BaseModelName, spec.Child("baseModelName"), "create a new DynamoModel")
		return append(errs, fixed(was.Spec.ModelType, o.Spec.ModelType, spec.Child("modelType"), "create a new DynamoModel")...)
	case *v1alpha1.DynamoGraphDeploymentRequest:
		return started(old.(*v1alpha1.DynamoGraphDeploymentRequest), o, spec)
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		was := old.(*v1alpha1.DynamoGraphDeploymentScalingAdapter)
		return fixed(was.Spec.DGDRef, o.Spec.DGDRef, spec.Child("dgdRef"), "enable scalingAdapter on the other service")
	default:
		return nil
	}
}

func fixed[T comparable](was, is T, at *field.Path, way string) field.ErrorList {
	if was == is {
		return nil
	}
	return field.ErrorList{field.Invalid(at, is, fmt.Sprintf("cannot change from %q after creation; %s", fmt.Sprint(was), way))}
}

// nodes refuses to turn pods into groups of nodes or back: they are of
// different kinds, and the one would run beside the other. The number of nodes
// of a group may change.
func nodes(was, is *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, s := range is.Spec.SortedServices() {
		before, existed := was.Spec.Services[name]
		if !existed {
			continue
		}
		if spans := s.Multinode != nil; spans != (before != nil && before.Multinode != nil) {
			errs = append(errs, field.Forbidden(at.Key(name).Child("multinode"),
				"a running service cannot be moved between one node and several; add a service under another name, then remove this one"))
		}
	}
	return errs
}

// claimed refuses changes of claims that are made already and cannot follow.
func claimed(was, is []v1alpha1.PVC, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, claim := range is {
		n := slices.IndexFunc(was, func(c v1alpha1.PVC) bool { return c.Name == claim.Name })
		if n < 0 || !made(was[n]) || !made(claim) {
			continue
		}
		const way = "add a claim under another name"
		before := was[n]
		errs = append(errs, fixed(before.StorageClass, claim.StorageClass, at.Index(i).Child("storageClass"), way)...)
		errs = append(errs, fixed(before.VolumeAccessMode, claim.VolumeAccessMode, at.Index(i).Child("volumeAccessMode"), way)...)
		if before.Size != nil && claim.Size != nil && claim.Size.Cmp(*before.Size) < 0 {
			errs = append(errs, field.Invalid(at.Index(i).Child("size"), claim.Size.String(), "a claim cannot shrink from "+before.Size.String()))
		}
	}
	return errs
}

func made(c v1alpha1.PVC) bool { return c.Create != nil && *c.Create }

// underWay are the states in which a request acts on the spec it was given.
var underWay = []v1alpha1.RequestState{
	v1alpha1.RequestStateProfiling, v1alpha1.RequestStateDeploying,
	v1alpha1.RequestStateReady, v1alpha1.RequestStateDeploymentDeleted,
}

// started refuses to change a request that is being worked on.
func started(was, is *v1alpha1.DynamoGraphDeploymentRequest, at *field.Path) field.ErrorList {
	if was.Status.ObservedGeneration == 0 || !slices.Contains(underWay, was.Status.State) {
		return nil
	}
	if equality.Semantic.DeepEqual(was.Spec, later(was, is)) && (conversion.WrittenAs(was) != conversion.Beta || equality.Semantic.DeepEqual(beyond(was), beyond(is))) {
		return nil
	}
	if was.Generation > was.Status.ObservedGeneration {
		return nil // an edit slipped in without effect; this may be the way back
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf("the request is %s; create a new one for another question", was.Status.State))}
}

// later is the spec of a request without what v1beta1 lets it say later: that the
// graph is wanted after all, and which version the runtime has.
func later(was, is *v1alpha1.DynamoGraphDeploymentRequest) v1alpha1.DynamoGraphDeploymentRequestSpec {
	spec := is.Spec
	if a := was.Status.Accepted; a == nil || a.Version != conversion.Beta {
		return spec
	}
	spec.RuntimeVersionOverride = was.Spec.RuntimeVersionOverride
	if !was.Spec.AutoApply {
		spec.AutoApply = false
	}
	return spec
}

// beyond is what a request asks that v1alpha1 has no fields for, which an annotation
// holds there.
func beyond(r *v1alpha1.DynamoGraphDeploymentRequest) v1beta1.DynamoGraphDeploymentRequestSpec {
	beta, _ := conversion.RequestToBeta(r)
	hardware := ptr.Deref(beta.Spec.Hardware, v1beta1.Hardware{})
	workload := ptr.Deref(beta.Spec.Workload, v1beta1.Workload{})
	sla := ptr.Deref(beta.Spec.SLA, v1beta1.SLA{})
	return v1beta1.DynamoGraphDeploymentRequestSpec{
		Hardware:       &hardware,
		SearchStrategy: cmp.Or(beta.Spec.SearchStrategy, v1beta1.SearchStrategyRapid),
		Workload:       &v1beta1.Workload{Concurrency: workload.Concurrency, RequestRate: workload.RequestRate},
		SLA:            &v1beta1.SLA{E2ELatency: sla.E2ELatency},
	}
}

// changeWarnings tell what of a change has no effect, and what it costs.
func changeWarnings(old, object graph.Object) []string {
	is, ok := object.(*v1alpha1.DynamoGraphDeployment)
	if !ok {
		return nil
	}
	was := old.(*v1alpha1.DynamoGraphDeployment)
	var w warnings
	for name, s := range is.Spec.SortedServices() {
		before := was.Spec.Services[name]
		if s.ScalingAdapter == nil || !s.ScalingAdapter.Enabled || s.Replicas == nil || before == nil || before.Replicas == nil || *s.Replicas == *before.Replicas {
			continue
		}
		w.add(field.NewPath("spec", "services").Key(name).Child("replicas"), fmt.Sprintf(
			"%d has no effect while scalingAdapter is enabled; scale DynamoGraphDeploymentScalingAdapter %s, and leave the field out of manifests",
			*s.Replicas, graph.ComponentName(is.Name, name)))
	}
	w.renamed(was, is)
	return w.sorted()
}

// renamed warns of workers that all have other names after a change: nothing tells that
// the new ones are the old, so these go at once, and nothing serves until those do.
func (w *warnings) renamed(was, is *v1alpha1.DynamoGraphDeployment) {
	before, err := graph.FromGraphDeployment(was, graph.Defaults{})
	if err != nil {
		return // other rules say why
	}
	after, err := graph.FromGraphDeployment(is, graph.Defaults{})
	if err != nil {
		return
	}
	for _, part := range []graph.Role{graph.RoleDecode, graph.RoleWorker} {
		gone, comes := doing(before, part), doing(after, part)
		ran := slices.ContainsFunc(gone, func(c graph.Component) bool { return c.Replicas > 0 })
		stays := slices.ContainsFunc(gone, func(c graph.Component) bool { _, there := is.Spec.Services[c.Name]; return there })
		if !ran || stays || len(comes) == 0 {
			continue
		}
		var names []string
		for _, c := range gone {
			names = append(names, c.Name)
		}
		slices.Sort(names)
		w.add(field.NewPath("spec", "services"), fmt.Sprintf(
			"%s are deleted before workers of another name serve; add those first, and remove these once they do", strings.Join(names, ", ")))
	}
}

// doing are the workers of a graph that do one part of the work, or all of it.
func doing(g *graph.Graph, part graph.Role) []graph.Component {
	var all []graph.Component
	for _, c := range g.Components {
		if c.Role == part && (part != graph.RoleWorker || c.SubType == "") || c.Role == graph.RoleWorker && c.SubType == string(part) {
			all = append(all, c)
		}
	}
	return all
}
