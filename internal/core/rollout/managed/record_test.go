package managed_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/revision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/workload"
)

// TestARecordTellsHowLongStartsTook: of the pods of the generation that was rolled out.
func TestARecordTellsHowLongStartsTook(t *testing.T) {
	measured := func(c *cluster, id string) map[string]int32 {
		took := map[string]int32{}
		for _, service := range []string{"decode", "prefill"} {
			pods := c.pods[:0:0]
			for _, p := range c.pods {
				if p.Labels[v1alpha1.LabelGeneration] == id && p.Labels[v1alpha1.LabelComponent] == service {
					pods = append(pods, p)
				}
			}
			if seen := workload.Startup(pods); seen != nil {
				took[service] = seen.P50Seconds
			}
		}
		return took
	}
	t.Run("completed", func(t *testing.T) {
		c := start(t, 2)
		c.quiet()
		id := c.completed(second)
		want := measured(c, id)
		if diff := cmp.Diff(want, revision.RecordOf(revision.OfGeneration(c.revisions, id)).StartSeconds); diff != "" || len(want) != 2 {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("aborted", func(t *testing.T) {
		c := atStep(t, nil)
		id := c.dgd.Status.Rollout.Target
		want := measured(c, id)
		c.dgd.Annotations[v1alpha1.AnnotationRolloutAbort] = id
		c.phase("Aborted", "")
		if diff := cmp.Diff(want, revision.RecordOf(revision.OfGeneration(c.revisions, id)).StartSeconds); diff != "" || len(want) != 2 {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
