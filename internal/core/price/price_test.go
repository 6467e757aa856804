package price

import (
	"math"
	"testing"

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
