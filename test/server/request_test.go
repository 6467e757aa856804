package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/profileoutput"
)

// found is the output of a profiler: a graph, the data that it mounts, and what a
// request does not make.
const found = `apiVersion: v1
kind: ConfigMap
metadata: {name: planner-profile-data}
data: {prefill_raw_data.json: "{}"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: everything}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    Planner:
      componentType: planner
      extraPodSpec:
        volumes: [{name: data, configMap: {name: planner-profile-data}}]
        mainContainer: {image: "example.com/at-rest:1"}
`

// TestARequestWhoseConfigMapIsRefusedGoesOnTrying: a policy refuses what goes with
// the graph. The request says so, and goes on by itself once it is allowed; what it
// does not make it names.
func TestARequestWhoseConfigMapIsRefusedGoesOnTrying(t *testing.T) {
	w := newWorld(t)
	lift := w.refuseConfigMap("goal-planner-profile-data")
	w.operate(silent + "controller: {queue: {maxDelay: 2s}}\n")
	dgdr := &v1alpha1.DynamoGraphDeploymentRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "goal"},
		Spec: v1alpha1.DynamoGraphDeploymentRequestSpec{
			Model: "m", Backend: "vllm",
			ProfilingConfig: v1alpha1.ProfilingConfig{ProfilerImage: "example.com/profiler:1", Config: &runtime.RawExtension{Raw: []byte(`{}`)}},
		},
	}
	w.create(dgdr)
	w.profiled("goal", found)
	w.generated("goal", v1alpha1.RequestStateProfiling, metav1.ConditionFalse, "goal-planner-profile-data", "refused in this test")

	lift()
	w.generated("goal", v1alpha1.RequestStateReady, metav1.ConditionTrue, "ignored in the profiler's output: RoleBinding everything")
	if data := get(w, &corev1.ConfigMap{}, "goal-planner-profile-data"); data.Data["prefill_raw_data.json"] != "{}" {
		t.Errorf("the ConfigMap holds %v", data.Data)
	}
}

// refuseConfigMap has the API server refuse one ConfigMap of this world until the
// returned function is called.
func (w world) refuseConfigMap(name string) (lift func()) {
	w.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("object.metadata.namespace != '%s' || object.metadata.name != '%s'", w.namespace, name), Message: "refused in this test",
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	w.create(policy)
	w.create(binding)
	w.eventually("the policy to be enforced", func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		err := cluster.Client.Create(ctx, probe)
		if err == nil {
			w.delete(probe)
			return fmt.Errorf("ConfigMap %s is allowed", name)
		}
		if !strings.Contains(err.Error(), "refused in this test") {
			return err
		}
		return nil
	})
	return func() {
		w.delete(binding)
		w.delete(policy)
	}
}

// profiled plays the Job of a request and its pod, which hands over an output.
func (w world) profiled(name, output string) {
	w.Helper()
	job := exists(w, &batchv1.Job{}, "profile-"+name)
	into := exists(w, &corev1.ConfigMap{}, "dgdr-output-"+name)
	into.Data = map[string]string{profileoutput.KeyGraph: output}
	if err := cluster.Client.Update(w.ctx, into); err != nil {
		w.Fatal(err)
	}
	receipt := profileoutput.Receipt{}
	receipt.Add(into.Name, into.Data)
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: job.Name, Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: corev1.PodSpec{NodeName: "elsewhere", Containers: []corev1.Container{{Name: "output-copier", Image: "i"}}},
	}
	w.create(pod)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "output-copier", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: receipt.Text()},
	}}}
	if err := cluster.Client.Status().Update(w.ctx, pod); err != nil {
		w.Fatal(err)
	}
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Ready: new(int32(0)), Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}}
	if err := cluster.Client.Status().Update(w.ctx, job); err != nil {
		w.Fatal(err)
	}
}

// generated waits until a request is in a state and says certain words of its graph.
func (w world) generated(name string, state v1alpha1.RequestState, status metav1.ConditionStatus, words ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("request %s to be %s", name, state), func(ctx context.Context) error {
		dgdr := &v1alpha1.DynamoGraphDeploymentRequest{}
		if err := cluster.Client.Get(ctx, w.key(name), dgdr); err != nil {
			return err
		}
		c := meta.FindStatusCondition(dgdr.Status.Conditions, v1alpha1.ConditionSpecGenerated)
		if c == nil || c.Status != status || dgdr.Status.State != state {
			return fmt.Errorf("state %s, conditions %v", dgdr.Status.State, dgdr.Status.Conditions)
		}
		for _, word := range words {
			if !strings.Contains(c.Message, word) {
				return fmt.Errorf("condition %v does not say %q", c, word)
			}
		}
		return nil
	})
}
