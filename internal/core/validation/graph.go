package validation

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// GraphDeployment checks a DynamoGraphDeployment on its own.
func GraphDeployment(dgd *v1alpha1.DynamoGraphDeployment) field.ErrorList {
	return wordingOf(dgd).errors(graphDeployment(asRead(dgd)))
}

func graphDeployment(dgd *v1alpha1.DynamoGraphDeployment) field.ErrorList {
	at := field.NewPath("spec")
	errs := objectName(dgd.Name, field.NewPath("metadata", "name"))
	errs = append(errs, discoveryBackend(dgd.Annotations, field.NewPath("metadata", "annotations"))...)
	errs = append(errs, rollouts(dgd.Annotations, field.NewPath("metadata", "annotations"))...)
	errs = append(errs, environment(dgd.Spec.Envs, at.Child("envs"))...)
	errs = append(errs, services(dgd, at.Child("services"))...)
	errs = append(errs, claims(dgd.Spec.PVCs, at.Child("pvcs"))...)
	errs = append(errs, restart(dgd, at.Child("restart"))...)
	return sorted(errs)
}

// writtenGraph checks what nobody would write on purpose, and what a graph may run with all
// the same. It is refused where it is written; a graph that has it goes on.
func writtenGraph(dgd *v1alpha1.DynamoGraphDeployment) field.ErrorList {
	at := field.NewPath("spec")
	errs := updateStrategy(dgd.Annotations, field.NewPath("metadata", "annotations"))
	errs = append(errs, frontendSidecars(dgd, at.Child("services"))...)
	return append(errs, kvTransfer(dgd.Spec.Experimental, at.Child("experimental", "kvTransferPolicy"))...)
}

// maxServices bounds the objects that one graph can ask for, and what a reconcile
// over it costs.
const maxServices = 25

func services(dgd *v1alpha1.DynamoGraphDeployment, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(dgd.Spec.Services) == 0 {
		errs = append(errs, field.Required(at, "a graph has at least one service"))
	}
	if n := len(dgd.Spec.Services); n > maxServices {
		errs = append(errs, field.TooMany(at, n, maxServices))
	}
	pickers := 0
	for name, s := range dgd.Spec.SortedServices() {
		here := at.Key(name)
		errs = append(errs, shared(s, dgd.Spec.BackendFramework, here)...)
		errs = append(errs, inGraph(dgd, name, s, here)...)
		if s.ComponentType == v1alpha1.ComponentTypeEPP {
			pickers++
		}
	}
	if pickers > 1 {
		errs = append(errs, field.Forbidden(at, "a graph has at most one service of componentType epp"))
	}
	errs = append(errs, startOrder(dgd, at)...)
	return append(errs, serviceNames(dgd, at)...)
}

// inGraph checks a service with what its graph and its environment say to it.
func inGraph(dgd *v1alpha1.DynamoGraphDeployment, name string, s *v1alpha1.SharedSpec, at *field.Path) field.ErrorList {
	variable := at.Child("envs").Key(graph.DeploymentConfigEnv)
	effective, err := graph.Service(dgd, name, graph.Defaults{})
	if err != nil {
		return field.ErrorList{field.Invalid(variable, "", err.Error())}
	}
	if s.Replicas == nil {
		if errs := replicas(effective.Replicas, s.Multinode, variable); len(errs) > 0 {
			return errs
		}
	}
	if len(resources(s.Resources, at)) == 0 {
		if errs := resources(effective.Resources, variable); len(errs) > 0 {
			return errs
		}
	}
	return launchable(&effective, dgd.Spec.BackendFramework, at)
}

func claims(pvcs []v1alpha1.PVC, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, pvc := range pvcs {
		here := at.Index(i)
		switch {
		case pvc.Name == "":
			errs = append(errs, field.Required(here.Child("name"), "names the claim"))
		case seen[pvc.Name]:
			errs = append(errs, field.Duplicate(here.Child("name"), pvc.Name))
		}
		seen[pvc.Name] = true
		if problems := validation.IsDNS1123Subdomain(pvc.Name); pvc.Name != "" && len(problems) > 0 {
			errs = append(errs, field.Invalid(here.Child("name"), pvc.Name, problems[0]))
		}
		if pvc.Create == nil || !*pvc.Create {
			continue
		}
		const why = "a claim that is to be created needs it"
		if pvc.StorageClass == "" {
			errs = append(errs, field.Required(here.Child("storageClass"), why))
		}
		if pvc.Size != nil && pvc.Size.Sign() < 0 {
			errs = append(errs, field.Invalid(here.Child("size"), pvc.Size.String(), "must not be negative"))
		} else if pvc.Size == nil || pvc.Size.IsZero() {
			errs = append(errs, field.Required(here.Child("size"), why))
		}
		switch {
		case pvc.VolumeAccessMode == "":
			errs = append(errs, field.Required(here.Child("volumeAccessMode"), why))
		case !slices.Contains(accessModes, pvc.VolumeAccessMode):
			errs = append(errs, field.NotSupported(here.Child("volumeAccessMode"), pvc.VolumeAccessMode, accessModes))
		}
	}
	return errs
}

var accessModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany, corev1.ReadWriteOncePod,
}

// updateStrategies are those that Grove knows; it refuses a set with another.
var updateStrategies = []string{"Coherent", "OnDelete", "RollingRecreate"}

func updateStrategy(annotations map[string]string, at *field.Path) field.ErrorList {
	chosen := strings.TrimSpace(annotations[v1alpha1.AnnotationGroveUpdateStrategy])
	if chosen == "" || slices.Contains(updateStrategies, chosen) {
		return nil
	}
	return field.ErrorList{field.NotSupported(at.Key(v1alpha1.AnnotationGroveUpdateStrategy), chosen, updateStrategies)}
}

// kvTransfer checks the label by which workers learn their place: their pods refer to
// it, and the server refuses pods that refer to no label.
func kvTransfer(e *v1alpha1.GraphExperimental, at *field.Path) field.ErrorList {
	if e == nil || e.KVTransferPolicy == nil || e.KVTransferPolicy.LabelKey == "" {
		return nil
	}
	key := e.KVTransferPolicy.LabelKey
	return invalid(at.Child("labelKey"), key, "as a label ", validation.IsQualifiedName(key))
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
