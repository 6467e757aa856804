package conversion_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
)

// What a tenant who may write an object may write into its payload.
const (
	forgedServices = `{"version":1,"spec":{"services":{"w":{
		"componentType":"epp","globalDynamoNamespace":true,"replicas":99,"envs":[{"name":"A","value":"evil"}],
		"extraPodSpec":{"serviceAccountName":"admin","hostNetwork":true,"nodeName":"control-plane","containers":[{"name":"extra","image":"evil"}],
			"mainContainer":{"image":"evil","securityContext":{"privileged":true}}},
		"volumeMounts":[{"name":"host","mountPoint":"/host"}]}}}}`
	forgedComponents = `{"version":1,"spec":{"components":[{"name":"w","type":"planner","globalDynamoNamespace":true,"replicas":99,
		"podTemplate":{"spec":{"serviceAccountName":"admin","hostNetwork":true,"nodeName":"control-plane",
			"containers":[{"name":"main","image":"evil","securityContext":{"privileged":true},"volumeMounts":[{"name":"host","mountPath":"/host"}]},{"name":"extra","image":"evil"}]}}}]}}`
	forgedOverrides = `{"version":1,"spec":{"model":"evil","overrides":{"profilingJob":{"template":{"spec":{"serviceAccountName":"admin"}}},"dgd":{"kind":"evil"}}}}`
)

func TestAttackByThePayloadOfABetaGraph(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeployment](t, `{spec: {components: [{name: w, type: worker, podTemplate: {spec: {serviceAccountName: mine, containers: [{name: main, image: good, env: [{name: A, value: good}]}]}}}]}}`)
	honest, _ := conversion.GraphToAlpha(beta)
	beta.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: forgedServices}
	got, ignored := conversion.GraphToAlpha(beta)
	compareSpec(t, "with a forged payload", honest.Spec, got.Spec, nil)
	if len(ignored) == 0 {
		t.Error("nobody is told")
	}
}

func TestAttackByThePayloadOfAnAlphaGraph(t *testing.T) {
	alpha := read[v1alpha1.DynamoGraphDeployment](t, `{spec: {services: {w: {componentType: worker, extraPodSpec: {serviceAccountName: mine, mainContainer: {image: good}}}}}}`)
	honest, _ := conversion.GraphToBeta(alpha)
	alpha.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: forgedComponents}
	got, _ := conversion.GraphToBeta(alpha)
	compareSpec(t, "with a forged payload", honest.Spec, got.Spec, nil)
}

// A host that a payload names is no secret: it is in the v1alpha1 form, which is
// stored, judged and acted on.
func TestAHostInAPayloadBecomesVisible(t *testing.T) {
	beta := read[v1beta1.DynamoGraphDeployment](t, `{metadata: {annotations: {nvidia.com/dgd-spec: '{"version":1,"spec":{"services":{"w":{"ingress":{"enabled":true,"host":"h"}},"gone":{"ingress":{"enabled":true,"host":"x"}}}}}'}}, spec: {components: [{name: w}]}}`)
	got, _ := conversion.GraphToAlpha(beta)
	if got.Spec.Services["w"].Ingress.Host != "h" || len(got.Spec.Services) != 1 {
		t.Errorf("%s", indent(t, got))
	}
}

func TestAttackByThePayloadOfARequest(t *testing.T) {
	alpha := read[v1alpha1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, backend: vllm, profilingConfig: {profilerImage: p, config: {}}}}`)
	honest, _ := conversion.RequestToBeta(alpha)
	alpha.Annotations = map[string]string{v1alpha1.AnnotationRequestPayload: forgedOverrides}
	got, ignored := conversion.RequestToBeta(alpha)
	compareSpec(t, "with a forged payload", honest.Spec, got.Spec, nil)
	if strings.Join(ignored, " ") != "overrides" {
		t.Errorf("ignored is %v", ignored)
	}
}

// A status decides what is made, and annotations are not protected as it is.
func TestAttackByTheStatusInAnAnnotation(t *testing.T) {
	for _, key := range []string{"nvidia.com/dgdr-status", "nvidia.com/dgd-status", "nvidia.com/dcd-status"} {
		beta := &v1beta1.DynamoGraphDeploymentRequest{}
		beta.Annotations = map[string]string{key: `{"version":1,"spec":{"accepted":{"generation":7}},"status":{"accepted":{"generation":7}},"accepted":{"generation":7}}`}
		alpha, _ := conversion.RequestToAlpha(beta)
		if alpha.Status.Accepted != nil {
			t.Errorf("%s was believed: %s", key, indent(t, alpha))
		}
		if _, there := alpha.Annotations[key]; there {
			t.Errorf("%s survives", key)
		}
	}
}

// An object that a server could not store in its other version would keep every list
// that it is in from being read.
func TestAttackByAPayloadThatIsTooLarge(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for what, alpha := range map[string]*v1alpha1.DynamoGraphDeployment{
		"what only v1alpha1 has": {Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{"w": {Annotations: map[string]string{"a": large}}}}},
		"annotations that are full": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": large[:256<<10-1]}},
			Spec: v1alpha1.DynamoGraphDeploymentSpec{Services: map[string]*v1alpha1.SharedSpec{"w": {ServiceName: "s"}}}},
	} {
		beta, _ := conversion.GraphToBeta(alpha)
		if size := annotationSize(beta.Annotations); size > 256<<10 {
			t.Errorf("%s: %d bytes of annotations", what, size)
		}
	}
}

func annotationSize(annotations map[string]string) (size int) {
	for k, v := range annotations {
		size += len(k) + len(v)
	}
	return size
}
