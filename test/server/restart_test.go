package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

func TestAFailingServiceStopsARestartInOrder(t *testing.T) {
	w := newWorld(t)
	controller := w.rollOut()
	w.operate(silent)
	dgd := w.graph("g", "first", "second", "third")
	w.create(dgd)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	controller.stall("g-second")
	third := get(w, &appsv1.Deployment{}, "g-third")

	w.merge(dgd, `{"spec":{"restart":{"id":"1","strategy":{"order":["first","second","third"]}}}}`)
	failed := w.restart("g", "1", v1alpha1.RestartPhaseFailed)
	if !slices.Equal(failed.InProgress, []string{"second"}) || !strings.Contains(failed.Message, "second did not come up again") {
		t.Errorf("restart %+v", failed)
	}
	if why := w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonRolloutStuck); !strings.HasPrefix(why.Message, "second: ") {
		t.Errorf("condition %v", why)
	}
	if stage := w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageFailed); stage.Status != metav1.ConditionFalse {
		t.Errorf("condition %v", stage)
	}
	component := get(w, &v1alpha1.DynamoComponentDeployment{}, "g-second")
	for _, kind := range []string{v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing} {
		if c := meta.FindStatusCondition(component.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonRolloutStuck {
			t.Errorf("condition %s is %v", kind, c)
		}
	}
	w.carries("1", "g-first", "g-second")
	if now := get(w, &appsv1.Deployment{}, "g-third"); now.Generation != third.Generation {
		t.Error("the service after the one that failed was restarted")
	}

	// It comes up after all, and the restart goes on where it was.
	controller.release("g-second")
	w.restart("g", "1", v1alpha1.RestartPhaseCompleted)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.carries("1", "g-first", "g-second", "g-third")

	w.merge(dgd, `{"spec":{"restart":{"id":"2"}}}`)
	w.restart("g", "2", v1alpha1.RestartPhaseCompleted)
	w.carries("2", "g-first", "g-second", "g-third")
}

func TestARolloutThatCannotProgressSaysSoUntilItCan(t *testing.T) {
	w := newWorld(t)
	controller := w.rollOut()
	w.operate(silent)
	dgd := w.graph("g", "decode")
	w.create(dgd)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	controller.stall("g-decode")
	w.merge(dgd, `{"spec":{"services":{"decode":{"envs":[{"name":"BROKEN","value":"yes"}]}}}}`)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonRolloutStuck)
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageFailed)
	if state := get(w, dgd, "g").Status.State; state != v1alpha1.GraphStatePending {
		t.Errorf("state %s", state)
	}
	// The old pods serve, and what was broken is mended.
	controller.release("g-decode")
	w.merge(dgd, `{"spec":{"services":{"decode":{"envs":null}}}}`)
	w.says("g", v1alpha1.ConditionReady, v1alpha1.ReasonAllServicesReady)
	w.says("g", v1alpha1.ConditionProgressing, v1alpha1.StageComplete)
}

// restart waits until a graph's restart is in a phase.
func (w world) restart(name, id string, phase v1alpha1.RestartPhase) v1alpha1.RestartStatus {
	w.Helper()
	var status v1alpha1.RestartStatus
	w.eventually(fmt.Sprintf("restart %s of %s to be %s", id, name, phase), func(ctx context.Context) error {
		dgd := &v1alpha1.DynamoGraphDeployment{}
		if err := cluster.Client.Get(ctx, w.key(name), dgd); err != nil {
			return err
		}
		r := dgd.Status.Restart
		if r == nil || r.Phase != phase || r.ObservedID != id {
			return fmt.Errorf("restart %+v", r)
		}
		status = *r
		return nil
	})
	return status
}

// carries checks that the pods of Deployments were made for a restart.
func (w world) carries(id string, names ...string) {
	w.Helper()
	for _, name := range names {
		d := get(w, &appsv1.Deployment{}, name)
		if got := d.Spec.Template.Annotations[v1alpha1.AnnotationRestartAt]; got != id {
			w.Errorf("%s carries restart %q", name, got)
		}
	}
}
