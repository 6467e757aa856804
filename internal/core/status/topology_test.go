package status

import (
	"testing"

	"github.com/ai-dynamo/grove/operator/api/common/constants"
	grovev1alpha1 "github.com/ai-dynamo/grove/operator/api/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/snapshot"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/component"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload/grove"
)

// TestAGraphSaysWhetherItsTopologyHasItsLevels as Grove does, which says whether it lacks
// them.
func TestAGraphSaysWhetherItsTopologyHasItsLevels(t *testing.T) {
	told := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: constants.ConditionTopologyLevelsUnavailable, Status: status, Reason: reason, Message: "words"}}
	}
	zone := &graph.Topology{Name: "racks", Domain: "zone"}
	for rule, c := range map[string]struct {
		topology *graph.Topology
		service  string // the domain of its service
		by       workload.Builder
		unmade   bool
		told     []metav1.Condition
		want     []string
	}{
		"it has": {
			topology: zone, told: told(metav1.ConditionFalse, constants.ConditionReasonAllTopologyLevelsAvailable),
			want: []string{"True", v1alpha1.ReasonAllTopologyLevelsAvailable, "words"},
		},
		"those of services, too": {
			topology: &graph.Topology{Name: "racks"}, service: "rack", told: told(metav1.ConditionFalse, constants.ConditionReasonAllTopologyLevelsAvailable),
			want: []string{"True", v1alpha1.ReasonAllTopologyLevelsAvailable, "words"},
		},
		"it has not": {
			topology: zone, told: told(metav1.ConditionTrue, constants.ConditionReasonTopologyLevelsUnavailable),
			want: []string{"False", v1alpha1.ReasonTopologyLevelsUnavailable, "words"},
		},
		"there is no topology": {
			topology: zone, told: told(metav1.ConditionUnknown, constants.ConditionReasonClusterTopologyNotFound),
			want: []string{"Unknown", v1alpha1.ReasonTopologyDefinitionNotFound, "words"},
		},
		"Grove does not know": {
			topology: zone, told: told(metav1.ConditionUnknown, "Anything"), want: []string{"Unknown", v1alpha1.ReasonTopologyConditionPending, "words"},
		},
		"Grove has not told": {
			topology: zone, want: []string{"Unknown", v1alpha1.ReasonTopologyConditionPending, "waiting for Grove to look for the topology's levels"},
		},
		"nothing before there is a set":    {topology: zone, unmade: true},
		"nothing without a topology":       {told: told(metav1.ConditionFalse, constants.ConditionReasonAllTopologyLevelsAvailable)},
		"nothing of one that is not used":  {topology: &graph.Topology{Name: "racks"}},
		"nothing where Grove runs nothing": {topology: zone, by: component.Builder{}},
	} {
		t.Run(rule, func(t *testing.T) {
			g := &graph.Graph{Name: "g", CliqueSet: "g", Contract: graph.ContractV1, Topology: c.topology}
			service := graph.Component{Name: "a", Clique: "a", CliqueSet: "g", Nodes: 1}
			service.PackDomain = c.service
			g.Components = []graph.Component{service}
			set := &grovev1alpha1.PodCliqueSet{ObjectMeta: metav1.ObjectMeta{Name: "g"}}
			set.Status.Conditions = c.told
			s := snapshot.Snapshot{Owned: []graph.Object{set}}
			if c.unmade {
				s.Owned = nil
			}
			if c.by == nil {
				c.by = grove.Builder{}
			}
			dgd := &v1alpha1.DynamoGraphDeployment{}
			dgd.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionTopologyLevelsAvailable, Status: metav1.ConditionTrue, Reason: "Before"}}
			dgd.Status = Graph(dgd, g, c.by, s, rollout.Step{}, managed.State{}, nil, noon)
			var got []string
			if is := meta.FindStatusCondition(dgd.Status.Conditions, v1alpha1.ConditionTopologyLevelsAvailable); is != nil {
				got = []string{string(is.Status), is.Reason, is.Message}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		})
	}
}
