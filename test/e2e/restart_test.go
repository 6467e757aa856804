package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
			phases := w.phases(dgd)
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"restart":%s}}`, restart))
			if err := w.cluster.Client.Patch(w.ctx, dgd, patch); err != nil {
				t.Fatal(err)
			}
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
			if seen := phases(); !seen[v1alpha1.RestartPhaseRestarting] {
				t.Errorf("phases seen: %v", seen)
			}
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
	w.patchGraph("g", `{"spec":{"restart":{"id":"1"}}}`)
	w.eventually("the restart to be under way", func(context.Context) error {
		if r := w.graph("g").Status.Restart; r == nil || r.Phase != v1alpha1.RestartPhaseRestarting {
			return fmt.Errorf("restart %+v", r)
		}
		return nil
	})
	w.killOperator()
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

// phases follows the phases that a graph's restart goes through.
func (w world) phases(dgd *v1alpha1.DynamoGraphDeployment) func() map[v1alpha1.RestartPhase]bool {
	w.Helper()
	events, err := w.cluster.Client.Watch(w.ctx, &v1alpha1.DynamoGraphDeploymentList{}, client.InNamespace(dgd.Namespace))
	if err != nil {
		w.Fatal(err)
	}
	seen := map[v1alpha1.RestartPhase]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if object, ok := event.Object.(*v1alpha1.DynamoGraphDeployment); ok && event.Type != watch.Error && object.Status.Restart != nil {
				seen[object.Status.Restart.Phase] = true
			}
		}
	}()
	return func() map[v1alpha1.RestartPhase]bool {
		events.Stop()
		<-done
		return seen
	}
}
