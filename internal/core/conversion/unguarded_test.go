//go:build unguarded

package conversion_test

import (
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/api/v1beta1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/conversion"
	"github.com/dynamo-operator/dynamo-operator/internal/core/guard"
)

// TestAttackSucceedsWithoutThePayloadsGuard sees what
// TestAttackByThePayloadOfABetaGraph sees stopped.
func TestAttackSucceedsWithoutThePayloadsGuard(t *testing.T) {
	t.Setenv(guard.Variable, string(conversion.GuardPayload))
	beta := read[v1beta1.DynamoGraphDeployment](t, `{spec: {components: [{name: w, type: worker, podTemplate: {spec: {containers: [{name: main, env: [{name: A, value: good}]}]}}}]}}`)
	beta.Annotations = map[string]string{v1alpha1.AnnotationGraphPayload: forgedServices}
	got, _ := conversion.GraphToAlpha(beta)
	if s := got.Spec.Services["w"]; s.ComponentType != "epp" || s.Envs[0].Value != "evil" || s.VolumeMounts[0].Name != "host" {
		t.Errorf("stopped by something else: %s", indent(t, got))
	}
}

// TestAttackSucceedsWithoutTheGuardOfOverrides sees what
// TestAttackByThePayloadOfARequest sees stopped.
func TestAttackSucceedsWithoutTheGuardOfOverrides(t *testing.T) {
	t.Setenv(guard.Variable, string(conversion.GuardOverrides))
	alpha := read[v1alpha1.DynamoGraphDeploymentRequest](t, `{spec: {model: m, backend: vllm, profilingConfig: {profilerImage: p, config: {}}}}`)
	alpha.Annotations = map[string]string{v1alpha1.AnnotationRequestPayload: forgedOverrides}
	got, _ := conversion.RequestToBeta(alpha)
	if got.Spec.Overrides == nil || got.Spec.Overrides.ProfilingJob.Template.Spec.ServiceAccountName != "admin" {
		t.Errorf("stopped by something else: %s", indent(t, got))
	}
}

// TestAttackSucceedsWithoutTheGuardOfAnnotations sees what
// TestAttackByAPayloadThatIsTooLarge sees stopped.
func TestAttackSucceedsWithoutTheGuardOfAnnotations(t *testing.T) {
	t.Setenv(guard.Variable, string(conversion.GuardAnnotations))
	beta, _ := conversion.GraphToBeta(&v1alpha1.DynamoGraphDeployment{Spec: v1alpha1.DynamoGraphDeploymentSpec{
		Services: map[string]*v1alpha1.SharedSpec{"w": {Annotations: map[string]string{"a": strings.Repeat("x", 300<<10)}}},
	}})
	if size := annotationSize(beta.Annotations); size <= 256<<10 {
		t.Errorf("stopped by something else: %d bytes of annotations", size)
	}
}
