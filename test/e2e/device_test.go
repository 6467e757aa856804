package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestEnginesOfAPodShareClaimedGPUs follows a graph of 1.x runtimes that shares the
// memory of GPUs, of more of them, and not any more. Its pods claim what they share
// by a template that comes and goes with that.
func TestEnginesOfAPodShareClaimedGPUs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("g")
	delete(dgd.Spec.Services, "prefill")
	decode := dgd.Spec.Services["decode"]
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	decode.GPUMemoryService = &v1alpha1.GPUMemoryService{Enabled: true}
	w.create(dgd)
	w.ready("g")
	w.claims("g", "decode", 1)
	template := child{"resource.k8s.io", "v1", "ResourceClaimTemplate", "g-decode-gpu"}
	w.comesBack(template)
	w.patchGraph("g", `{"spec":{"services":{"decode":{"resources":{"limits":{"gpu":"2"}}}}}}`)
	w.claims("g", "decode", 2)
	w.ready("g")
	w.patchGraph("g", `{"spec":{"services":{"decode":{"gpuMemoryService":null}}}}`)
	w.gone(template.object(), template.name)
	w.ready("g")
	w.eventually("pods without a claim", func(context.Context) error {
		for _, pod := range w.pods(w.ctx) {
			if len(pod.Status.ResourceClaimStatuses) > 0 {
				return fmt.Errorf("%s has claims", pod.Name)
			}
		}
		return nil
	})
}

// claims waits until every pod of a service has so many devices by a claim.
func (w world) claims(graphName, service string, devices int) {
	w.Helper()
	w.eventually(fmt.Sprintf("pods of %s with %d devices", service, devices), func(ctx context.Context) error {
		found := false
		for _, pod := range w.pods(ctx) {
			if pod.DeletionTimestamp != nil || pod.Labels[v1alpha1.LabelGraphName] != graphName || pod.Labels[v1alpha1.LabelComponent] != service {
				continue
			}
			got, err := w.devices(ctx, pod)
			if err != nil {
				return err
			}
			if got != devices {
				return fmt.Errorf("%s has %d", pod.Name, got)
			}
			found = true
		}
		if !found {
			return errors.New("no pod")
		}
		return nil
	})
}

// devices counts what a pod was given by its claims.
func (w world) devices(ctx context.Context, pod corev1.Pod) (int, error) {
	n := 0
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.ResourceClaimName == nil {
			continue
		}
		claim := &resourcev1.ResourceClaim{}
		if err := w.cluster.Client.Get(ctx, w.key(*status.ResourceClaimName), claim); err != nil {
			return 0, err
		}
		if claim.Status.Allocation != nil {
			n += len(claim.Status.Allocation.Devices.Results)
		}
	}
	return n, nil
}

// TestAGroupOfNodesRunsOnTheGPUsThatItClaims: nothing but the template tells how many
// GPUs a node of the group has, so the graph waits for that; an engine that was told
// another number would not find its group.
func TestAGroupOfNodesRunsOnTheGPUsThatItClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	requests := []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}}}
	spanning := func(name string, claim corev1.PodResourceClaim) *v1alpha1.DynamoGraphDeployment {
		dgd := &v1alpha1.DynamoGraphDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		main := func(module string, words ...string) *v1alpha1.ExtraPodSpec {
			return &v1alpha1.ExtraPodSpec{
				PodSpec:       &corev1.PodSpec{},
				MainContainer: &corev1.Container{Image: "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.1", Command: []string{"python3", "-m", module}, Args: words},
			}
		}
		decode := &v1alpha1.SharedSpec{
			ComponentType: v1alpha1.ComponentTypeWorker, Replicas: new(int32(1)), Multinode: &v1alpha1.Multinode{NodeCount: 2},
			Resources:    &v1alpha1.Resources{Claims: []corev1.ResourceClaim{{Name: claim.Name}}},
			ExtraPodSpec: main("dynamo.vllm", "--model", "Qwen/Qwen3-0.6B", "--tensor-parallel-size", "4"),
		}
		decode.ExtraPodSpec.PodSpec.ResourceClaims = []corev1.PodResourceClaim{claim}
		dgd.Spec.Services = map[string]*v1alpha1.SharedSpec{
			"Frontend": {ComponentType: v1alpha1.ComponentTypeFrontend, Replicas: new(int32(1)), ExtraPodSpec: main("dynamo.frontend")},
			"decode":   decode,
		}
		return dgd
	}
	w.create(spanning("g", corev1.PodResourceClaim{Name: "gpus", ResourceClaimTemplateName: new("two")}))
	w.eventually("the graph to say what it waits for", func(context.Context) error {
		ready := meta.FindStatusCondition(w.graph("g").Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Reason != v1alpha1.ReasonDeviceClaimNotFound || !strings.Contains(ready.Message, "ResourceClaimTemplate two") {
			return fmt.Errorf("condition %v", ready)
		}
		return nil
	})
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "two"}}
	template.Spec.Spec.Devices.Requests = requests
	w.create(template)
	dgd := w.ready("g")
	w.claims("g", "decode", 2)
	w.answers(w.frontendURL(dgd))

	// A claim that pods share is read where a graph names it.
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"}}
	claim.Spec.Devices.Requests = requests
	w.create(claim)
	w.create(spanning("named", corev1.PodResourceClaim{Name: "gpus", ResourceClaimName: new("shared")}))
	w.eventually("its group", func(ctx context.Context) error {
		return w.cluster.Client.Get(ctx, w.key("named-decode-0"), &lwsv1.LeaderWorkerSet{})
	})
	if args := w.group("named-decode-0").Spec.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Args; !slices.Contains(args, "--nnodes") {
		t.Errorf("launched by %q", args)
	}
}

// TestACheckpointSaysThatPodsStartCold: nothing captures one, so whoever asks for it
// is told, at the checkpoint and at the graph, which starts all the same.
func TestACheckpointSaysThatPodsStartCold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	checkpoint := &v1alpha1.DynamoCheckpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "warm", Finalizers: []string{v1alpha1.Finalizer}}}
	checkpoint.Spec.Identity = v1alpha1.CheckpointIdentity{Model: "Qwen/Qwen3-0.6B", BackendFramework: "vllm"}
	checkpoint.Spec.Job.PodTemplateSpec.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/at-rest:1"}}
	w.create(checkpoint)
	dgd := w.restful("g")
	delete(dgd.Spec.Services, "prefill")
	dgd.Spec.Services["decode"].Checkpoint = &v1alpha1.Checkpoint{Enabled: true, CheckpointRef: "warm"}
	w.create(dgd)
	w.eventually("the checkpoint to say that there is none", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("warm"), checkpoint); err != nil {
			return err
		}
		return cold(checkpoint.Status.Conditions, v1alpha1.ConditionReady)
	})
	if len(checkpoint.Finalizers) > 0 {
		t.Errorf("nobody will take off %v", checkpoint.Finalizers)
	}
	if err := cold(w.ready("g").Status.Conditions, v1alpha1.ConditionCheckpointed); err != nil {
		t.Error(err)
	}
}

func cold(conditions []metav1.Condition, kind string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonColdStart {
		return fmt.Errorf("condition %v", c)
	}
	return nil
}
