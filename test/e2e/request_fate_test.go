package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// unanswerable asks for engines that no node of the cluster can hold, measured:
// its profiler waits for them until something ends it.
const unanswerable = `{` + sla + `, sweep: {maxMeasured: 1, modes: [aggregated]}, hardware: {gpuType: NVIDIA-H200, numGpusPerNode: 16, minNumGpusPerEngine: 16, maxNumGpusPerEngine: 16}}`

// TestAProfilerThatItsNodeEndsFailsTheRequest has every attempt of a profiler
// evicted, or killed for want of memory: the request says so in the end.
func TestAProfilerThatItsNodeEndsFailsTheRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault, value     string
		reason, contains string
	}{
		"evicted":       {"evict", "memory", v1alpha1.ReasonProfilerEvicted, "low on resource: memory"},
		"out of memory": {"oom-after", "1s", v1alpha1.ReasonProfilerOOM, "spec.profilingConfig.resources"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hitProfilers(test.fault, test.value)
			w.ask(goal{"doomed", "model: Qwen/Qwen3-0.6B\nbackend: vllm", unanswerable})
			c := condition(w.reach("doomed", v1alpha1.RequestStateFailed), v1alpha1.ConditionProfiling)
			if c.Reason != test.reason || !strings.Contains(c.Message, test.contains) {
				t.Errorf("it failed for %s: %s", c.Reason, c.Message)
			}
		})
	}
}

// hitProfilers has every pod of a Job in this namespace ask the node agent for a
// fault, from its first attempt to its last.
func (w world) hitProfilers(fault, value string) {
	w.Helper()
	always := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      &always,
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
				ObjectSelector:    &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: batchv1.JobNameLabel, Operator: metav1.LabelSelectorOpExists}}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
					Expression: fmt.Sprintf(`Object{metadata: Object.metadata{annotations: {"localcluster.dynamo/%s": %q}}}`, fault, value),
				},
			}},
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy.Name},
	}
	for _, object := range []client.Object{policy, binding} {
		w.create(object)
		w.Cleanup(func() {
			if err := w.cluster.Client.Delete(context.Background(), object); err != nil {
				w.Errorf("delete %T: %v", object, err)
			}
		})
	}
	// A policy takes effect when the API server has heard of it.
	w.eventually("the policy to take effect", func(ctx context.Context) error {
		trial := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "trial", Namespace: w.namespace, Labels: map[string]string{batchv1.JobNameLabel: "trial"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "trial"}}},
		}
		if err := w.cluster.Client.Create(ctx, trial, client.DryRunAll); err != nil {
			return err
		}
		if trial.Annotations["localcluster.dynamo/"+fault] != value {
			return fmt.Errorf("a pod has annotations %v", trial.Annotations)
		}
		return nil
	})
}
