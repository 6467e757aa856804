package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

const queueDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.scheduling.run.ai}
spec:
  group: scheduling.run.ai
  scope: Cluster
  names: {plural: queues, singular: queue, kind: Queue, listKind: QueueList}
  versions:
    - name: v2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestAQueueOfTheKAIScheduler has the scheduler's API appear, a graph wait for
// its queue, and the API go again. Not parallel: every graph on Grove would have
// a queue meanwhile.
func TestAQueueOfTheKAIScheduler(t *testing.T) {
	w := newWorldOn(t, need(t, grove))
	w.applyText(queueDefinition)
	t.Cleanup(func() {
		if _, err := w.cluster.Kubectl(context.Background(), nil, "delete", "crd", "queues.scheduling.run.ai", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	w.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/queues.scheduling.run.ai")
	dgd := w.restful("queued")
	dgd.Annotations = map[string]string{v1alpha1.AnnotationKaiQueue: "team"}
	w.create(dgd)
	w.eventually("the graph to wait for its queue", func(ctx context.Context) error {
		if err := w.cluster.Client.Get(ctx, w.key("queued"), dgd); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady); c == nil || c.Reason != v1alpha1.ReasonQueueNotFound {
			return fmt.Errorf("condition %v", c)
		}
		return nil
	})
	w.applyText(`{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {name: team}}`)
	w.ready("queued")
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelGraphName] == "queued" && pod.Spec.SchedulerName != "kai-scheduler" {
			t.Errorf("pod %s is for scheduler %s", pod.Name, pod.Spec.SchedulerName)
		}
	}
	if err := w.cluster.Client.Delete(w.ctx, dgd); err != nil {
		t.Fatal(err)
	}
	w.gone(&v1alpha1.DynamoGraphDeployment{}, "queued")
	w.kubectl("delete", "crd", "queues.scheduling.run.ai")
	// The operator has seen it, too, when a graph needs no queue again.
	again := w.restful("free")
	w.create(again)
	w.ready("free")
	for _, pod := range w.pods(w.ctx) {
		if pod.Labels[v1alpha1.LabelGraphName] == "free" && pod.Spec.SchedulerName == "kai-scheduler" {
			t.Errorf("pod %s is for a scheduler that is gone", pod.Name)
		}
	}
	w.comesBack(child{"grove.io", "v1alpha1", "PodCliqueSet", "free"})
	w.ready("free")
}
