package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
)

// TestARolloutThatNobodyCarriesOnIsNotTold: a graph that has one does not sleep.
func TestARolloutThatNobodyCarriesOnIsNotTold(t *testing.T) {
	for phase, want := range map[string]*v1alpha1.RolloutStatus{
		"Held": nil, "Shifting": nil, "Completed": {Phase: "Completed"}, "Aborted": {Phase: "Aborted"},
	} {
		got := rolloutStatus(&v1alpha1.RolloutStatus{Phase: phase}, managed.State{}, metav1.Time{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", phase, diff)
		}
	}
}
