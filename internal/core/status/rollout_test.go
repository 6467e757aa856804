package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

func TestWhatServesWhileARolloutGoesOn(t *testing.T) {
	for rule, c := range map[string]struct {
		stable, candidate generation.Replicas
		want              []int32 // effective replicas, and the lowest of them
		serving           bool
	}{
		"what became ready before the rollout began serves":      {generation.Replicas{Want: 2, Exist: 2, Ready: 2, Settling: 2}, generation.Replicas{}, []int32{2, 2}, true},
		"a candidate does not before it can be relied upon":      {generation.Replicas{Want: 1, Exist: 1, Ready: 1, Routable: 1}, generation.Replicas{Want: 1, Exist: 1, Ready: 1, Settling: 1}, []int32{1, 1}, false},
		"what is ready and known to no frontend does not":        {generation.Replicas{Want: 2, Exist: 2, Ready: 2, Routable: 1}, generation.Replicas{}, []int32{1, 1}, false},
		"a candidate does once it can":                           {generation.Replicas{Want: 1, Exist: 1, Ready: 1, Routable: 1}, generation.Replicas{Want: 1, Exist: 1, Ready: 1, Routable: 1}, []int32{2, 2}, true},
		"what is not ready does not, of whatever generation":     {generation.Replicas{Want: 2, Exist: 2, Ready: 1, Routable: 1}, generation.Replicas{}, []int32{1, 1}, false},
		"what was told to go does not, though it is still there": {generation.Replicas{Want: 1, Exist: 2, Ready: 2, Routable: 2}, generation.Replicas{}, []int32{1, 1}, false},
	} {
		t.Run(rule, func(t *testing.T) {
			state := managed.State{Cells: []managed.CellState{{
				Cell: world.Cell{Spec: "b", Live: []generation.ID{"a", "b"}},
				World: generation.World{
					Roles: []generation.Role{{Name: "decode", Entry: true, Desired: 2, Surge: 1}}, Spec: "b", Stable: "a",
					Generations: []generation.Generation{{ID: "a", Roles: []generation.Replicas{c.stable}}, {ID: "b", Roles: []generation.Replicas{c.candidate}}},
				},
				Step: generation.Step{Phase: generation.PhaseStarting},
			}}}
			st := rolloutStatus(nil, state, now)
			role := st.Roles["decode"]
			if diff := cmp.Diff(c.want, []int32{role.Effective, role.Lowest}); diff != "" {
				t.Errorf("replicas that serve, and the lowest (-want +got):\n%s", diff)
			}
			v, told := serving(&graph.Graph{}, v1alpha1.DynamoGraphDeploymentStatus{Rollout: st}, state)
			if !told || v.ok != c.serving {
				t.Errorf("serving is %t (%s), want %t", v.ok, v.message, c.serving)
			}
		})
	}
}

// TestARoleThatComesWithAChangeIsNotMissed as long as the stable generation serves without.
func TestARoleThatComesWithAChangeIsNotMissed(t *testing.T) {
	up := generation.Replicas{Want: 8, Exist: 8, Ready: 8, Routable: 8}
	state := managed.State{Cells: []managed.CellState{{
		Cell: world.Cell{Spec: "b", Live: []generation.ID{"a"}},
		World: generation.World{
			Roles: []generation.Role{{Name: "decode", Entry: true, Desired: 8, Surge: 2, Unavailable: 2}, {Name: "prefill", Desired: 4, Surge: 1, Unavailable: 1}},
			Spec:  "b", Stable: "a", Generations: []generation.Generation{{ID: "a", Roles: []generation.Replicas{up, {}}}},
		},
		Step: generation.Step{Phase: generation.PhaseStarting},
	}}}
	st := rolloutStatus(nil, state, now)
	want := map[string]v1alpha1.RolloutRoleStatus{"decode": {Desired: 8, Floor: 6, Effective: 8, Lowest: 8}, "prefill": {Desired: 4}}
	if diff := cmp.Diff(want, st.Roles); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v, told := serving(&graph.Graph{}, v1alpha1.DynamoGraphDeploymentStatus{Rollout: st}, state); !told || !v.ok {
		t.Errorf("serving: %s", v.message)
	}
}
