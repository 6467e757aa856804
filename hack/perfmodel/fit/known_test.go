package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// known are runs of a model on deployments of one, two and four GPUs that differ from
// what constants say in how long steps take, and requests beside the work of GPUs.
func known(t *testing.T, k perfmodel.Constants, step, request float64) []Row {
	t.Helper()
	var table strings.Builder
	table.WriteString(head)
	for _, tp := range []string{"1", "2", "4"} {
		for _, batch := range []string{"1", "8", "64"} {
			table.WriteString(tp + "x" + batch + ",db-dump/x,vllm,Qwen/Qwen3-8B,h100_sxm,agg,1024,512,,," + batch + "," + tp + ",1,,1,1,1,100\n")
		}
	}
	rows, _, err := Read(strings.NewReader(table.String()), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	is := perfmodel.Measured{Step: step, Request: request}
	for i, r := range rows {
		times := r.Predict(is.Apply(k))
		rows[i].Token, rows[i].First = times.Token, times.First
	}
	return rows
}

func TestWhatIsKnownOfAModelIsFoundAgain(t *testing.T) {
	k := Prior()[0]
	for name, c := range map[string]struct{ step, request float64 }{
		"nothing but the constants": {1, 1},
		"slower kernels":            {1.4, 1},
		"faster kernels, busy host": {0.8, 2},
		"no work for the host":      {1, 0.3},
	} {
		got := Measure(known(t, k, c.step, c.request), Prior())
		if len(got) != 1 || got[0].Rows != 9 || math.Abs(got[0].Step/c.step-1) > 0.02 || math.Abs(got[0].Request/c.request-1) > 0.05 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if got := Measure(known(t, k, 1.4, 1)[:2], Prior()); len(got) != 0 {
		t.Errorf("two rows tell %+v", got)
	}
}

// A deployment is judged by others than itself.
func TestADeploymentDoesNotTellOfItself(t *testing.T) {
	k := Prior()[0]
	rows := known(t, k, 1.4, 1)
	for i := range rows {
		if rows[i].Estimator.Setup().Parallel.TP == 4 {
			rows[i].Token *= 1.3
		}
	}
	without := JudgeKnown(Judge(rows, Prior(), ""))
	if len(without) != len(rows) {
		t.Fatalf("%d of %d rows were judged", len(without), len(rows))
	}
	for _, j := range without {
		want := 1.0
		if j.Estimator.Setup().Parallel.TP == 4 {
			want = 1.3
		}
		if got := j.Row.Token / j.Times.Token; math.Abs(got/want-1) > 0.16 {
			t.Errorf("%s, %d at a time: took %.2f times as long as others tell, want %.2f", j.deployment(), j.Load.Concurrency, got, want)
		}
	}
	k = Calibrate(Prior(), Judge(rows, Prior(), ""), nil)[0]
	if known := k.KnownError.TokenP90; known <= 0 || known >= k.Error.TokenP90 {
		t.Errorf("bands of %.2f where deployments of the model are known, and of %.2f where none is", known, k.Error.TokenP90)
	}
}
