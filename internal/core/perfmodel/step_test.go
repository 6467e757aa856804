package perfmodel

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bound is an engine on eight GPUs with a model in other formats than the published.
func bound(t *testing.T, model, gpu string, engine Engine, q Quantisation) *cost {
	t.Helper()
	setup := estimator(t, model, gpu, engine, 8).Setup()
	setup.Quantisation = q
	e, err := Default().Estimator(setup)
	if err != nil {
		t.Fatal(err)
	}
	return &e.c
}

func TestCheckpointsOfFourBitsKeepAttentionInSixteen(t *testing.T) {
	type formats struct{ Projections, Last Precision }
	for name, c := range map[string]struct {
		model string
		q     Quantisation
		want  formats
	}{
		"a dense model has one format":                       {"Qwen/Qwen3-32B", Quantisation{Weights: FP4}, formats{FP4, FP4}},
		"a mixture of 8 bits, too":                           {"deepseek-ai/DeepSeek-R1", Quantisation{Weights: FP8}, formats{FP8, FP8}},
		"the last projection of latent attention is of 4":    {"deepseek-ai/DeepSeek-R1", Quantisation{Weights: FP4}, formats{BF16, FP4}},
		"a checkpoint that is published in 4 is no other":    {"nvidia/DeepSeek-R1-0528-FP4", Quantisation{}, formats{BF16, FP4}},
		"attention that is not latent is of 16 throughout":   {"Qwen/Qwen3-235B-A22B", Quantisation{Weights: FP4}, formats{BF16, BF16}},
		"experts that alone have 4 bits change nothing else": {"openai/gpt-oss-120b", Quantisation{}, formats{BF16, BF16}},
	} {
		b := bound(t, c.model, "b200_sxm", TRTLLM, c.q)
		var got formats
		got.Projections, got.Last = b.projected()
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What attention keeps in 16 bits takes room, too: with 16 bits for everything but
// experts only the rest grows.
func TestWeightsTakeTheRoomOfTheirFormats(t *testing.T) {
	of := func(weights Precision) *cost {
		return bound(t, "deepseek-ai/DeepSeek-R1", "b200_sxm", TRTLLM, Quantisation{Weights: weights, Experts: FP4})
	}
	four := of(FP4)
	m := &four.Model
	h, mixed := float64(m.Hidden), float64(m.expertLayers())
	rest := m.lastProjection()*float64(m.Layers) + 3*h*float64(m.FFN)*(float64(m.Layers)-mixed) + 3*h*float64(m.Experts.Shared)*mixed
	got, want := of(BF16).weights()-four.weights(), (BF16.Bytes()-FP4.Bytes())*rest/8
	if math.Abs(got-want) > 1 {
		t.Errorf("16 bits take %.0f bytes more than 4, want %.0f", got, want)
	}
}

func TestFormatsOfExpertsHaveTimesOfTheirOwn(t *testing.T) {
	k := Constants{ExpertLayer: map[Generation]float64{Hopper: 10}, BlockScales: 3, Unpack: 5, Quantise: 7}
	for name, c := range map[string]struct {
		format Precision
		gpu    string
		want   float64 // microseconds
	}{
		"16 bits":                          {BF16, "h200_sxm", 10},
		"8 bits, with scales of blocks":    {FP8, "h200_sxm", 13},
		"MXFP4 where it is unpacked":       {MXFP4, "h200_sxm", 15},
		"MXFP4 where GPUs compute with it": {MXFP4, "b200_sxm", 10},
		"NVFP4":                            {FP4, "b200_sxm", 10},
	} {
		b := bound(t, "Qwen/Qwen3-235B-A22B", c.gpu, VLLM, Quantisation{Weights: BF16, Experts: c.format})
		b.k, b.expertLayer = k, k.ExpertLayer[Hopper]
		if got := 1e6 * b.expertOverhead(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.1f us, want %.1f", name, got, c.want)
		}
	}
}

func TestInputsArePutIntoFourBitsForEachProduct(t *testing.T) {
	s := bound(t, "Qwen/Qwen3-32B", "b200_sxm", VLLM, Quantisation{Weights: FP4})
	with, without := s.k, s.k
	with.Quantise, without.Quantise = 4, 0
	a, b := bind(s.Setup, with, s.kernels), bind(s.Setup, without, s.kernels)
	if got := 1e6 * (a.projections(8) - b.projections(8)); math.Abs(got-8) > 1e-6 {
		t.Errorf("two products take %.3f us longer, want 8", got)
	}
	if got := 1e6 * (a.output(8) - b.output(8)); got != 0 {
		t.Errorf("the product with the vocabulary, of 16 bits, takes %.3f us longer", got)
	}
}

// Few bytes go to all GPUs at once, many in two rounds of a part each.
func TestAllReducesTakeTheShorterWay(t *testing.T) {
	c := bound(t, "Qwen/Qwen3-32B", "h200_sxm", VLLM, Quantisation{})
	start := c.start(8)
	each := func(m float64) float64 { return 2 * m * float64(c.Model.Hidden) / (c.GPU.link(8) * c.k.Reduce) }
	if got, want := c.reduce(1), start+7*each(1); math.Abs(got-want) > 1e-12 {
		t.Errorf("one row takes %.2f us, want %.2f: one round", 1e6*got, 1e6*want)
	}
	if got, want := c.reduce(8192), 2*start+2*7./8*each(8192); math.Abs(got-want) > 1e-12 {
		t.Errorf("8192 rows take %.0f us, want %.0f: two rounds", 1e6*got, 1e6*want)
	}
	last := 0.0
	for m := 1.0; m < 1e5; m *= 1.1 {
		if got := c.reduce(m); got < last {
			t.Errorf("%.0f rows take %.2f us, fewer took %.2f", m, 1e6*got, 1e6*last)
		} else {
			last = got
		}
	}
}

func TestARequestBesideOthersTakesLongerWithEachLayer(t *testing.T) {
	k := Constants{Busy: 10000, BusyLayer: 500, BusyExpert: 200, BusyLatent: 1000, BusyLinear: 3000}
	twice := k
	twice.Request = 2
	for name, c := range map[string]struct {
		constants Constants
		model     Model
		want      float64 // milliseconds
	}{
		"of a request and of its layers":              {k, Model{Layers: 36}, 28},
		"more layers take longer":                     {k, Model{Layers: 80}, 50},
		"those with experts":                          {k, Model{Layers: 80, Experts: &Experts{Dense: 5}}, 65},
		"those with latent attention":                 {k, Model{Layers: 60, Latent: &Latent{}, Experts: &Experts{}}, 112},
		"those with linear attention":                 {k, Model{Layers: 60, Linear: &Linear{Layers: 45}}, 175},
		"as many times as long as was measured":       {twice, Model{Layers: 80}, 100},
		"constants without it have that of a request": {Constants{Busy: 10000}, Model{Layers: 80, Latent: &Latent{}}, 10},
	} {
		b := cost{Setup: Setup{Model: c.model}, k: c.constants}
		if got := 1e3 * b.occupied(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %.3f ms, want %.3f", name, got, c.want)
		}
	}
}

// Tokens of a long prompt that pick what they look at share no keys, so kernels compute for
// as many heads as they always do; those of a short one look at everything.
func TestSparseAttentionOfLongPromptsIsNotSplitBelowWhatKernelsCompute(t *testing.T) {
	ratio := func(model string, tokens float64) float64 {
		took := map[int]float64{}
		for _, gpus := range []int{1, 8} {
			setup := bound(t, model, "h200_sxm", SGLang, Quantisation{}).Setup
			setup.Parallel = Parallel{TP: gpus, PP: 1, DP: 1, EP: 1}
			c := bind(setup, estimator(t, model, "h200_sxm", SGLang, 8).Constants(), Default().Kernels)
			c.kernels.PromptStart, c.kernels.PromptFill = 0, 0
			took[gpus] = c.attended(tokens, 0)
		}
		return took[1] / took[8]
	}
	for name, c := range map[string]struct {
		model  string
		tokens float64
		least  float64
		most   float64
	}{
		"64 heads, long prompts":  {"zai-org/GLM-5", 8192, 1, 1},
		"64 heads, short prompts": {"zai-org/GLM-5", 2048, 4, 8},
		"128 heads, long prompts": {"deepseek-ai/DeepSeek-V3.2", 8192, 1.5, 2},
		"attention to everything": {"deepseek-ai/DeepSeek-R1", 8192, 8, 8},
	} {
		if got := ratio(c.model, c.tokens); got < c.least-1e-6 || got > c.most+1e-6 {
			t.Errorf("%s: eight GPUs are %.2f times as fast as one, want %.1f to %.1f", name, got, c.least, c.most)
		}
	}
}

func TestAnEngineWithoutItsKernelsComputesProductsOfEightBitsMoreSlowly(t *testing.T) {
	for name, c := range map[string]struct {
		weights Precision
		want    float64
	}{
		"8 bits":                        {FP8, 1 / fallback},
		"16 bits have the same kernels": {BF16, 1},
	} {
		own := bound(t, "deepseek-ai/DeepSeek-R1", "b200_sxm", SGLang, Quantisation{Weights: c.weights})
		setup := own.Setup
		setup.Fallback = true
		other := bind(setup, own.k, own.kernels)
		if got := own.dense.speed / other.dense.speed; math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.2f times as slow, want %.2f", name, got, c.want)
		}
	}
}
