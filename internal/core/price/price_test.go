package price

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

func TestEveryKnownGPUHasAPrice(t *testing.T) {
	for _, gpu := range perfmodel.Default().GPUs {
		if hour, ok := Hour(gpu.Name); !ok || hour <= 0 {
			t.Errorf("%s: %g", gpu.Name, hour)
		}
	}
}

func TestPerMillion(t *testing.T) {
	if got := PerMillion(3.6, 1000); math.Abs(got-1) > 1e-12 {
		t.Errorf("got %g", got)
	}
	if got := PerMillion(3.6, 0); got != 0 {
		t.Errorf("nothing made costs %g", got)
	}
}

func TestWhatIsGivenCountsMoreThanTheTableAndWhatNobodyKnowsIsSaid(t *testing.T) {
	for _, x := range []struct {
		rule  string
		given float64
		gpu   string
		want  Tag
	}{
		{"by the table", 0, "h200_sxm", Tag{Hour: 5, By: "the built-in table, for h200_sxm"}},
		{"by the label of a node", 0, "NVIDIA-H200", Tag{Hour: 5, By: "the built-in table, for h200_sxm"}},
		{"as given", 3.2, "h200_sxm", Tag{Hour: 3.2, By: "what was given"}},
		{"as given for a GPU of nobody", 3.2, "", Tag{Hour: 3.2, By: "what was given"}},
		{"no GPU is named", 0, "", Tag{Unknown: "it is not said which GPUs replicas have"}},
		{"one that is not in the table", 0, "abacus", Tag{Unknown: "the built-in table has no price of abacus"}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			got := Find(x.given, x.gpu)
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Known() != (x.want.Unknown == "") {
				t.Errorf("known: %t", got.Known())
			}
		})
	}
}
