package validation

import (
	"slices"

	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// Scope is what of the operator the rules depend on.
type Scope struct {
	// ClusterWide is an operator that manages every namespace.
	ClusterWide bool
	// Reserved are namespaces in which nothing is made for requests of others.
	Reserved []string
	// Ingress is what users may be reached by.
	Ingress IngressRules
	// InPlace says that the operator does not roll workers out by generations.
	InPlace bool
	// Contract is what the contract of a graph is chosen by. Only warnings depend on it.
	Contract graph.ContractRules
	// NodeLabels are the labels of nodes that the operator gives to pods; nil where nobody
	// knows. Only warnings depend on them.
	NodeLabels []string
	// Orchestrate tells what will run a graph with some annotations; nil where that
	// depends on a cluster that nobody knows. Only warnings depend on it.
	Orchestrate func(annotations map[string]string) Orchestration
}

// orchestration is what will run a graph that is new.
func (s Scope) orchestration(annotations map[string]string) Orchestration {
	by := Orchestration{Provider: workload.Chosen(annotations)}
	if s.Orchestrate != nil {
		by = s.Orchestrate(annotations)
	}
	by.InPlace, by.Contract, by.NodeLabels = s.InPlace, s.Contract, s.NodeLabels
	return by
}

// Verdict is what is wrong with an object, and what of it is unusual.
type Verdict struct {
	Problems field.ErrorList
	Warnings []string
}

// Create judges an object that is new, or that nobody judged when it was. Whether
// its author may do what it asks for is the API server's to say.
func Create(object graph.Object, scope Scope) Verdict {
	return wordingOf(object).verdict(judge(object, scope))
}

func (w wording) verdict(v Verdict) Verdict {
	return Verdict{w.errors(v.Problems), w.texts(v.Warnings)}
}

// judge judges in the words of v1alpha1.
func judge(object graph.Object, scope Scope) Verdict {
	switch o := object.(type) {
	case *v1alpha1.DynamoGraphDeployment:
		o = asRead(o)
		return Verdict{sorted(slices.Concat(graphDeployment(o), writtenGraph(o), GraphIngress(o, scope.Ingress, true))), graphWarnings(o, scope.Ingress, scope.orchestration(o.Annotations))}
	case *v1alpha1.DynamoComponentDeployment:
		o = componentAsRead(o)
		return Verdict{sorted(slices.Concat(componentDeployment(o), componentSidecar(o, field.NewPath("spec")), ComponentIngress(o, scope.Ingress, true))), componentWarnings(o, scope.Ingress)}
	case *v1alpha1.DynamoModel:
		return Verdict{Problems: Model(o)}
	case *v1alpha1.DynamoGraphDeploymentRequest:
		return Verdict{Request(o, scope), RequestWarnings(o)}
	case *v1alpha1.DynamoGraphDeploymentScalingAdapter:
		return Verdict{Problems: ScalingAdapter(o)}
	default:
		return Verdict{}
	}
}

// Update judges a change. An object on its way out is not judged, nor one whose
// spec stays as it is: finalizers can always be removed and labels set. A rule
// that the old object broke already, in the same place with the same value, does
// not stand in the way of a change elsewhere.
func Update(old, object graph.Object, scope Scope) Verdict {
	if object.GetDeletionTimestamp() != nil || !specChanged(old, object) {
		return Verdict{}
	}
	v := judge(object, scope)
	v.Problems = sorted(append(added(judge(old, scope).Problems, v.Problems), immutable(old, object)...))
	v.Warnings = append(v.Warnings, changeWarnings(old, object)...)
	return wordingOf(object).verdict(v)
}

// added are the problems that were not there before.
func added(before, now field.ErrorList) field.ErrorList {
	known := map[string]bool{}
	for _, e := range before {
		known[e.Error()] = true
	}
	var fresh field.ErrorList
	for _, e := range now {
		if !known[e.Error()] {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

// specChanged also looks at annotations of graphs, some of which are switches
// that rules read.
func specChanged(old, object graph.Object) bool {
	return !equality.Semantic.DeepEqual(specOf(old), specOf(object)) ||
		!equality.Semantic.DeepEqual(old.GetAnnotations(), object.GetAnnotations())
}

// specOf is a field of every kind of ours.
func specOf(object graph.Object) any {
	return reflect.ValueOf(object).Elem().FieldByName("Spec").Interface()
}
