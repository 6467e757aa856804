package pricing

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/price"
)

func TestEachRoleCostsWhatItsOwnGPUDoes(t *testing.T) {
	dear, cheap := price.Find(0, "h200_sxm"), price.Find(0, "l40s")
	unnamed := price.Find(0, "")
	free := price.Tag{Free: true}
	const h200, l40s = "a GPU costs $5.00/h (by the built-in table, for h200_sxm)", "a GPU costs $1.90/h (by the built-in table, for l40s)"
	for _, x := range []struct {
		rule string
		of   Tags
		// hour is what two prefill replicas of one GPU and three of decode of two cost.
		hour             float64
		says, why, hours string
	}{
		{"one price for both", Both(dear), 40, h200, "", "$40.00"},
		{"a kind of GPU each", Tags{dear, cheap}, 21.4, "prefill: " + h200 + "; decode: " + l40s, "", "$21.40"},
		{"a role without GPUs costs nothing", Tags{free, dear}, 30, h200 + "; replicas of prefill ask for none", "", "$30.00"},
		{"whichever it is", Tags{cheap, free}, 3.8, l40s + "; replicas of decode ask for none", "", "$3.80"},
		{"what nobody knows is said", Both(unnamed), 0, "what it costs is not known: it is not said which GPUs replicas have", "it is not said which GPUs replicas have", "unknown"},
		{"also of one role", Tags{dear, unnamed}, 10, "prefill: " + h200 + "; decode: what it costs is not known: it is not said which GPUs replicas have",
			"decode: it is not said which GPUs replicas have", "unknown"},
		{"and of the only one that has GPUs", Tags{free, unnamed}, 0, "what it costs is not known: it is not said which GPUs replicas have", "it is not said which GPUs replicas have", "unknown"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			got := []any{x.of.Hour(decision.Vector{2, 3}, decision.Vector{1, 2}), x.of.String(), x.of.Why(), x.of.Hours([decision.Roles]float64{2, 6}), x.of.Known()}
			if diff := cmp.Diff([]any{x.hour, x.says, x.why, x.hours, x.why == ""}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
