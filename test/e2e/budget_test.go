package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// mostPods follows the pods of services until the end of a test and keeps the most that
// there were at once, those that end included. None of them may be without a node: a
// budget that let it be made would hold GPUs that are not there.
func (w world) mostPods(services ...string) (most func() int) {
	w.Helper()
	ctx, stop := context.WithCancel(w.ctx)
	var list corev1.PodList
	events, err := w.cluster.Client.Watch(ctx, &list, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	result, homeless := make(chan int, 1), map[string]string{}
	go func() {
		there, highest := map[string]bool{}, 0
		for event := range events.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || !strings.Contains(strings.Join(services, " ")+" ", pod.Labels[v1alpha1.LabelComponent]+" ") {
				continue
			}
			if there[pod.Name] = true; event.Type == watch.Deleted {
				delete(there, pod.Name)
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
					homeless[pod.Name] = c.Message
				}
			}
			highest = max(highest, len(there))
		}
		result <- highest
	}()
	return func() int {
		w.Helper()
		stop()
		events.Stop()
		highest := <-result
		for pod, why := range homeless {
			w.Errorf("pod %s finds no node: %s", pod, why)
		}
		return highest
	}
}

func TestABudgetHoldsWhoeverScales(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dgd := w.restful("g")
	services := []string{"decode", "prefill"}
	for _, service := range services {
		dgd.Spec.Services[service].Resources = &v1alpha1.Resources{Limits: &v1alpha1.ResourceItem{GPU: "1"}}
	}
	dgd.Spec.Services["decode"].ScalingAdapter = &v1alpha1.ScalingAdapter{Enabled: true}
	dgd.Annotations = map[string]string{v1alpha1.AnnotationGPUBudget: "5"}
	most := w.mostPods(services...)
	w.create(dgd)
	w.ready("g")

	running := func(service string, want int) {
		w.Helper()
		w.eventually(fmt.Sprintf("%d pods of %s", want, service), func(context.Context) error {
			if n := w.count("g", service); n != want {
				return fmt.Errorf("%d pods", n)
			}
			return nil
		})
	}
	w.kubectl("scale", "dgdsa/g-decode", "--replicas=9")
	running("decode", 4)
	w.eventually("the graph to say who holds the GPUs", func(context.Context) error {
		c := meta.FindStatusCondition(w.graph("g").Status.Conditions, v1alpha1.ConditionScalingLimited)
		if c == nil || c.Reason != v1alpha1.ReasonBudgetExhausted || !strings.Contains(c.Message, "decode has 4 of 9 replicas: the budget of graph g is 5 GPUs") {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	// One role gives to the other, from (1, 4) to (4, 1): never are there six.
	w.kubectl("scale", "dgdsa/g-decode", "--replicas=1")
	w.patchGraph("g", `{"spec":{"services":{"prefill":{"replicas":4}}}}`)
	running("prefill", 4)
	running("decode", 1)
	w.eventually("nothing to be limited", func(context.Context) error {
		if c := meta.FindStatusCondition(w.graph("g").Status.Conditions, v1alpha1.ConditionScalingLimited); c != nil {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	if n := most(); n != 5 {
		t.Errorf("%d pods had GPUs at once, the budget is 5", n)
	}
}
