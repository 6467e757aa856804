package worker

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claiming is a pod whose container has two of the four devices that it claims.
func claiming() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid"},
		Spec: corev1.PodSpec{
			RestartPolicy:  corev1.RestartPolicyAlways,
			ResourceClaims: []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: new("template")}},
			Containers: []corev1.Container{{
				Name: "main", Image: "vllm-runtime", Args: []string{"serve"},
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "devices", Request: "gpus"}}},
			}},
		},
		Status: corev1.PodStatus{ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "devices", ResourceClaimName: new("p-devices")}}},
	}
}

func allocated(owner types.UID) *resourcev1.ResourceClaim {
	result := func(request, driver, name string) resourcev1.DeviceRequestAllocationResult {
		return resourcev1.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: "node-0", Device: name}
	}
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "p-devices", Namespace: "ns", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: owner, Controller: new(true)}}},
		Status: resourcev1.ResourceClaimStatus{
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "uid"}},
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				result("gpus", "gpu.nvidia.com", "gpu-0"), result("gpus/large", "gpu.nvidia.com", "gpu-5"),
				result("spare", "gpu.nvidia.com", "gpu-6"), result("channel", "compute-domain.nvidia.com", "channel-0"),
			}}},
		},
	}
}

func TestAContainerHasTheDevicesOfItsClaim(t *testing.T) {
	perform(t, claiming(), func(st *stage) {
		st.claims = map[string]*resourcev1.ResourceClaim{"p-devices": allocated("uid")}
		st.start()
		if len(st.launched) != 1 {
			t.Fatalf("launched %d, events %q", len(st.launched), st.events)
		}
		for _, want := range []string{"DYNAMO_GPUS=2", "DYNAMO_DEVICES=gpu.nvidia.com/node-0/gpu-0,gpu.nvidia.com/node-0/gpu-5"} {
			if !slices.Contains(st.launched[0].Env, want) {
				t.Errorf("environment %q has no %s", st.launched[0].Env, want)
			}
		}
		if !slices.Equal(st.prepared, []string{"p-devices"}) {
			t.Errorf("prepared %q", st.prepared)
		}
	})
}

func TestNothingStartsWithoutItsDevices(t *testing.T) {
	unallocated, foreign, unreserved := allocated("uid"), allocated("another"), allocated("uid")
	unallocated.Status.Allocation = nil
	unreserved.Status.ReservedFor[0].UID = "another"
	for name, c := range map[string]struct {
		claim *resourcev1.ResourceClaim
		says  string
	}{
		"a claim that is missing":       {nil, `resourceclaim "p-devices" not found`},
		"a claim without an allocation": {unallocated, "is not allocated"},
		"a claim of another pod":        {foreign, "was not created for"},
		"a claim reserved for another":  {unreserved, "is not reserved for pod p (uid)"},
	} {
		t.Run(name, func(t *testing.T) {
			perform(t, claiming(), func(st *stage) {
				st.claims = map[string]*resourcev1.ResourceClaim{}
				if c.claim != nil {
					st.claims["p-devices"] = c.claim
				}
				st.start()
				if len(st.launched) != 0 {
					t.Fatal("a container runs")
				}
				if !slices.ContainsFunc(st.events, func(e string) bool {
					return strings.HasPrefix(e, "FailedPrepareDynamicResources Failed to prepare dynamic resources: ") && strings.Contains(e, c.says)
				}) {
					t.Errorf("events %q say nothing of %q", st.events, c.says)
				}
				st.mu.Lock()
				st.claims["p-devices"] = allocated("uid")
				st.mu.Unlock()
				st.after(again)
				if len(st.launched) != 1 {
					t.Error("the container does not start once its devices are there")
				}
			})
		})
	}
}
