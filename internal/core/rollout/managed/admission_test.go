package managed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/analysis"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/world"
)

// admission is what frontends say that refuse a generation; where there is none such, they
// cannot be asked.
func (c *cluster) admission(g *graph.Graph) world.Admission {
	if c.refused == "" {
		return world.Admission{}
	}
	workers := map[string]map[string]int{}
	for _, p := range c.pods {
		for _, of := range g.Components {
			id := p.Labels[v1alpha1.LabelGeneration]
			if of.Name != p.Labels[v1alpha1.LabelComponent] || id == c.refused || !world.Ready(p) {
				continue
			}
			namespace := of.NamespaceOf(id)
			if workers[namespace] == nil {
				workers[namespace] = map[string]int{}
			}
			workers[namespace][of.Name]++
		}
	}
	return world.Admission{Known: true, Workers: map[string]map[string]map[string]int{"m": workers}}
}

// TestACandidateThatFrontendsRefuseIsBlocked: it is ready, and gets no requests.
func TestACandidateThatFrontendsRefuseIsBlocked(t *testing.T) {
	for rule, x := range map[string]struct {
		admitted bool
		phase    string
		reason   analysis.AbortReason
	}{
		"it is aborted when it has made no progress for too long": {false, "Aborted", analysis.AbortDeadline},
		"it goes on when they send it requests after all":         {true, "Completed", ""},
	} {
		t.Run(rule, func(t *testing.T) {
			c := start(t, 2)
			c.quiet()
			c.image(second)
			c.until("the rollout to begin", func(managed.Decision) bool {
				st := c.dgd.Status.Rollout
				if st != nil && st.Phase == "Starting" {
					c.refused = st.Target
				}
				return c.refused != ""
			})
			began := c.now
			c.phase("Blocked", "NotAdmitted")
			if waited := c.now.Sub(began); waited < 2*time.Minute || waited > 4*time.Minute {
				t.Errorf("that is told after %v", waited)
			}
			if m := c.dgd.Status.Rollout.Message; !strings.Contains(m, "prefill") || !strings.Contains(m, c.refused) {
				t.Errorf("it says %q", m)
			}
			if x.admitted {
				c.refused = "none"
			}
			c.phase(x.phase, string(x.reason))
			if waited := c.now.Sub(began); !x.admitted && (waited < 10*time.Minute || waited > 13*time.Minute) {
				t.Errorf("it is given up after %v", waited)
			}
			c.quiet()
		})
	}
}
