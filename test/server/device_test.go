package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// sharing is a service whose engines share the memory of GPUs.
func (w world) sharing(gpus string) *v1alpha1.SharedSpec {
	service := w.service()
	service.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: gpus}}
	service.GPUMemoryService = &v1alpha1.GPUMemoryService{Enabled: true}
	return service
}

// claiming waits for another template than one of before, and for so many GPUs.
func (w world) claiming(name string, before *resourcev1.ResourceClaimTemplate, gpus int64) *resourcev1.ResourceClaimTemplate {
	w.Helper()
	template := &resourcev1.ResourceClaimTemplate{}
	w.eventually(fmt.Sprintf("template %s of %d GPUs", name, gpus), func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key(name), template); err != nil {
			return err
		}
		if before != nil && template.UID == before.UID {
			return errors.New("it is the one of before")
		}
		if got := template.Spec.Spec.Devices.Requests[0].Exactly.Count; got != gpus {
			return fmt.Errorf("it has %d", got)
		}
		return nil
	})
	return template
}

// TestATemplateOfClaimsComesAndGoesWithTheMemoryThatIsShared, of a graph and of a
// component that stands alone.
func TestATemplateOfClaimsComesAndGoesWithTheMemoryThatIsShared(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g")
	dgd.Spec.Services["decode"] = w.sharing("1")
	w.create(dgd)
	dcd := w.component("alone")
	dcd.Spec.SharedSpec = *w.sharing("1")
	w.create(dcd)

	first := w.claiming("g-decode-gpu", nil, 1)
	if !metav1.IsControlledBy(first, dgd) {
		t.Errorf("owners %v", first.OwnerReferences)
	}
	w.delete(first)
	second := w.claiming("g-decode-gpu", first, 1)
	w.merge(dgd, `{"spec":{"services":{"decode":{"resources":{"limits":{"gpu":"2"}}}}}}`)
	w.claiming("g-decode-gpu", second, 2)
	w.merge(dgd, `{"spec":{"services":{"decode":{"gpuMemoryService":null}}}}`)
	w.gone(&resourcev1.ResourceClaimTemplate{}, "g-decode-gpu")

	if alone := w.claiming("alone-alone-gpu", nil, 1); !metav1.IsControlledBy(alone, dcd) {
		t.Errorf("owners %v", alone.OwnerReferences)
	}
	w.merge(dcd, `{"spec":{"gpuMemoryService":null}}`)
	w.gone(&resourcev1.ResourceClaimTemplate{}, "alone-alone-gpu")
}

// TestATemplateOfAnotherOwnerIsLeftAlone: a name that is taken is no reason to take
// what has it.
func TestATemplateOfAnotherOwnerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	theirs := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "g-decode-gpu"}}
	theirs.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "theirs"}}}
	w.create(theirs)
	w.operate(silent)
	dgd := w.graph("g")
	dgd.Spec.Services["decode"] = w.sharing("1")
	w.create(dgd)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonNameConflict)
	now := get(w, &resourcev1.ResourceClaimTemplate{}, "g-decode-gpu")
	if now.UID != theirs.UID || now.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("it is %s, version %s, and was %s, version %s", now.UID, now.ResourceVersion, theirs.UID, theirs.ResourceVersion)
	}
}

// TestAGroupIsLaunchedByTheGPUsThatItClaims: how vLLM spans nodes depends on how many
// GPUs each has. Where only a claim tells, the graph waits for it, says so, and goes on
// when it is there.
func TestAGroupIsLaunchedByTheGPUsThatItClaims(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	requests := []resourcev1.DeviceRequest{
		{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}},
		{Name: "channel", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "compute-domain-default-channel.nvidia.com"}},
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "two"}}
	template.Spec.Spec.Devices.Requests = requests
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"}}
	claim.Spec.Devices.Requests = requests
	w.create(claim)
	for name, by := range map[string]corev1.PodResourceClaim{
		"by-template": {Name: "gpus", ResourceClaimTemplateName: &template.Name},
		"by-claim":    {Name: "gpus", ResourceClaimName: &claim.Name},
	} {
		dgd := w.graph(name, "decode")
		dgd.Annotations = map[string]string{v1alpha1.AnnotationOriginVersion: "1.4.1"}
		decode := dgd.Spec.Services["decode"]
		decode.Multinode = &v1alpha1.Multinode{NodeCount: 2}
		decode.Resources = &v1alpha1.Resources{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}
		decode.ExtraPodSpec.PodSpec = &corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{by}}
		decode.ExtraPodSpec.MainContainer.Command = strings.Fields("python3 -m dynamo.vllm")
		decode.ExtraPodSpec.MainContainer.Args = strings.Fields("--model m --tensor-parallel-size 4")
		w.create(dgd)
	}
	joined := func(name string) {
		t.Helper()
		set := exists(w, &lwsv1.LeaderWorkerSet{}, name)
		if args := set.Spec.LeaderWorkerTemplate.LeaderTemplate.Spec.Containers[0].Args; !slices.Contains(args, "--nnodes") {
			t.Errorf("%s is launched by %q", name, args)
		}
	}
	joined("by-claim-decode-0")
	says := w.says("by-template", v1alpha1.ConditionReady, v1alpha1.ReasonDeviceClaimNotFound)
	if !strings.Contains(says.Message, "ResourceClaimTemplate two does not exist") {
		t.Errorf("message %q", says.Message)
	}
	if err := cluster.Client.Get(w.ctx, w.key("by-template-decode-0"), &lwsv1.LeaderWorkerSet{}); err == nil {
		t.Error("a group was made before it was known how to launch it")
	}
	w.create(template)
	joined("by-template-decode-0")
}
