package e2e

import (
	"slices"
	"strings"
	"testing"

	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestServicesStartInOrder: no pod of a service is there before those are ready that
// it starts after, on each path, and the graph says who waits.
func TestServicesStartInOrder(t *testing.T) {
	t.Run("on Deployments", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.startsInOrder()
	})
	t.Run("on Grove", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, need(t, grove))
		w.startsInOrder()
		set := &grovev1alpha1.PodCliqueSet{}
		if err := w.cluster.Client.Get(w.ctx, w.key("g"), set); err != nil {
			t.Fatal(err)
		}
		// The set cannot take another order, and must not be made again for one.
		first := w.pods(w.ctx)
		w.patchGraph("g", `{"spec":{"services":{"Frontend":{"annotations":null},"prefill":{"annotations":null}}}}`)
		w.ready("g")
		uid := set.UID
		if err := w.cluster.Client.Get(w.ctx, w.key("g"), set); err != nil {
			t.Fatal(err)
		}
		if set.UID != uid {
			t.Error("the PodCliqueSet was made again")
		}
		for _, pod := range w.pods(w.ctx) {
			if !slices.ContainsFunc(first, func(p corev1.Pod) bool { return p.UID == pod.UID }) {
				t.Errorf("%s was started again", pod.Name)
			}
		}
	})
}

// startsInOrder makes a graph g of which decode starts first, then prefill, then the
// frontend.
func (w world) startsInOrder() {
	w.Helper()
	changes, err := w.cluster.Client.Watch(w.ctx, &v1alpha1.DynamoGraphDeploymentList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.Fatal(err)
	}
	defer changes.Stop()
	dgd := w.restful("g")
	// A pod that is ready at once would leave nothing to wait for: no status is written
	// for a state that is over.
	dgd.Spec.Services["decode"].Annotations = map[string]string{v1alpha1.AnnotationMinReadySeconds: "5"}
	dgd.Spec.Services["prefill"].Annotations = map[string]string{v1alpha1.AnnotationStartAfter: "decode"}
	dgd.Spec.Services["Frontend"].Annotations = map[string]string{v1alpha1.AnnotationStartAfter: "prefill,decode"}
	w.create(dgd)
	w.ready("g")
	started, ready := map[string]corev1.Pod{}, map[string]corev1.PodCondition{}
	for _, pod := range w.pods(w.ctx) {
		service := pod.Labels[v1alpha1.LabelComponent]
		started[service] = pod
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady {
				ready[service] = c
			}
		}
	}
	for service, before := range map[string]string{"prefill": "decode", "Frontend": "prefill"} {
		if pod, since := started[service], ready[before].LastTransitionTime; pod.CreationTimestamp.Before(&since) {
			w.Errorf("%s was made at %s, %s was ready at %s", pod.Name, pod.CreationTimestamp, before, since)
		}
	}
	if !w.said(changes, "waiting for") {
		w.Error("the graph never said who waits")
	}
}

// said reports whether a graph's condition had some words before it was ready.
func (w world) said(changes watch.Interface, words string) bool {
	w.Helper()
	for {
		select {
		case change := <-changes.ResultChan():
			dgd, ok := change.Object.(*v1alpha1.DynamoGraphDeployment)
			if !ok {
				return false
			}
			c := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionReady)
			switch {
			case c != nil && strings.Contains(c.Message, words):
				return true
			case c != nil && c.Reason == v1alpha1.ReasonAllServicesReady:
				return false
			}
		case <-w.ctx.Done():
			return false
		}
	}
}
