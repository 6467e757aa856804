package graph

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// defaultGPU is the resource that a number of GPUs means.
const defaultGPU = "nvidia.com/gpu"

// readResources turns the API's strings into quantities. GPUs cannot be
// overcommitted, so a request for them is a limit as well.
func readResources(r *v1alpha1.Resources) (Resources, error) {
	if r == nil {
		return Resources{}, nil
	}
	requests, limits := item(r.Requests), item(r.Limits)
	gpu := cmp.Or(limits.GPUType, requests.GPUType, defaultGPU)
	limits.GPU = cmp.Or(limits.GPU, requests.GPU)
	requests.GPU = "" // the server fills it in from the limit and takes no other
	var (
		read = Resources{Claims: r.Claims}
		err  error
	)
	if read.Requests, err = quantities(requests, gpu); err != nil {
		return Resources{}, fmt.Errorf("resources.requests: %w", err)
	}
	if read.Limits, err = quantities(limits, gpu); err != nil {
		return Resources{}, fmt.Errorf("resources.limits: %w", err)
	}
	read.GPUs = int(new(read.Limits[corev1.ResourceName(gpu)]).Value())
	return read, nil
}

// repeatGPUs says a number of GPUs that the user requests there as well, as the
// limit: the server takes no other.
func (r *Resources) repeatGPUs(users *v1alpha1.Resources) {
	if users == nil || item(users.Requests).GPU == "" {
		return
	}
	gpu := corev1.ResourceName(cmp.Or(item(users.Limits).GPUType, item(users.Requests).GPUType, defaultGPU))
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[gpu] = r.Limits[gpu]
}

// gpusOf counts the GPUs of a component, or of a container of the user's own. Since 1.x
// those of any vendor count, as in v1beta1.
func gpusOf(c *Component, contract Contract) int {
	var users corev1.ResourceList
	if c.Main != nil {
		users = c.Main.Resources.Limits
	}
	if contract == ContractV1 {
		return cmp.Or(c.Resources.GPUs, GPUsIn(c.Resources.Limits), GPUsIn(users))
	}
	return cmp.Or(c.Resources.GPUs, int(new(users[defaultGPU]).Value()))
}

func item(i *v1alpha1.ResourceItem) v1alpha1.ResourceItem {
	if i == nil {
		return v1alpha1.ResourceItem{}
	}
	return *i
}

func quantities(i v1alpha1.ResourceItem, gpu string) (corev1.ResourceList, error) {
	var list corev1.ResourceList
	add := func(name, text string) error {
		if text == "" {
			return nil
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s: %q is not a quantity", name, text)
		}
		if list == nil {
			list = make(corev1.ResourceList, 3+len(i.Custom))
		}
		list[corev1.ResourceName(name)] = q
		return nil
	}
	err := errors.Join(add("cpu", i.CPU), add("memory", i.Memory), add(gpu, i.GPU))
	for _, name := range slices.Sorted(maps.Keys(i.Custom)) {
		err = errors.Join(err, add(name, i.Custom[name])) // a custom quantity goes over the others
	}
	return list, err
}

// IsGPU reports whether a resource is a GPU, whoever makes it.
func IsGPU(name corev1.ResourceName) bool {
	domain, kind, _ := strings.Cut(string(name), "/")
	return kind == "gpu" || strings.HasPrefix(domain, "gpu.")
}
