package managed_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/graph"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/generation"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/managed"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
)

func pairs() map[string]string {
	return map[string]string{v1alpha1.AnnotationRolloutIsolation: v1alpha1.IsolationPaired}
}

func under(contract graph.Contract) graph.Defaults {
	return graph.Defaults{Discovery: graph.DiscoveryKubernetes, Contract: graph.ContractRules{Forced: contract}}
}

// unserved are the frontends that are ready where no pair of workers is: what they are
// asked nobody answers.
func (c *cluster) unserved() []string {
	ready := map[string]map[string]int{}
	for _, p := range c.pods {
		if id := p.Labels[v1alpha1.LabelGeneration]; p.DeletionTimestamp == nil && len(p.Status.Conditions) > 0 {
			if ready[id] == nil {
				ready[id] = map[string]int{}
			}
			ready[id][p.Labels[v1alpha1.LabelComponent]]++
		}
	}
	var all []string
	for id, roles := range ready {
		if roles["frontend"] > 0 && (roles["prefill"] == 0 || roles["decode"] == 0) {
			all = append(all, id)
		}
	}
	return all
}

// TestPairsAreExchangedUnderEveryContract: a generation that is complete has a frontend,
// and none is up before workers of its generation are.
func TestPairsAreExchangedUnderEveryContract(t *testing.T) {
	for _, contract := range []graph.Contract{graph.ContractSeed, graph.ContractV1} {
		for _, replicas := range []int32{1, 2, 4} {
			t.Run(fmt.Sprintf("%s, %d", contract, replicas), func(t *testing.T) {
				c := begin(t, replicas, under(contract), pairs(), "frontend", "prefill", "decode")
				c.quiet()
				first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
				if (first == "") != (contract == graph.ContractSeed) {
					t.Errorf("the first generation is %q", first)
				}
				for _, tag := range []string{"1.1.0", "1.2.0"} { // from the first, and from a later one
					c.image("example.com/engine:" + tag)
					c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) == 3 })
					c.until("the rollout to be completed", func(d managed.Decision) bool {
						for _, id := range c.unserved() {
							t.Fatalf("generation %q has a frontend, and not all workers: %+v", id, c.dgd.Status.Rollout)
						}
						return settled(d)
					})
					c.quiet()
				}
				now := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
				if st := c.dgd.Status.Rollout; now == first || st.Phase != string(generation.PhaseCompleted) || st.Target != now {
					t.Errorf("generation %q, then %q: %+v", first, now, st)
				}
				for name, role := range c.dgd.Status.Rollout.Roles {
					if int(role.Lowest) < c.floor {
						t.Errorf("the certificate of %s says %d, under its floor of %d", name, role.Lowest, c.floor)
					}
				}
				var names []string
				for _, o := range c.owned {
					names = append(names, o.GetName())
				}
				want := []string{"chat-decode-" + now, "chat-frontend-" + now, "chat-prefill-" + now}
				if diff := cmp.Diff(want, sorted(names)); diff != "" {
					t.Errorf("components (-want +got):\n%s", diff)
				}
				if r := revision.OfGeneration(c.revisions, now); r == nil || revision.ResultOf(r) != revision.Completed {
					t.Errorf("revision %v", r)
				}
			})
		}
	}
}

// TestAFrontendOfAPairStartsAGeneration: its image is one of the generation's, and an
// image that was given up is not the next one.
func TestAFrontendOfAPairStartsAGeneration(t *testing.T) {
	c := begin(t, 2, under(graph.ContractV1), pairs(), "frontend", "prefill", "decode")
	first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
	var ids []string
	for _, tag := range []string{"1.1.0", "1.2.0"} {
		c.dgd.Spec.Services["frontend"].ExtraPodSpec.MainContainer.Image = "example.com/engine:" + tag
		d := c.reconcile()
		ids = append(ids, string(d.State.Cells[0].Cell.Spec))
	}
	if ids[0] == ids[1] || ids[0] == first || ids[1] == first {
		t.Errorf("generations %q after %q", ids, first)
	}
}

// TestFrontendsJoinTheWorkersOfAGraphThatBecomesPaired: in place, and before the next
// generation or with it.
func TestFrontendsJoinTheWorkersOfAGraphThatBecomesPaired(t *testing.T) {
	for name, together := range map[string]bool{"by itself": false, "with a change": true} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, 2, under(graph.ContractV1), nil, "frontend", "prefill", "decode")
			first := c.dgd.Annotations[v1alpha1.AnnotationGeneration]
			c.dgd.Annotations[v1alpha1.AnnotationRolloutIsolation] = v1alpha1.IsolationPaired
			if !together {
				if d := c.reconcile(); len(d.Rolling) > 0 || d.Graph.Generation != first {
					t.Fatalf("%v roll, from %s to %s", d.Rolling, first, d.Graph.Generation)
				}
				for _, o := range c.owned {
					if got := o.GetLabels()[v1alpha1.LabelGeneration]; got != first || o.GetName() != "chat-"+o.GetLabels()[v1alpha1.LabelComponent] {
						t.Errorf("%s is of generation %q", o.GetName(), got)
					}
				}
				for i := range c.pods { // as its Deployment does
					c.pods[i].Labels[v1alpha1.LabelGeneration] = first
				}
			}
			c.floor = 0 // a generation whose frontends have no label is not to be told from outside
			c.image("example.com/engine:1.1.0")
			c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) == 3 })
			c.until("the rollout to be completed", settled)
			for name, role := range c.dgd.Status.Rollout.Roles {
				if role.Lowest < 2 {
					t.Errorf("the certificate of %s says %d", name, role.Lowest)
				}
			}
		})
	}
}

// TestAPairedGraphStaysPaired: what its frontends are reached by could not follow.
func TestAPairedGraphStaysPaired(t *testing.T) {
	for _, contract := range []graph.Contract{graph.ContractSeed, graph.ContractV1} {
		t.Run(string(contract), func(t *testing.T) {
			c := begin(t, 1, under(contract), pairs(), "frontend", "prefill", "decode")
			c.image("example.com/engine:1.1.0")
			c.until("the rollout to begin", func(d managed.Decision) bool { return len(d.Rolling) == 3 })
			c.until("the rollout to be completed", settled)
			before := len(c.owned)
			delete(c.dgd.Annotations, v1alpha1.AnnotationRolloutIsolation)
			c.dgd.Annotations[v1alpha1.AnnotationScaleToZeroAfter] = "10m" // with which it would not have become so
			c.quiet()
			for _, o := range c.owned {
				if o.GetLabels()[v1alpha1.LabelGeneration] != c.dgd.Annotations[v1alpha1.AnnotationGeneration] || len(c.owned) != before {
					t.Errorf("%s is of generation %q", o.GetName(), o.GetLabels()[v1alpha1.LabelGeneration])
				}
			}
		})
	}
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
