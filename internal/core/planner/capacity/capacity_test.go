package capacity

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// line100 computes 10,000 tokens a second and steps in 5 ms and 0.1 ms a sequence.
var line100 = Curve{Lengths: []float64{100, 10000}, Times: []float64{0.01, 1}, Step: 0.005, Sequence: 0.0001, Tokens: 100000}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9+1e-3*math.Abs(b) }

func TestWait(t *testing.T) {
	for _, x := range []struct {
		rule          string
		rate, service float64
		n             int
		want          float64
	}{
		{"nobody waits where nobody comes", 0, 0.1, 1, 0},
		{"nobody waits for what takes no time", 9, 0, 1, 0},
		{"one server: as of constant service times", 5, 0.1, 1, 0.05},
		{"who is busy all the time never catches up", 10, 0.1, 1, math.Inf(1)},
		{"nor who is asked for more", 100, 0.1, 2, math.Inf(1)},
		{"a number that is none has no end", math.NaN(), 0.1, 1, math.Inf(1)},
	} {
		if got := Wait(x.rate, x.service, x.n); got != x.want && !near(got, x.want) {
			t.Errorf("%s: %v, want %v", x.rule, got, x.want)
		}
	}
	for n := 1; n < 20; n++ {
		if one, more := Wait(9, 0.1, n), Wait(9, 0.1, n+1); more > one {
			t.Errorf("%d servers wait %v, one more %v", n, one, more)
		}
	}
}

func TestPrefillNeed(t *testing.T) {
	target := Target{FirstToken: 0.5, Token: 0.01}
	load := func(rate, input float64) Load {
		return Load{Rate: rate, Lengths: Lengths{Input: input, Input95: input}}
	}
	for _, x := range []struct {
		rule  string
		load  Load
		scale float64
		want  int
	}{
		{"no requests need one", load(0, 1000), 1, 1},
		{"a load that one takes with a short wait needs one", load(5, 1000), 1, 1},
		{"a wait beyond the target needs another", load(8, 1000), 1, 2},
		{"ten times as many need less than ten times as much", load(80, 1000), 1, 9},
		{"slower replicas are more", load(8, 1000), 2, 3},
		{"what is in a cache is not computed", Load{Rate: 8, Lengths: Lengths{Input: 1000, Input95: 1000, Hit: 0.5}}, 1, 1},
		{"a share beyond all is all", Load{Rate: 8, Lengths: Lengths{Input: 1000, Input95: 1000, Hit: 7}}, 1, 1},
		{"lengths that differ wait longer", Load{Rate: 13, Lengths: Lengths{Input: 1000, Input95: 1000, InputSpread: 10}}, 1, 3},
		{"a prompt that alone is too long is not helped by hundreds", load(1, 9000), 1, 3},
		{"a rate beyond any cluster has an end", load(1e12, 1000), 1, Most},
	} {
		t.Run(x.rule, func(t *testing.T) {
			got := Prefill(line100, x.load, target, x.scale, DefaultMargins())
			if got.Replicas != x.want {
				t.Errorf("%+v, want %d", got, x.want)
			}
			if got.Replicas > 1 && got.Shorter < got.Wait {
				t.Errorf("one less waits %v, less than %v", got.Shorter, got.Wait)
			}
		})
	}
}

func TestDecodeNeed(t *testing.T) {
	target := Target{FirstToken: 0.5, Token: 0.01}
	load := func(rate, input, output float64) Load {
		return Load{Rate: rate, Lengths: Lengths{Input: input, Output: output}}
	}
	for _, x := range []struct {
		rule  string
		load  Load
		scale float64
		want  DecodeNeed
	}{
		// 9.2 of 10 ms leave 4.2 ms for 42 sequences.
		{"the time between tokens binds", load(10, 500, 1000), 1, DecodeNeed{Replicas: 3, Batch: 42, Active: 92}},
		// 90,000 tokens hold 9 sequences of 10,000, at 5.9 ms.
		{"the cache binds", load(10, 9500, 1000), 1, DecodeNeed{Replicas: 7, Batch: 9, Active: 59, CacheBinds: true}},
		{"no requests need one", load(0, 500, 1000), 1, DecodeNeed{Replicas: 1, Batch: 42}},
		{"slower replicas take fewer", load(10, 500, 1000), 1.5, DecodeNeed{Replicas: 9, Batch: 11.333, Active: 92}},
		{"one sequence is taken, however slow", load(1, 500, 1000), 9, DecodeNeed{Replicas: 46, Batch: 1, Active: 45.9}},
		{"a rate beyond any cluster has an end", load(1e12, 500, 1000), 1, DecodeNeed{Replicas: Most, Batch: 42, Active: 9.2e12}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			got := Decode(line100, x.load, target, x.scale, DefaultMargins())
			if diff := cmp.Diff(x.want, got, cmpopts.EquateApprox(1e-3, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A handover leaves less of the target to waiting, and keeps nobody busy.
func TestAHandoverNeverMeansFewerReplicas(t *testing.T) {
	target := Target{FirstToken: 0.5, Token: 0.01}
	for rate := 0.5; rate < 60; rate += 0.5 {
		last := 0
		for _, handover := range []float64{0, 0.05, 0.1, 0.2, 0.4, 5} {
			load := Load{Rate: rate, Lengths: Lengths{Input: 1000, Input95: 1000}, Handover: handover}
			need := Prefill(line100, load, target, 1, DefaultMargins())
			if need.Replicas < last || !near(need.Service, 0.1) {
				t.Errorf("%v a second with a handover of %v s need %+v, with a shorter one %d", rate, handover, need, last)
			}
			last = need.Replicas
		}
	}
	tight := Load{Rate: 7, Lengths: Lengths{Input: 1000, Input95: 1000}}
	if n := Prefill(line100, tight, target, 1, DefaultMargins()).Replicas; n != 1 {
		t.Errorf("7 a second need %d", n)
	}
	tight.Handover = 0.1
	if n := Prefill(line100, tight, target, 1, DefaultMargins()).Replicas; n != 2 {
		t.Errorf("7 a second that are handed over in 100 ms need %d", n)
	}
}

func TestAHandoverIsNoPartOfAPrompt(t *testing.T) {
	for _, x := range []struct {
		rule           string
		handover, seen float64
		slower, late   float64
	}{
		{"without one all of it is the prompt's", 0, 0.15, 1.5, 0},
		{"what is late by it is not", 0.1, 0.2, 1, 0.1},
		{"what is late by more is", 0.1, 0.25, 1.5, 0.1},
		{"what is late by less is as the model says, and no faster", 0.1, 0.14, 1, 0.04},
		{"who is faster than the model says hands over in no time", 0.1, 0.08, 0.8, 0},
		{"nobody knows the time to the first token", 0.1, 0, 1, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var c Calibration
			for range 200 {
				c = c.Next(Observation{Requests: 50, FirstToken: x.seen}, Target{FirstToken: 0.1, Token: 0.01}, x.handover)
			}
			if slower, _ := c.Scales(); !near(slower, x.slower) || !near(c.Handover, x.late) {
				t.Errorf("prompts are %v times as slow and handed over in %v s, want %v and %v", slower, c.Handover, x.slower, x.late)
			}
		})
	}
}

func TestCalibration(t *testing.T) {
	expected := Target{FirstToken: 0.1, Token: 0.01}
	follow := func(times int, o Observation) Calibration {
		var c Calibration
		for range times {
			c = c.Next(o, expected, 0)
		}
		return c
	}
	for _, x := range []struct {
		rule            string
		c               Calibration
		prefill, decode float64
	}{
		{"nothing seen: the model is believed", Calibration{}, 1, 1},
		{"few requests say nothing", follow(100, Observation{Requests: fewest - 1, FirstToken: 1, Token: 1}), 1, 1},
		{"one tick moves by a tenth", follow(1, Observation{Requests: 50, FirstToken: 0.2, Token: 0.01}), math.Pow(2, 0.1), 1},
		{"many ticks say how much slower", follow(200, Observation{Requests: 50, FirstToken: 0.2, Token: 0.015}), 2, 1.5},
		{"nothing is more than three times slower", follow(200, Observation{Requests: 50, FirstToken: 9, Token: 9}), 3, 3},
		{"nor more than twice as fast", follow(200, Observation{Requests: 50, FirstToken: 0.001, Token: 0.001}), 0.5, 0.5},
		{"what is not known changes nothing", follow(9, Observation{Requests: 50}), 1, 1},
		{"nor does what is no number", follow(9, Observation{Requests: 50, FirstToken: math.NaN(), Token: math.Inf(1)}), 1, 1},
	} {
		prefill, decode := x.c.Scales()
		if !near(prefill, x.prefill) || !near(decode, x.decode) {
			t.Errorf("%s: %v and %v, want %v and %v", x.rule, prefill, decode, x.prefill, x.decode)
		}
	}
}

// noisy falls where it should rise.
type noisy struct{ Curve }

func (n noisy) Prefill(tokens float64) float64 {
	return n.Curve.Prefill(tokens) + 0.05*math.Sin(tokens/100) + 0.1
}

func (n noisy) Token(sequences, context float64) float64 {
	return n.Curve.Token(sequences, context) * (1.2 + 0.2*math.Sin(sequences)*math.Cos(context))
}

func TestATableNeverFallsWithLoad(t *testing.T) {
	table, err := Tabulate(noisy{line100}, 10000, 200)
	if err != nil {
		t.Fatal(err)
	}
	for x := 0.0; x < 400; x += 3 {
		for y := 1.0; y < 20000; y += 777 {
			if table.Token(x, y) > table.Token(x+3, y)+1e-12 || table.Token(x, y) > table.Token(x, y+777)+1e-12 {
				t.Fatalf("a token of %v sequences of %v is dearer than one of more", x, y)
			}
		}
		if p := 50 * x; table.Prefill(p) > table.Prefill(p+50)+1e-12 {
			t.Fatalf("a prompt of %v is dearer than a longer one", p)
		}
	}
}

func TestTabulate(t *testing.T) {
	table, err := Tabulate(line100, 10000, 127)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		rule      string
		got, want float64
	}{
		{"prompts between places are in line", table.Prefill(5033), 0.5033},
		{"a prompt beyond the table goes on", table.Prefill(20000), 2},
		{"a prompt of nothing takes what the shortest does", table.Prefill(-1), 0.01},
		{"sequences between places are in line", table.Token(10.5, 500), 0.00605},
		{"sequences beyond the table go on", table.Token(1000, 500), 0.105},
		{"the cache is the model's", table.Cache(), 100000},
		{"who does both waits for the prompts of others", Aggregated{table, Lengths{Input: 1000, Output: 100}}.Token(10, 500), 0.006 + 0.1*0.1},
		{"but not for what is in a cache", Aggregated{table, Lengths{Input: 2000, Output: 100, Hit: 0.5}}.Token(10, 500), 0.006 + 0.1*0.1},
	} {
		if math.Abs(x.got/x.want-1) > 0.02 {
			t.Errorf("%s: %v, want %v", x.rule, x.got, x.want)
		}
	}
	for rule, make := range map[string]func() (*Table, error){
		"no length":           func() (*Table, error) { return Tabulate(line100, 0, 10) },
		"no batch":            func() (*Table, error) { return Tabulate(line100, 10, math.NaN()) },
		"no cache":            func() (*Table, error) { return Tabulate(Curve{}, 10, 10) },
		"no end":              func() (*Table, error) { return Tabulate(line100, math.Inf(1), 10) },
		"a time that is none": func() (*Table, error) { c := line100; c.Step, c.Sequence = 0, 0; return Tabulate(c, 10, 10) },
	} {
		if got, err := make(); err == nil {
			t.Errorf("%s: tabulated as %v", rule, got)
		}
	}
}

func TestThePublishedProfileIsTheOneThatWasPublished(t *testing.T) {
	table := H200()
	for tokens, want := range map[float64]float64{1117: .038494, 4168: .087342, 16372: .375483} {
		if got := table.Prefill(tokens); math.Abs(got/want-1) > 0.02 {
			t.Errorf("a prompt of %v takes %v, published is %v", tokens, got, want)
		}
	}
}

func TestThePerformanceModelTimesReplicas(t *testing.T) {
	catalog := perfmodel.Default()
	model, err := catalog.Model("Qwen/Qwen3-8B")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := catalog.Estimator(perfmodel.Setup{Model: model, GPU: gpu, Engine: "vllm", Parallel: perfmodel.Parallel{TP: 1}})
	if err != nil {
		t.Fatal(err)
	}
	table, err := FromEstimators(e, e)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		rule      string
		got, want float64
	}{
		{"prompts", table.Prefill(4000), e.FirstToken(4000, 0).Value.Seconds()},
		{"tokens", table.Token(32, 4000), e.Decode(32, 4000).Value.Seconds()},
		{"the cache", table.Cache(), float64(e.Memory().Tokens)},
	} {
		if math.Abs(x.got/x.want-1) > 0.05 {
			t.Errorf("%s: %v, the performance model says %v", x.rule, x.got, x.want)
		}
	}
}

const (
	prefillJSON = `{"prefill_isl": [2000, 1000], "prefill_ttft": [200, 100], "prefill_thpt_per_gpu": [10000, 10000], "by": "somebody"}`
	decodeJSON  = `{"x_kv_usage": [0.1, 1, 0.1, 1], "y_context_length": [1000, 1000, 2000, 2000], "z_itl": [5, 14, 6, 15],
		"z_thpt_per_gpu": [2000, 7000, 900, 3000], "max_kv_tokens": 100000}`
)

// npz is an archive as NumPy writes it.
func npz(t *testing.T, arrays map[string]any) []byte {
	t.Helper()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for name, list := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		kind, shape := "f8", "()"
		switch l := list.(type) {
		case []float64:
			shape = fmt.Sprintf("(%d,)", len(l))
		case []float32:
			kind, shape = "f4", fmt.Sprintf("(%d,)", len(l))
		case []int64:
			kind, shape = "i8", fmt.Sprintf("(%d,)", len(l))
		case []int32:
			kind, shape = "i4", fmt.Sprintf("(%d,)", len(l))
		}
		var body bytes.Buffer
		header := fmt.Sprintf("{'descr': '<%s', 'fortran_order': False, 'shape': %s, }\n", kind, shape)
		body.WriteString("\x93NUMPY\x01\x00")
		for _, part := range []any{uint16(len(header)), []byte(header), list} {
			if err := binary.Write(&body, binary.LittleEndian, part); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Write(body.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestProfilesAreReadInEitherForm(t *testing.T) {
	want := Profile{
		Input: []float64{2000, 1000}, FirstToken: []float64{200, 100}, InputThroughput: []float64{10000, 10000},
		Usage: []float64{0.1, 1, 0.1, 1}, Context: []float64{1000, 1000, 2000, 2000}, Token: []float64{5, 14, 6, 15},
		OutputThroughput: []float64{2000, 7000, 900, 3000}, CacheTokens: 100000,
	}
	prefillNPZ := npz(t, map[string]any{"prefill_isl": []int64{2000, 1000}, "prefill_ttft": []float64{200, 100}, "prefill_thpt_per_gpu": []float32{10000, 10000}})
	decodeNPZ := npz(t, map[string]any{
		"x_kv_usage": []float64{0.1, 1, 0.1, 1}, "y_context_length": []int32{1000, 1000, 2000, 2000}, "z_itl": []float64{5, 14, 6, 15},
		"z_thpt_per_gpu": []float64{2000, 7000, 900, 3000}, "max_kv_tokens": []int64{100000},
	})
	for rule, folder := range map[string]fstest.MapFS{
		"JSON": {"prefill_raw_data.json": {Data: []byte(prefillJSON)}, "decode_raw_data.json": {Data: []byte(decodeJSON)}},
		"archives go before JSON": {
			"prefill_raw_data.json": {Data: []byte("{}")}, "decode_raw_data.json": {Data: []byte("{}")},
			"selected_prefill_interpolation/raw_data.npz": {Data: prefillNPZ}, "selected_decode_interpolation/raw_data.npz": {Data: decodeNPZ},
		},
		"one of each": {"prefill_raw_data.json": {Data: []byte(prefillJSON)}, "selected_decode_interpolation/raw_data.npz": {Data: decodeNPZ}},
	} {
		t.Run(rule, func(t *testing.T) {
			got, err := ReadProfile(folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ReadProfile(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a profile that is not there: %v", err)
	}
	m, err := want.Model()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		rule      string
		got, want float64
	}{
		{"times are seconds", m.Prefill(1500), 0.15},
		{"a time that was measured", m.Token(100, 1000), 0.014},
		{"halfway between what was measured", m.Token(55, 1000), 0.0095},
	} {
		if math.Abs(x.got/x.want-1) > 0.03 {
			t.Errorf("%s: %v, want %v", x.rule, x.got, x.want)
		}
	}
}

func TestAProfileThatIsNoneIsRefused(t *testing.T) {
	huge := npz(t, map[string]any{"prefill_isl": []float64{}})
	huge = bytes.Replace(huge, []byte("'shape': (0,)"), []byte("'shape': (9999999,)"), 1)
	for rule, files := range map[string][2]string{
		"no JSON":                  {"{", decodeJSON},
		"no arrays":                {"{}", decodeJSON},
		"fewer times than lengths": {`{"prefill_isl": [1, 2], "prefill_ttft": [1], "prefill_thpt_per_gpu": [1, 2]}`, decodeJSON},
		"no cache":                 {prefillJSON, `{"x_kv_usage": [1], "y_context_length": [1], "z_itl": [1], "z_thpt_per_gpu": [1]}`},
		"no context":               {prefillJSON, `{"x_kv_usage": [1], "y_context_length": [0], "z_itl": [1], "z_thpt_per_gpu": [1], "max_kv_tokens": 1}`},
		"a time of nothing":        {prefillJSON, `{"x_kv_usage": [1], "y_context_length": [1], "z_itl": [0], "z_thpt_per_gpu": [1], "max_kv_tokens": 1}`},
		"an archive cut off":       {"PK\x03\x04", decodeJSON},
		"an archive that promises": {string(huge), decodeJSON},
		"no array in an archive":   {string(npz(t, map[string]any{"prefill_isl": []byte("x")})), decodeJSON},
	} {
		t.Run(rule, func(t *testing.T) {
			p, err := ParseProfile([]byte(files[0]), []byte(files[1]))
			if err == nil {
				_, err = p.Model()
			}
			if err == nil {
				t.Errorf("it is read as %+v", p)
			}
		})
	}
}

func TestAnArrayTakesNoMoreThanItHas(t *testing.T) {
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': (60000000,), }\n"
	body := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
	body = append(body, header...)
	took := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, err := array(body); err == nil {
				b.Fatal("60,000,000 numbers are read from nothing")
			}
		}
	})
	if took.AllocedBytesPerOp() > 1<<20 {
		t.Errorf("%d bytes for an array of none", took.AllocedBytesPerOp())
	}
}
