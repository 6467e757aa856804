package server

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestACheckpointIsAcceptedAndSaysThatPodsStartCold: one that nobody captured waits,
// with nothing made for it, and one that the original captured stays as it is.
func TestACheckpointIsAcceptedAndSaysThatPodsStartCold(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	for name, phase := range map[string]string{"new": "", "captured": v1alpha1.CheckpointPhaseReady} {
		c := &v1alpha1.DynamoCheckpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		if phase != "" {
			c.Finalizers = []string{v1alpha1.Finalizer} // the original's, which it does not take off any more
		}
		c.Spec.Identity = v1alpha1.CheckpointIdentity{Model: "m", BackendFramework: "vllm"}
		c.Spec.Job.PodTemplateSpec.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/at-rest:1"}}
		w.create(c)
		if phase != "" {
			w.eventually("the status that another operator wrote", func(ctx context.Context) error {
				return cluster.Client.Status().Patch(ctx, c, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q,"checkpointID":"id"}}`, phase)))
			})
		}
	}
	for name, phase := range map[string]string{"new": v1alpha1.CheckpointPhasePending, "captured": v1alpha1.CheckpointPhaseReady} {
		w.eventually("checkpoint "+name+" to say that pods start cold", func(ctx context.Context) error {
			c := &v1alpha1.DynamoCheckpoint{}
			if err := cluster.Client.Get(ctx, w.key(name), c); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonColdStart || c.Status.Phase != phase {
				return fmt.Errorf("phase %s, condition %v", c.Status.Phase, ready)
			}
			return nil
		})
	}
	jobs := &batchv1.JobList{}
	if err := cluster.Client.List(w.ctx, jobs, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) > 0 {
		t.Errorf("Job %s was made", jobs.Items[0].Name)
	}
	captured := &v1alpha1.DynamoCheckpoint{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "captured"}}
	if err := cluster.Client.Delete(w.ctx, captured); err != nil {
		t.Fatal(err)
	}
	w.eventually("a checkpoint of the original to go", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, w.key("captured"), captured); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("finalizers %v", captured.Finalizers), err)
		}
		return nil
	})
}

// TestAGraphWithCheckpointsStartsColdAndSaysSo: it waits for none, whatever it says,
// and the condition goes with the field.
func TestAGraphWithCheckpointsStartsColdAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.operate(silent)
	dgd := w.graph("g", "decode", "other")
	dgd.Spec.Services["decode"].Checkpoint = &v1alpha1.Checkpoint{Enabled: true, StartupPolicy: "WaitForCheckpoint", CheckpointRef: "nobody-made-it"}
	w.create(dgd)
	cold := w.says("g", v1alpha1.ConditionCheckpointed, v1alpha1.ReasonColdStart)
	if cold.Status != metav1.ConditionFalse || cold.Message == "" {
		t.Errorf("it says %+v", cold)
	}
	if made := exists(w, &appsv1.Deployment{}, "g-decode"); *made.Spec.Replicas != 1 {
		t.Errorf("it has %d replicas", *made.Spec.Replicas)
	}
	w.merge(dgd, `{"spec":{"services":{"decode":{"checkpoint":null}}}}`)
	w.eventually("the condition to go", func(ctx context.Context) error {
		now := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, w.key("g"), now); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionCheckpointed); c != nil || now.Status.ObservedGeneration != now.Generation {
			return fmt.Errorf("generation %d of %d, condition %v", now.Status.ObservedGeneration, now.Generation, c)
		}
		return nil
	})
}
