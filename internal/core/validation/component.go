package validation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
)

// ComponentDeployment checks a DynamoComponentDeployment on its own.
func ComponentDeployment(dcd *v1alpha1.DynamoComponentDeployment) field.ErrorList {
	return wordingOf(dcd).errors(componentDeployment(componentAsRead(dcd)))
}

func componentDeployment(dcd *v1alpha1.DynamoComponentDeployment) field.ErrorList {
	at := field.NewPath("spec")
	errs := objectName(dcd.Name, field.NewPath("metadata", "name"))
	errs = append(errs, shared(&dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, at)...)
	errs = append(errs, launchable(&dcd.Spec.SharedSpec, dcd.Spec.BackendFramework, at)...)
	return sorted(errs)
}

// shared checks what a service of a graph and a component have in common.
func shared(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) field.ErrorList {
	errs := discoveryBackend(s.Annotations, at.Child("annotations"))
	errs = append(errs, strategy(s.Annotations, at.Child("annotations"))...)
	if m := s.ExtraPodMetadata; m != nil {
		errs = append(errs, strategy(m.Annotations, at.Child("extraPodMetadata", "annotations"))...)
	}
	errs = append(errs, metadata(s, at)...)
	errs = append(errs, replicas(s.Replicas, s.Multinode, at.Child("replicas"))...)
	if s.Multinode != nil && s.Multinode.NodeCount > maxGroup {
		errs = append(errs, field.Invalid(at.Child("multinode", "nodeCount"), s.Multinode.NodeCount, fmt.Sprintf("must be at most %d", maxGroup)))
	}
	errs = append(errs, ingress(s.Ingress, at.Child("ingress"))...)
	errs = append(errs, references(s, at)...)
	engine, engineErrs := engineOf(s, framework, at)
	errs = append(errs, engineErrs...)
	errs = append(errs, mounts(s.VolumeMounts, engine, at.Child("volumeMounts"))...)
	errs = append(errs, resources(s.Resources, at.Child("resources"))...)
	errs = append(errs, environment(s.Envs, at.Child("envs"))...)
	errs = append(errs, containers(s.ExtraPodSpec, at.Child("extraPodSpec"))...)
	if s.ComponentType == v1alpha1.ComponentTypeEPP {
		errs = append(errs, picker(s, at)...)
	}
	return errs
}

// maxGroup bounds nodes and replicas of a group: each is an object, or a word of
// a command line, and no cluster has more.
const maxGroup = 1000

func replicas(n *int32, multinode *v1alpha1.Multinode, at *field.Path) field.ErrorList {
	switch {
	case n == nil:
		return nil
	case *n < 0:
		return field.ErrorList{field.Invalid(at, *n, "must not be negative")}
	case multinode != nil && *n > maxGroup:
		return field.ErrorList{field.Invalid(at, *n, fmt.Sprintf("must be at most %d for groups of nodes", maxGroup))}
	default:
		return nil
	}
}

func discoveryBackend(annotations map[string]string, at *field.Path) field.ErrorList {
	chosen, set := annotations[v1alpha1.AnnotationDiscoveryBackend]
	if !set || chosen == v1alpha1.DiscoveryBackendKubernetes || chosen == v1alpha1.DiscoveryBackendEtcd {
		return nil
	}
	return field.ErrorList{field.NotSupported(at.Key(v1alpha1.AnnotationDiscoveryBackend), chosen,
		[]string{v1alpha1.DiscoveryBackendKubernetes, v1alpha1.DiscoveryBackendEtcd})}
}

// engineOf finds the engine that a component runs, or says why it cannot.
func engineOf(s *v1alpha1.SharedSpec, framework v1alpha1.BackendFramework, at *field.Path) (graph.Engine, field.ErrorList) {
	declared := graph.Engine(framework)
	if !graph.RoleOf(string(s.ComponentType)).RunsEngine() || s.ExtraPodSpec == nil || s.ExtraPodSpec.MainContainer == nil {
		return declared, nil
	}
	main := s.ExtraPodSpec.MainContainer
	found := graph.Engines(main.Command, main.Args)
	here := at.Child("extraPodSpec", "mainContainer", "args")
	switch {
	case len(found) == 0:
		return declared, nil
	case len(found) > 1 && declared == graph.EngineNone:
		return declared, field.ErrorList{field.Invalid(here, found, "the command launches several engines; spec.backendFramework has to name one")}
	case declared != graph.EngineNone && !slices.Contains(found, declared):
		return declared, field.ErrorList{field.Invalid(here, found[0], fmt.Sprintf("the command launches another engine than spec.backendFramework %s", declared))}
	case declared != graph.EngineNone:
		return declared, nil
	default:
		return found[0], nil
	}
}

func mounts(list []v1alpha1.VolumeMount, engine graph.Engine, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	places := map[string]bool{}
	for i, m := range list {
		here := at.Index(i)
		if m.MountPoint != "" && places[m.MountPoint] {
			errs = append(errs, field.Duplicate(here.Child("mountPoint"), m.MountPoint))
		}
		places[m.MountPoint] = true
		if m.Name == "" {
			errs = append(errs, field.Required(here.Child("name"), "names the claim to mount"))
		} else {
			errs = append(errs, label(m.Name, here.Child("name"), "as the name of a volume ")...)
		}
		switch {
		case strings.Contains(m.MountPoint, ":"):
			errs = append(errs, field.Invalid(here.Child("mountPoint"), m.MountPoint, "must not contain a colon"))
		case m.MountPoint != "":
		case !m.UseAsCompilationCache:
			errs = append(errs, field.Required(here.Child("mountPoint"), ""))
		case engine.CompilationCache() == "":
			errs = append(errs, field.Required(here.Child("mountPoint"), "this engine has no default place for its compilation cache"))
		}
	}
	return errs
}

func resources(r *v1alpha1.Resources, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	return append(quantities(r.Requests, at.Child("requests")), quantities(r.Limits, at.Child("limits"))...)
}

func quantities(item *v1alpha1.ResourceItem, at *field.Path) field.ErrorList {
	if item == nil {
		return nil
	}
	var errs field.ErrorList
	check := func(text string, here *field.Path) {
		if text == "" {
			return
		}
		if q, err := resource.ParseQuantity(text); err != nil || q.Sign() < 0 {
			errs = append(errs, field.Invalid(here, text, "is not a quantity such as 500m, 8 or 16Gi"))
		}
	}
	check(item.CPU, at.Child("cpu"))
	check(item.Memory, at.Child("memory"))
	check(item.GPU, at.Child("gpu"))
	if q, err := resource.ParseQuantity(item.GPU); err == nil && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(at.Child("gpu"), item.GPU, "GPUs are given whole"))
	}
	errs = append(errs, resourceName(item.GPUType, at.Child("gpuType"))...)
	for _, name := range slices.Sorted(maps.Keys(item.Custom)) {
		here := at.Child("custom").Key(name)
		check(item.Custom[name], here)
		errs = append(errs, resourceName(name, here)...)
	}
	return errs
}

// picker checks a gateway endpoint picker: there is one, on one node, and it
// has a configuration from exactly one place.
func picker(s *v1alpha1.SharedSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Multinode != nil {
		errs = append(errs, field.Forbidden(at.Child("multinode"), "an endpoint picker runs on one node"))
	}
	if s.Replicas != nil && *s.Replicas != 1 {
		errs = append(errs, field.Invalid(at.Child("replicas"), *s.Replicas, "an endpoint picker has exactly one replica"))
	}
	config := at.Child("eppConfig")
	switch c := s.EPPConfig; {
	case c == nil || (c.ConfigMapRef == nil && c.Config == nil):
		errs = append(errs, field.Required(config, "an endpoint picker needs config or configMapRef"))
	case c.ConfigMapRef != nil && c.Config != nil:
		errs = append(errs, field.Forbidden(config, "give config or configMapRef, not both"))
	case c.ConfigMapRef != nil && c.ConfigMapRef.Name == "":
		errs = append(errs, field.Required(config.Child("configMapRef", "name"), ""))
	case c.ConfigMapRef != nil:
		errs = append(errs, reference(c.ConfigMapRef.Name, config.Child("configMapRef", "name"))...)
	case c.Config != nil && json.Unmarshal(c.Config.Raw, &map[string]any{}) != nil:
		errs = append(errs, field.Invalid(config.Child("config"), string(c.Config.Raw), "must be an object"))
	}
	return errs
}
