package conversion

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// gpu is the resource that a number of GPUs without a type means.
const gpu corev1.ResourceName = "nvidia.com/gpu"

// upResources reads the quantities of a service. One that is none is left out.
func upResources(r *v1alpha1.Resources) corev1.ResourceRequirements {
	if r == nil {
		return corev1.ResourceRequirements{}
	}
	kind := gpu
	if r.Limits != nil && r.Limits.GPUType != "" {
		kind = corev1.ResourceName(r.Limits.GPUType)
	}
	return corev1.ResourceRequirements{
		Requests: upItem(r.Requests, kind),
		Limits:   upItem(r.Limits, kind),
		Claims:   r.Claims,
	}
}

func upItem(item *v1alpha1.ResourceItem, kind corev1.ResourceName) corev1.ResourceList {
	if item == nil {
		return nil
	}
	if item.GPUType != "" {
		kind = corev1.ResourceName(item.GPUType)
	}
	list := corev1.ResourceList{}
	set := func(name corev1.ResourceName, text string) {
		if text == "" {
			return
		}
		if quantity, err := resource.ParseQuantity(text); err == nil {
			list[name] = quantity
		}
	}
	set(corev1.ResourceCPU, item.CPU)
	set(corev1.ResourceMemory, item.Memory)
	set(kind, item.GPU)
	for name, text := range item.Custom {
		set(corev1.ResourceName(name), text)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

func downResources(r corev1.ResourceRequirements) *v1alpha1.Resources {
	down := v1alpha1.Resources{Requests: downItem(r.Requests), Limits: downItem(r.Limits), Claims: r.Claims}
	if down.Requests == nil && down.Limits == nil && len(down.Claims) == 0 {
		return nil
	}
	return &down
}

func downItem(list corev1.ResourceList) *v1alpha1.ResourceItem {
	if len(list) == 0 {
		return nil
	}
	item := &v1alpha1.ResourceItem{}
	for name, quantity := range list {
		text := quantity.String()
		switch name {
		case corev1.ResourceCPU:
			item.CPU = text
		case corev1.ResourceMemory:
			item.Memory = text
		case gpu:
			item.GPU = text
		default:
			if item.Custom == nil {
				item.Custom = map[string]string{}
			}
			item.Custom[string(name)] = text
		}
	}
	return item
}

// overlay puts quantities over others, name by name.
func overlay(below, above corev1.ResourceList) corev1.ResourceList {
	if len(below) == 0 {
		return above
	}
	if len(above) == 0 {
		return below
	}
	all := maps.Clone(below)
	maps.Copy(all, above)
	return all
}
