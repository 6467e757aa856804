package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestARestartReplacesEveryPod(t *testing.T) {
	for name, restart := range map[string]string{
		"one service after the other, in order": `{"id":"1","strategy":{"order":["prefill","decode","Frontend"]}}`,
		"all at once":                           `{"id":"1","strategy":{"type":"Parallel"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.apply(quickstart)
			dgd := w.ready("quickstart")
			old := map[types.UID]bool{}
			for _, pod := range w.pods(w.ctx) {
				old[pod.UID] = true
			}
			release := w.hold()
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"restart":%s}}`, restart))
			if err := w.cluster.Client.Patch(w.ctx, dgd, patch); err != nil {
				t.Fatal(err)
			}
			w.restarting("quickstart")
			release()
			w.eventually("the restart to be completed", func(ctx context.Context) error {
				if err := w.cluster.Client.Get(ctx, w.key("quickstart"), dgd); err != nil {
					return err
				}
				if r := dgd.Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted || r.ObservedID != "1" {
					return fmt.Errorf("restart %+v", r)
				}
				return nil
			})
			w.eventually("only new pods", func(ctx context.Context) error {
				for _, pod := range w.pods(ctx) {
					if old[pod.UID] {
						return errors.New(pod.Name + " is an old one")
					}
				}
				return nil
			})
			w.ready("quickstart")
		})
	}
}

func TestANewerRestartSupersedesOneThatIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(w.restful("g"))
	w.ready("g")
	w.patchGraph("g", `{"spec":{"restart":{"id":"1"}}}`)
	w.eventually("the first restart to begin", func(context.Context) error {
		if r := w.graph("g").Status.Restart; r == nil || r.ObservedID != "1" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	w.patchGraph("g", `{"spec":{"restart":{"id":"2"}}}`)
	w.eventually("the second restart to be completed", func(context.Context) error {
		if r := w.graph("g").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted || r.ObservedID != "2" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	for _, pod := range w.pods(w.ctx) {
		if got := pod.Annotations[v1alpha1.AnnotationRestartAt]; pod.DeletionTimestamp == nil && got != "2" {
			t.Errorf("%s carries restart %q", pod.Name, got)
		}
	}
}

// TestARestartOutlivesTheOperator is not parallel: the operator is killed under
// it.
func TestARestartOutlivesTheOperator(t *testing.T) {
	w := newWorld(t)
	w.create(w.restful("g"))
	w.ready("g")
	release := w.hold()
	w.patchGraph("g", `{"spec":{"restart":{"id":"1"}}}`)
	w.restarting("g")
	w.killOperator()
	release()
	w.eventually("the restart to be completed by the next operator", func(context.Context) error {
		if r := w.graph("g").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseCompleted || r.ObservedID != "1" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	for _, pod := range w.pods(w.ctx) {
		if got := pod.Annotations[v1alpha1.AnnotationRestartAt]; pod.DeletionTimestamp == nil && got != "1" {
			t.Errorf("%s carries restart %q", pod.Name, got)
		}
	}
}

// hold keeps pods from being made, so that a restart cannot end before it was
// looked at, until release is called.
func (w world) hold() (release func()) {
	w.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "hold"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	w.create(quota)
	w.eventually("pods to be refused", func(ctx context.Context) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "refused"}}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/at-rest:1"}}
		if err := w.cluster.Client.Create(ctx, pod, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %w", cmp.Or(err, errors.New("yes")))
		}
		return nil
	})
	return func() {
		w.Helper()
		if err := w.cluster.Client.Delete(w.ctx, quota); err != nil {
			w.Fatal(err)
		}
	}
}

// restarting waits until a restart is under way.
func (w world) restarting(name string) {
	w.Helper()
	w.eventually("the restart to be under way", func(context.Context) error {
		if r := w.graph(name).Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseRestarting || r.ObservedID != "1" {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
}
