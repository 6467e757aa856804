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

// TestFrontendsAreAskedByTheirGeneration: one that sees a single Dynamo namespace does not
// name it, and two generations must not be taken for one.
func TestFrontendsAreAskedByTheirGeneration(t *testing.T) {
	lists := func(id string, decode, prefill int) listing {
		return listing{id, map[string]map[string]int{"": {"decode": decode, "prefill": prefill}}}
	}
	for rule, c := range map[string]struct {
		all   []listing
		want  map[string]map[string]int
		serve int
	}{
		"each of its own":             {[]listing{lists("a", 2, 2), lists("a", 2, 2), lists("b", 1, 1)}, map[string]map[string]int{"a": {frontend: 2, "decode": 2, "prefill": 2}, "b": {frontend: 1, "decode": 1, "prefill": 1}}, 3},
		"what all of them have":       {[]listing{lists("a", 2, 2), lists("a", 1, 2)}, map[string]map[string]int{"a": {frontend: 2, "decode": 1, "prefill": 2}}, 1},
		"one that has none counts":    {[]listing{lists("a", 2, 2), {"a", nil}}, map[string]map[string]int{"a": {frontend: 2}}, 0},
		"and so does the first to be": {[]listing{{"a", nil}, lists("a", 2, 2)}, map[string]map[string]int{"a": {frontend: 2}}, 0},
	} {
		t.Run(rule, func(t *testing.T) {
			got := byGeneration(c.all)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := serving(got, 3, frontend); n != c.serve {
				t.Errorf("%d serve, want %d", n, c.serve)
			}
		})
	}
}

func TestTheMatrixTellsItsLowestCapacityAgainstTheFloor(t *testing.T) {
	for rule, c := range map[string]struct {
		rows []row
		want string
	}{
		"the least beyond its floor":  {[]row{{name: "a", floor: 1, lowestReady: 3, lowestRouted: 3}, {name: "b", floor: 3, lowestReady: 4, lowestRouted: 3}}, "capacity against the floor at the lowest +0 (3 of at least 3, b), in 2 cells that promise any"},
		"and what is below":           {[]row{{name: "a", floor: 2, lowestReady: 1, lowestRouted: 2}}, "capacity against the floor at the lowest -1 (1 of at least 2, a), in 1 cells that promise any"},
		"in place, what is ready":     {[]row{{name: "a", floor: 2, lowestReady: 3, inPlace: true}}, "capacity against the floor at the lowest +1 (3 of at least 2, a), in 1 cells that promise any"},
		"a fault excuses":             {[]row{{name: "a", floor: 2, faulty: true}, {name: "b", floor: 1, lowestReady: 1, lowestRouted: 1}}, "capacity against the floor at the lowest +0 (1 of at least 1, b), in 1 cells that promise any"},
		"nothing where none promises": {[]row{{name: "a"}}, "no cell promised any capacity"},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lowest(c.rows)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
