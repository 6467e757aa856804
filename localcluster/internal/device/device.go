// Package device is what the nodes offer to resource claims: a simulated driver
// of dynamic resource allocation.
//
// It is pure. It says which DeviceClasses and ResourceSlices a cluster has, and
// which devices an allocated claim means for a pod. Allocation is the real
// scheduler's, the life of claims the real controller's.
package device

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The classes that published manifests use, or that their claim templates need.
const (
	NvidiaGPU     = "gpu.nvidia.com"
	IntelGPU      = "gpu.intel.com"
	DomainChannel = "compute-domain-default-channel.nvidia.com"
)

// most is how many devices one ResourceSlice may hold.
const most = 128

// Counts is how many devices each node has of each DeviceClass.
type Counts map[string]int

// Default is what nodes with so many GPUs offer. A node's GPUs stand in its
// capacity too, as nvidia.com/gpu: a cluster has either a device plugin or a
// driver, and manifests for both must run here.
func Default(gpus int) Counts {
	return Counts{NvidiaGPU: gpus, IntelGPU: gpus, DomainChannel: gpus}
}

// Validate refuses what the API would refuse.
func (c Counts) Validate() error {
	for _, class := range slices.Sorted(maps.Keys(c)) {
		if wrong := validation.IsDNS1123Subdomain(class); len(wrong) > 0 {
			return fmt.Errorf("device class %q: %s", class, strings.Join(wrong, ", "))
		}
		if c[class] < 0 || c[class] > most {
			return fmt.Errorf("%d devices of class %s: must be within 0..%d", c[class], class, most)
		}
	}
	return nil
}

// kind is a sort of device, in the words of its real driver.
type kind struct {
	driver, prefix string
	gpu            bool
	attributes     map[resourcev1.QualifiedName]string
	memory         string
}

var kinds = map[string]kind{
	NvidiaGPU: {
		driver: "gpu.nvidia.com", prefix: "gpu", gpu: true, memory: "143771Mi",
		attributes: map[resourcev1.QualifiedName]string{"type": "gpu", "productName": "NVIDIA H200", "brand": "Nvidia", "architecture": "Hopper"},
	},
	IntelGPU: {
		driver: "gpu.intel.com", prefix: "card", gpu: true, memory: "48Gi",
		attributes: map[resourcev1.QualifiedName]string{"family": "Max Series", "model": "0x0bd5"},
	},
	DomainChannel: {
		driver: "compute-domain.nvidia.com", prefix: "channel",
		attributes: map[resourcev1.QualifiedName]string{"type": "channel"},
	},
}

// kindOf is the catalogue's kind; a class that is not in it has a driver of its
// own name, and devices without properties.
func kindOf(class string) kind {
	if k, ok := kinds[class]; ok {
		return k
	}
	return kind{driver: class, prefix: "device"}
}

// Classes are the DeviceClasses of a cluster, in order. One of which nodes have
// no devices exists all the same: claims of it wait, as they do for hardware
// that is yet to come.
func (c Counts) Classes() []*resourcev1.DeviceClass {
	var out []*resourcev1.DeviceClass
	for _, name := range slices.Sorted(maps.Keys(c)) {
		k := kindOf(name)
		expression := fmt.Sprintf("device.driver == %q", k.driver)
		if sort := k.attributes["type"]; sort != "" {
			expression += fmt.Sprintf(" && device.attributes[%q].type == %q", k.driver, sort)
		}
		out = append(out, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
				{CEL: &resourcev1.CELDeviceSelector{Expression: expression}},
			}},
		})
	}
	return out
}

// Slices are what one node publishes, one for each driver. The node owns them.
func (c Counts) Slices(node *corev1.Node) []*resourcev1.ResourceSlice {
	var out []*resourcev1.ResourceSlice
	for _, class := range slices.Sorted(maps.Keys(c)) {
		if c[class] == 0 {
			continue
		}
		k := kindOf(class)
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{
				Name: node.Name + "-" + k.driver,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true),
				}},
			},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: k.driver, NodeName: new(node.Name),
				Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			},
		}
		for i := range c[class] {
			slice.Spec.Devices = append(slice.Spec.Devices, k.device(node.Name, i))
		}
		out = append(out, slice)
	}
	return out
}

func (k kind) device(node string, index int) resourcev1.Device {
	d := resourcev1.Device{
		Name: fmt.Sprintf("%s-%d", k.prefix, index),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid":  {StringValue: new(fmt.Sprintf("%s-%s-%d", k.prefix, node, index))},
			"index": {IntValue: new(int64(index))},
		},
	}
	for name, value := range k.attributes {
		d.Attributes[name] = resourcev1.DeviceAttribute{StringValue: new(value)}
	}
	if k.memory != "" {
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(k.memory)}}
	}
	return d
}
