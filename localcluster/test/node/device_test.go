package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// template makes a claim template that asks for devices of one class.
func (s *scene) template(name, class string, count int64) {
	s.Helper()
	_, err := s.client.ResourceV1().ResourceClaimTemplates(s.ns).Create(s.Context(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name:    "gpus",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count},
		}}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
}

// claiming is a pod with the devices of a template.
func claiming(name, template string) *corev1.Pod {
	main := runtime("main", "environment")
	main.Resources.Claims = []corev1.ResourceClaim{{Name: "devices"}}
	pod := makePod(name, main)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
	return pod
}

func (s *scene) claims() []resourcev1.ResourceClaim {
	s.Helper()
	all, err := s.client.ResourceV1().ResourceClaims(s.ns).List(s.Context(), metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return all.Items
}

// Intel's devices are used by this test alone, so their number is known to it:
// three nodes of eight.
func TestDevicesAreAllocatedAndFreed(t *testing.T) {
	s := begin(t)
	s.template("all", "gpu.intel.com", 8)
	s.template("too-many", "gpu.intel.com", 9)

	pod := s.create(claiming("first", "all"))
	pod = s.becomes(pod.Name, "running", inPhase(corev1.PodRunning))
	claims := s.claims()
	if len(claims) != 1 || claims[0].Status.Allocation == nil {
		t.Fatalf("claims %+v", claims)
	}
	for _, d := range claims[0].Status.Allocation.Devices.Results {
		if d.Driver != "gpu.intel.com" || d.Pool != pod.Spec.NodeName {
			t.Errorf("device %s of %s on %s for a pod on %s", d.Device, d.Driver, d.Pool, pod.Spec.NodeName)
		}
	}
	for _, d := range claims[0].Status.Devices {
		if len(d.Conditions) != 1 || d.Conditions[0].Type != "Ready" || d.Conditions[0].Status != metav1.ConditionTrue {
			t.Errorf("device %s is %+v", d.Device, d.Conditions)
		}
	}
	if n := len(claims[0].Status.Devices); n != 8 {
		t.Errorf("the node has prepared %d devices", n)
	}
	s.eventually("the container sees its devices", func() bool {
		log := s.run("logs", "first")
		return strings.Contains(log, "DYNAMO_GPUS=8") && strings.Contains(log, "DYNAMO_DEVICES=gpu.intel.com/"+pod.Spec.NodeName+"/card-0,")
	})

	s.create(claiming("greedy", "too-many"))
	s.eventually("the scheduler says why it waits", func() bool {
		return s.hasEvent("FailedScheduling", "cannot allocate all claims")
	})
	if p := s.pod("greedy"); p.Status.Phase != corev1.PodPending || p.Spec.NodeName != "" {
		t.Errorf("the pod that asks for more than a node has is %s on %q", p.Status.Phase, p.Spec.NodeName)
	}

	s.create(claiming("second", "all"))
	s.create(claiming("third", "all"))
	s.becomes("second", "running", inPhase(corev1.PodRunning))
	s.becomes("third", "running", inPhase(corev1.PodRunning))
	s.create(claiming("late", "all"))
	s.eventually("the scheduler says that all are taken", func() bool {
		for _, c := range s.pod("late").Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, "cannot allocate all claims") {
				return true
			}
		}
		return false
	})
	if err := s.client.CoreV1().Pods(s.ns).Delete(s.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	late := s.becomes("late", "running", inPhase(corev1.PodRunning))
	if late.Spec.NodeName != pod.Spec.NodeName {
		t.Errorf("the freed devices are on %s, the pod on %s", pod.Spec.NodeName, late.Spec.NodeName)
	}
	s.eventually("the claim of the deleted pod is gone", func() bool {
		_, err := s.client.ResourceV1().ResourceClaims(s.ns).Get(s.Context(), claims[0].Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestASliceThatIsDeletedComesBack(t *testing.T) {
	s := begin(t)
	slices := s.client.ResourceV1().ResourceSlices()
	const name = "node-1-compute-domain.nvidia.com"
	before, err := slices.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := slices.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the slice is back", func() bool {
		after, err := slices.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && after.UID != before.UID && len(after.Spec.Devices) == 8
	})
}
