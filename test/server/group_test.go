package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	lwsv1 "sigs.k8s.io/lws/api/leaderworkerset/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/diagnosis"
)

// TestGroupsThatWaitForOneThatIsStuckSaySo has the first of two groups take a
// change that it never comes to. That nothing happens from then on is for the
// clock to tell: no watch does.
func TestGroupsThatWaitForOneThatIsStuckSaySo(t *testing.T) {
	w := newWorld(t)
	w.operate(silent + "rollout: {progressDeadline: 10s}\n")
	dgd := w.graph("g", "decode")
	decode := dgd.Spec.Services["decode"]
	decode.Replicas, decode.Multinode = new(int32(2)), &v1alpha1.Multinode{NodeCount: 2}
	decode.Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	w.create(dgd)
	w.group("g-decode-0", 1, true)
	w.group("g-decode-1", 1, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)

	w.merge(dgd, `{"spec":{"services":{"decode":{"extraPodSpec":{"mainContainer":{"image":"example.com/not-there:2"}}}}}}`)
	w.group("g-decode-0", 2, false)
	w.stuck("g-decode", v1alpha1.ReasonRolloutStuck, "group g-decode-0 is not ready", "still as before: g-decode-1")
	if stage := w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageFailed); stage.Status != metav1.ConditionFalse || !strings.Contains(stage.Message, "still as before: g-decode-1") {
		t.Errorf("condition %v", stage)
	}
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonRolloutStuck)
	w.quiet()

	w.pullsInVain("g", "decode", "g-decode-0")
	w.stuck("g-decode", string(diagnosis.ImageNotFound), "example.com/not-there:2", "still as before: g-decode-1")
	w.says("g", v1alpha1.ConditionReady, string(diagnosis.ImageNotFound))
	if waits := get(w, &lwsv1.LeaderWorkerSet{}, "g-decode-1"); waits.Generation != 1 {
		t.Errorf("the group that serves is at generation %d", waits.Generation)
	}
	w.quiet()

	w.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "g-decode-0"}}, client.GracePeriodSeconds(0))
	w.merge(dgd, `{"spec":{"services":{"decode":{"extraPodSpec":{"mainContainer":{"image":"example.com/at-rest:2"}}}}}}`)
	w.group("g-decode-0", 3, true)
	w.group("g-decode-1", 2, true)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageComplete)
	if c := meta.FindStatusCondition(get(w, &v1alpha1.DynamoComponentDeployment{}, "g-decode").Status.Conditions, v1alpha1.ConditionProgressing); c != nil {
		t.Errorf("condition %v of a component that runs", c)
	}
}

// group plays the controller of LeaderWorkerSets for one set, once that has
// come to a generation: its pods serve, or are not ready.
func (w world) group(name string, generation int64, serves bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("LeaderWorkerSet %s at generation %d", name, generation), func(ctx context.Context) error {
		set := &lwsv1.LeaderWorkerSet{}
		if err := cluster.Client.Get(ctx, w.key(name), set); err != nil {
			return err
		}
		if set.Generation != generation {
			return fmt.Errorf("it is at %d", set.Generation)
		}
		set.Status = lwsv1.LeaderWorkerSetStatus{ObservedGeneration: generation, Replicas: 1, UpdatedReplicas: 1, Conditions: set.Status.Conditions}
		available, progressing := metav1.ConditionFalse, metav1.ConditionTrue
		if serves {
			available, progressing, set.Status.ReadyReplicas = metav1.ConditionTrue, metav1.ConditionFalse, 1
		}
		for kind, status := range map[lwsv1.LeaderWorkerSetConditionType]metav1.ConditionStatus{lwsv1.LeaderWorkerSetAvailable: available, lwsv1.LeaderWorkerSetProgressing: progressing} {
			meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: string(kind), Status: status, Reason: "Played", ObservedGeneration: generation})
		}
		return cluster.Client.Status().Update(ctx, set)
	})
}

// stuck waits until a component says that it makes no progress, and why it is
// not available.
func (w world) stuck(name, reason string, words ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("component %s to be stuck by %s", name, reason), func(ctx context.Context) error {
		dcd := &v1alpha1.DynamoComponentDeployment{}
		if err := cluster.Client.Get(ctx, w.key(name), dcd); err != nil {
			return err
		}
		available := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionAvailable)
		progressing := meta.FindStatusCondition(dcd.Status.Conditions, v1alpha1.ConditionProgressing)
		if available == nil || progressing == nil || available.Reason != reason || progressing.Reason != v1alpha1.ReasonRolloutStuck || progressing.Status != metav1.ConditionFalse {
			return fmt.Errorf("conditions %v", dcd.Status.Conditions)
		}
		for _, word := range words {
			if !strings.Contains(available.Message, word) || !strings.Contains(progressing.Message, word) {
				return fmt.Errorf("conditions %v do not say %q", dcd.Status.Conditions, word)
			}
		}
		return nil
	})
}

// quiet waits until the operator has nothing more to write.
func (w world) quiet() {
	w.Helper()
	w.eventually("the operator to write nothing for three seconds", func(ctx context.Context) error {
		mark := w.mark()
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		if writes := w.byOperator(mark); len(writes) > 0 {
			return fmt.Errorf("%d writes: %v", len(writes), writes)
		}
		return nil
	})
}

// pullsInVain plays the node of a pod whose image does not exist.
func (w world) pullsInVain(graph, service, set string) {
	w.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "default"}})
	made := get(w, &lwsv1.LeaderWorkerSet{}, set)
	template := made.Spec.LeaderWorkerTemplate.LeaderTemplate
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: set, Labels: template.Labels}}
	main := template.Spec.Containers[0]
	pod.Spec = corev1.PodSpec{NodeName: "elsewhere", Containers: []corev1.Container{{Name: main.Name, Image: main.Image}}}
	if pod.Labels[v1alpha1.LabelGraphName] != graph || pod.Labels[v1alpha1.LabelComponent] != service {
		w.Fatalf("labels %v", pod.Labels)
	}
	w.create(pod)
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: main.Name, Image: main.Image, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: main.Image + ": not found"},
	}}}
	if err := cluster.Client.Status().Update(w.ctx, pod); err != nil {
		w.Fatal(errors.Join(errors.New("play a node"), err))
	}
}
