package generation

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForesee: what a plan shows is what the planner does.
func TestForesee(t *testing.T) {
	foreseen := func(s shape) (steps []string, last Step, err error) {
		last = Foresee(s.begin(), func(w World, step Step) {
			if step.Action == Wait {
				return
			}
			steps = append(steps, fmt.Sprint(step.Action, " ", step.Generation, " ", step.Role, " ", step.Replicas))
			if broken := FloorKept(w, step); broken != nil && err == nil {
				err = broken
			}
		})
		return steps, last, err
	}
	steps, last, err := foreseen(shape{[]int{1, 1}, []int{1, 1}, []int{0, 0}})
	want := []string{"Scale b prefill 1", "Scale b decode 1", "Scale a decode 0", "Scale a prefill 0", "Delete a  0"}
	if diff := cmp.Diff(want, steps); diff != "" || last.Phase != PhaseCompleted || err != nil {
		t.Errorf("%v, %v (-want +got):\n%s", last, err, diff)
	}
	for _, s := range shapes(2, 3, 1) {
		if _, last, err := foreseen(s); err != nil || last.Phase != PhaseCompleted && last.Phase != PhaseBlocked {
			t.Errorf("%v: ends %+v, %v", s, last, err)
		}
	}
	if _, last, _ := foreseen(shape{[]int{1, 1}, []int{0, 0}, []int{0, 0}}); last.Phase != PhaseBlocked {
		t.Errorf("without room for anything it ends %+v", last)
	}
}
