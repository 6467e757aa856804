package installation

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dynamo-operator/dynamo-operator/internal/core/version"
)

// Images are those of an installation. What is empty is the image of this build,
// in the registry that it was built for.
type Images struct {
	Operator, Profiler string
}

// ImagesFrom are the images in a registry, or beside an operator's image that is
// given in full: the profiler never stays behind where it is told from the operator.
func ImagesFrom(registry, operator string) (Images, error) {
	if registry != "" && operator != "" {
		return Images{}, fmt.Errorf("both a registry, %s, and an image, %s: want one of them", registry, operator)
	}
	i := Images{Operator: operator}
	if registry != "" {
		i.Operator, i.Profiler = version.ImageIn(registry, version.Operator), version.ImageIn(registry, version.Profiler)
	} else if beside, found := version.Beside(operator, version.Profiler); found {
		i.Profiler = beside
	}
	return i, nil
}

// set writes the images into what is shipped: the operator's Deployment, and the
// configuration in which it finds the profiler's.
func (i Images) set(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "Deployment", "Job":
		return setOperator(object, cmp.Or(i.Operator, version.Image(version.Operator)), "spec", "template", "spec")
	case "CronJob":
		return setOperator(object, cmp.Or(i.Operator, version.Image(version.Operator)), "spec", "jobTemplate", "spec", "template", "spec")
	case "ConfigMap":
		return setProfiler(object, cmp.Or(i.Profiler, version.Image(version.Profiler)))
	default:
		return nil
	}
}

// setOperator gives the containers of pods another image.
func setOperator(object *unstructured.Unstructured, image string, pod ...string) error {
	for _, list := range []string{"initContainers", "containers"} {
		at := append(slices.Clone(pod), list)
		containers, found, err := unstructured.NestedSlice(object.Object, at...)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		for _, container := range containers {
			if fields, ok := container.(map[string]any); ok {
				fields["image"] = image
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, at...); err != nil {
			return err
		}
	}
	return nil
}

const configFile = "config.yaml"

func setProfiler(object *unstructured.Unstructured, image string) error {
	return Configure(object, map[string]any{"profiler": map[string]any{"image": image}})
}
