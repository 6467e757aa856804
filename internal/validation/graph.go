package validation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// GraphDeployment checks a DynamoGraphDeployment on its own.
func GraphDeployment(dgd *v1alpha1.DynamoGraphDeployment) field.ErrorList {
	at := field.NewPath("spec")
	errs := discoveryBackend(dgd.Annotations, field.NewPath("metadata", "annotations"))
	errs = append(errs, services(dgd, at.Child("services"))...)
	errs = append(errs, claims(dgd.Spec.PVCs, at.Child("pvcs"))...)
	errs = append(errs, restart(dgd, at.Child("restart"))...)
	return sorted(errs)
}

func services(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(dgd.Spec.Services) == 0 {
		errs = append(errs, field.Required(at, "a graph has at least one service"))
	}
	pickers := 0
	taken := map[string]string{}
	for name, s := range dgd.Spec.SortedServices() {
		here := at.Key(name)
		errs = append(errs, serviceName(name, taken, here)...)
		errs = append(errs, shared(s, dgd.Spec.BackendFramework, here)...)
		if s.ComponentType == v1alpha1.ComponentTypeEPP {
			pickers++
		}
	}
	if pickers > 1 {
		errs = append(errs, field.Forbidden(at, "a graph has at most one service of componentType epp"))
	}
	return errs
}

// serviceName checks a service's key: it becomes a label value as it stands
// and, in lower case, part of object names.
func serviceName(name string, taken map[string]string, at *field.Path) field.ErrorList {
	lower := strings.ToLower(name)
	if first, seen := taken[lower]; seen {
		return field.ErrorList{field.Duplicate(at, "differs from service "+first+" only in case; both would have the same objects")}
	}
	taken[lower] = name
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Label(lower) {
		errs = append(errs, field.Invalid(at, name, "in lower case "+problem))
	}
	return errs
}

func claims(pvcs []v1alpha1.PVC, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, pvc := range pvcs {
		here := at.Index(i)
		switch {
		case pvc.Name == "":
			errs = append(errs, field.Required(here.Child("name"), ""))
		case seen[pvc.Name]:
			errs = append(errs, field.Duplicate(here.Child("name"), pvc.Name))
		}
		seen[pvc.Name] = true
		if pvc.Create == nil || !*pvc.Create {
			continue
		}
		const why = "a claim that is to be created needs it"
		if pvc.StorageClass == "" {
			errs = append(errs, field.Required(here.Child("storageClass"), why))
		}
		if pvc.Size == nil || pvc.Size.Sign() <= 0 {
			errs = append(errs, field.Required(here.Child("size"), why))
		}
		if pvc.VolumeAccessMode == "" {
			errs = append(errs, field.Required(here.Child("volumeAccessMode"), why))
		}
	}
	return errs
}

func restart(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	r := dgd.Spec.Restart
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if r.ID == "" {
		errs = append(errs, field.Required(at.Child("id"), "each new id asks for one restart"))
	}
	if r.Strategy == nil || len(r.Strategy.Order) == 0 {
		return errs
	}
	order := at.Child("strategy", "order")
	if r.Strategy.Type == v1alpha1.RestartParallel {
		return append(errs, field.Forbidden(order, "a parallel restart has no order"))
	}
	left := maps.Clone(dgd.Spec.Services)
	for i, name := range r.Strategy.Order {
		switch _, known := dgd.Spec.Services[name]; {
		case !known:
			errs = append(errs, field.NotFound(order.Index(i), name))
		case slices.Contains(r.Strategy.Order[:i], name):
			errs = append(errs, field.Duplicate(order.Index(i), name))
		}
		delete(left, name)
	}
	if len(left) > 0 {
		missing := strings.Join(slices.Sorted(maps.Keys(left)), ", ")
		errs = append(errs, field.Invalid(order, r.Strategy.Order, "leaves out "+missing))
	}
	return errs
}
