package device

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodesPublishASliceForEachDriver(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "n1"}}
	type slice struct {
		Name, Driver, Pool, Node, Owner string
		Devices                         []string
	}
	var got []slice
	for _, s := range (Counts{NvidiaGPU: 2, DomainChannel: 1, "npu.example.com": 1, IntelGPU: 0}).Slices(node) {
		one := slice{s.Name, s.Spec.Driver, s.Spec.Pool.Name, *s.Spec.NodeName, string(s.OwnerReferences[0].UID), nil}
		for _, d := range s.Spec.Devices {
			one.Devices = append(one.Devices, d.Name)
		}
		got = append(got, one)
	}
	want := []slice{
		{"node-1-compute-domain.nvidia.com", "compute-domain.nvidia.com", "node-1", "node-1", "n1", []string{"channel-0"}},
		{"node-1-gpu.nvidia.com", "gpu.nvidia.com", "node-1", "node-1", "n1", []string{"gpu-0", "gpu-1"}},
		{"node-1-npu.example.com", "npu.example.com", "node-1", "node-1", "n1", []string{"device-0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClassesSelectTheirDevices(t *testing.T) {
	got := map[string]string{}
	for _, c := range (Counts{NvidiaGPU: 2, IntelGPU: 0, "npu.example.com": 1}).Classes() {
		got[c.Name] = c.Spec.Selectors[0].CEL.Expression
	}
	want := map[string]string{
		NvidiaGPU:         `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`,
		IntelGPU:          `device.driver == "gpu.intel.com"`,
		"npu.example.com": `device.driver == "npu.example.com"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		counts Counts
		ok     bool
	}{
		"the default":                     {Default(8), true},
		"no GPUs, no devices":             {Default(0), true},
		"a class that nobody could write": {Counts{"GPU!": 1}, false},
		"less than none":                  {Counts{NvidiaGPU: -1}, false},
		"more than a slice holds":         {Counts{NvidiaGPU: 129}, false},
	} {
		if err := c.counts.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
