package fit

import (
	"os"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// table is where measurements lie beside the repository; they are no part of it.
const table = "../../../../shared/data/measured-latency.csv"

func TestShippedConstantsAreAccurateOnGroupsTheyWereNotFittedOn(t *testing.T) {
	source, err := os.Open(table)
	if err != nil {
		t.Skipf("the measurements are not here: %v", err)
	}
	defer source.Close()
	catalog := perfmodel.Default()
	rows, left, err := Read(source, catalog)
	if err != nil {
		t.Fatal(err)
	}
	fitted, check := Split(rows)
	t.Log("\n" + Report(fitted, check, left, catalog.Constants))
	for _, c := range []struct {
		engine  perfmodel.Engine
		mixture bool
		median  float64
	}{
		{perfmodel.VLLM, false, 0.08}, {perfmodel.TRTLLM, false, 0.15}, {perfmodel.SGLang, false, 0.15},
		{perfmodel.VLLM, true, 0.25}, {perfmodel.TRTLLM, true, 0.25}, {perfmodel.SGLang, true, 0.25},
	} {
		own := Of(check, c.engine, c.mixture)
		if len(own) < 40 {
			t.Errorf("%s: only %d rows to check on", c.engine, len(own))
		}
		if s := Tokens(own, catalog.Constants); s.Median > c.median {
			t.Errorf("%s, mixture %v: median error %.1f %% of %d rows, want at most %.0f", c.engine, c.mixture, 100*s.Median, s.Rows, 100*c.median)
		}
	}
}
