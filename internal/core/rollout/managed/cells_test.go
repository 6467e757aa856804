package managed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
)

// generations are those that pods of each service are of, and how many.
func (c *cluster) generations() map[string]map[string]int {
	all := map[string]map[string]int{}
	for _, p := range c.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		service := p.Labels[v1alpha1.LabelComponent]
		if all[service] == nil {
			all[service] = map[string]int{}
		}
		all[service][p.Labels[v1alpha1.LabelGeneration]]++
	}
	return all
}

// TestCellsReturnTogether: what is aborted is a revision of the graph, and not one cell of
// it, however far the others are.
func TestCellsReturnTogether(t *testing.T) {
	for rule, broken := range map[string][]string{
		"the aggregated cell does not come up": {"worker"},
		"the split cell does not come up":      {"decode", "prefill"},
	} {
		t.Run(rule, func(t *testing.T) {
			c := begin(t, 2, defaults, nil, "prefill", "decode", "worker")
			c.quiet()
			stable := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.broken, c.floor = third, 0 // each cell has its own, of which the status tells
			c.image(second)
			for _, name := range broken {
				c.dgd.Spec.Services[name].ExtraPodSpec.MainContainer.Image = third
			}
			c.phase("Aborted", string(analysis.AbortDeadline))
			c.quiet()
			want := map[string]map[string]int{"decode": {stable: 2}, "prefill": {stable: 2}, "worker": {stable: 2}}
			if diff := cmp.Diff(want, c.generations()); diff != "" {
				t.Errorf("pods by generation (-want +got):\n%s", diff)
			}
			for name, role := range c.dgd.Status.Rollout.Roles {
				if role.Lowest < role.Floor || role.Floor != 2 {
					t.Errorf("the certificate of %s says %d, its floor is %d", name, role.Lowest, role.Floor)
				}
			}
			if len(c.owned) != 3 {
				t.Errorf("%d components are left", len(c.owned))
			}
		})
	}
}

// TestCellsAreRolledOutTogether: that they wait for each other's end keeps none from it.
func TestCellsAreRolledOutTogether(t *testing.T) {
	c := begin(t, 2, defaults, nil, "prefill", "decode", "worker")
	c.quiet()
	c.floor = 0
	c.image(second)
	c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) == 3 })
	c.until("the rollout to be completed", settled)
	c.quiet()
	id := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	want := map[string]map[string]int{"decode": {id: 2}, "prefill": {id: 2}, "worker": {id: 2}}
	if diff := cmp.Diff(want, c.generations()); diff != "" || c.dgd.Status.Rollout.Phase != "Completed" {
		t.Errorf("%s: pods by generation (-want +got):\n%s", c.dgd.Status.Rollout.Phase, diff)
	}
}
