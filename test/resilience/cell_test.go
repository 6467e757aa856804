package resilience

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
)

// TestReplicasAreCountedByTheirPods: a worker on several nodes has a pod on each, and a
// frontend one in all.
func TestReplicasAreCountedByTheirPods(t *testing.T) {
	pods := map[types.UID]corev1.Pod{}
	for role, n := range map[string]int{frontend: 2, "decode": 4, "prefill": 1} {
		for i := range n {
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(fmt.Sprint(role, i)), Labels: map[string]string{v1alpha1.LabelGeneration: "a", v1alpha1.LabelComponent: role},
			}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pods[p.UID] = p
		}
	}
	for orchestrator, want := range map[string]map[string]int{
		onDeployment: {frontend: 2, "decode": 4, "prefill": 1},
		onLWS:        {frontend: 2, "decode": 2},
	} {
		if diff := cmp.Diff(map[string]map[string]int{"a": want}, (&cell{orchestrator: orchestrator}).count(pods)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", orchestrator, diff)
		}
	}
}

// TestACellPromisesWhatItIsToldToKeep: where that is the event, as many as this may be
// missing, and a quarter otherwise.
func TestACellPromisesWhatItIsToldToKeep(t *testing.T) {
	for rule, c := range map[string]struct {
		cell *cell
		// missing of four replicas, and the floor.
		want [2]int
	}{
		"a quarter may be missing":      {&cell{}, [2]int{1, 3}},
		"none, if that is the event":    {&cell{event: event{alone: true}}, [2]int{0, 4}},
		"one, if that is the event":     {&cell{event: event{alone: true}, unavailable: 1}, [2]int{1, 3}},
		"in place others take one":      {&cell{event: event{alone: true}, isolation: inPlace, orchestrator: onGrove}, [2]int{0, 3}},
		"Deployments take what is told": {&cell{event: event{alone: true}, isolation: inPlace, orchestrator: onDeployment}, [2]int{0, 4}},
	} {
		t.Run(rule, func(t *testing.T) {
			c.cell.shape = shape{decode: 4}
			if diff := cmp.Diff(c.want, [2]int{c.cell.missing(4), c.cell.floor()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
