package device

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// Device is one that a claim was given.
type Device struct {
	// Claim is the name that the pod has for the claim, Request the one within it.
	Claim, Request     string
	Driver, Pool, Name string
}

// String names the device as a container's environment does.
func (d Device) String() string { return d.Driver + "/" + d.Pool + "/" + d.Name }

// GPU reports whether an engine computes on it.
func (d Device) GPU() bool {
	for _, k := range kinds {
		if k.driver == d.Driver {
			return k.gpu
		}
	}
	return false
}

// Allocated is what a claim gives to a pod. It is an error if the claim is
// another pod's, or nobody has allocated and reserved it: a kubelet starts no
// container then.
func Allocated(pod *corev1.Pod, name string, claim *resourcev1.ResourceClaim, generated bool) ([]Device, error) {
	if generated {
		if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
			return nil, err
		}
	}
	if claim.Status.Allocation == nil {
		return nil, fmt.Errorf("resource claim %s/%s is not allocated", claim.Namespace, claim.Name)
	}
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		return nil, fmt.Errorf("resource claim %s/%s is not reserved for pod %s (%s)", claim.Namespace, claim.Name, pod.Name, pod.UID)
	}
	var out []Device
	for _, r := range claim.Status.Allocation.Devices.Results {
		out = append(out, Device{Claim: name, Request: r.Request, Driver: r.Driver, Pool: r.Pool, Name: r.Device})
	}
	return out, nil
}

// Of are the devices of one container: those of the claims it names, or of one
// request of a claim.
func Of(c *corev1.Container, all []Device) []Device {
	var out []Device
	for _, d := range all {
		if slices.ContainsFunc(c.Resources.Claims, func(use corev1.ResourceClaim) bool {
			return use.Name == d.Claim && (use.Request == "" || use.Request == d.Request || use.Request == resourceclaim.BaseRequestRef(d.Request))
		}) {
			out = append(out, d)
		}
	}
	return out
}
