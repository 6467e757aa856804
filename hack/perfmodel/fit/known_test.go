package fit

import (
	"math"
	"strings"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// known are runs of a model on deployments of one, two and four GPUs that differ from
// what constants say in how long steps and prompts take, and requests beside the work
// of GPUs.
func known(t *testing.T, k perfmodel.Constants, is perfmodel.Measured) []Row {
	t.Helper()
	var table strings.Builder
	table.WriteString(head)
	for _, tp := range []string{"1", "2", "4"} {
		for _, lengths := range []string{"1024,512", "512,1024", "8192,1024"} {
			for _, batch := range []string{"1", "8", "64"} {
				table.WriteString("x,db-dump/x,vllm,Qwen/Qwen3-8B,h100_sxm,agg," + lengths + ",,," + batch + "," + tp + ",1,,1,1,1,100\n")
			}
		}
	}
	rows, _, err := Read(strings.NewReader(table.String()), perfmodel.Default())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows {
		times := r.Predict(is.Apply(k))
		rows[i].Token, rows[i].First = times.Token, times.First
	}
	return rows
}

func TestWhatIsKnownOfAModelIsFoundAgain(t *testing.T) {
	k := Prior()[0]
	for name, want := range map[string]perfmodel.Measured{
		"nothing but the constants": {Step: 1, Prompt: 1, Request: 1},
		"slower steps":              {Step: 1.4, Prompt: 1, Request: 1},
		"faster steps, busy host":   {Step: 0.8, Prompt: 1, Request: 2},
		"no kernels for prompts":    {Step: 1, Prompt: 4, Request: 1},
		"no work for the host":      {Step: 1, Prompt: 1, Request: 0.3},
	} {
		got := Measure(known(t, k, want), Prior())
		if len(got) != 1 || got[0].Rows < 24 {
			t.Errorf("%s: got %+v", name, got)
			continue
		}
		for what, ratio := range map[string]float64{"step": got[0].Step / want.Step, "prompt": got[0].Prompt / want.Prompt, "request": got[0].Request / want.Request} {
			if math.Abs(ratio-1) > 0.1 {
				t.Errorf("%s: %s is %.2f times what it is: %+v", name, what, ratio, got[0])
			}
		}
	}
	if got := Measure(known(t, k, perfmodel.Measured{Step: 1.4})[:2], Prior()); len(got) != 0 {
		t.Errorf("two rows tell %+v", got)
	}
}

// A deployment is judged by others than itself.
func TestADeploymentDoesNotTellOfItself(t *testing.T) {
	k := Prior()[0]
	rows := known(t, k, perfmodel.Measured{Step: 1.4})
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
