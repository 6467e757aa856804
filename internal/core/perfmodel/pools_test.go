package perfmodel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// pools are random deployments of two pools, with loads of several users for each
// decode engine.
func pools(t *testing.T, n int) (all []struct {
	Pools
	Load
}) {
	t.Helper()
	chance := rand.New(rand.NewPCG(3, 4))
	for _, c := range loads(t, n) {
		p := Pools{Prefill: c.Estimator, Decode: c.Estimator, Prefills: 1 + chance.IntN(6), Decodes: 1 + chance.IntN(6)}
		c.Load.Concurrency *= p.Decodes
		all = append(all, struct {
			Pools
			Load
		}{p, c.Load})
	}
	return all
}

func serve(t *testing.T, p Pools, l Load) Serving {
	t.Helper()
	s, err := p.Serve(l)
	if err != nil {
		t.Fatalf("%+v: %v", l, err)
	}
	return s
}

// A loop is closed: whoever is not waiting for the first token is decoding.
func TestEveryUserOfALoopIsAtOnePool(t *testing.T) {
	for _, c := range pools(t, 500) {
		s := serve(t, c.Pools, c.Load)
		there := s.Requests * (s.FirstToken.Value.Seconds() + float64(max(1, c.Output-1))*s.PerToken.Value.Seconds())
		if math.Abs(there/float64(c.Concurrency)-1) > 0.01 {
			t.Errorf("%d prefill, %d decode, %+v: %.2f users are there", c.Prefills, c.Decodes, c.Load, there)
		}
	}
}

func TestNoPoolServesMoreThanItCan(t *testing.T) {
	for _, c := range pools(t, 500) {
		s := serve(t, c.Pools, c.Load)
		if most := float64(c.Prefills) * c.Prefill.PrefillRate(c.Load); s.Requests > most*1.001 {
			t.Errorf("%d prefill engines compute %.3g prompts a second, and %.3g requests are served", c.Prefills, most, s.Requests)
		}
		if room := c.Decode.MaxConcurrency(c.Input, c.Output) * c.Decodes; s.Requests*float64(max(1, c.Output-1))*s.PerToken.Value.Seconds() > float64(room)*1.01 {
			t.Errorf("%d decode engines hold %d requests, and more are decoding", c.Decodes, room)
		}
	}
}

func TestMorePrefillEnginesNeverServeLess(t *testing.T) {
	for _, c := range pools(t, 500) {
		few := serve(t, c.Pools, c.Load)
		c.Prefills++
		more := serve(t, c.Pools, c.Load)
		if more.Requests < few.Requests*0.999 || more.FirstToken.Value.Seconds() > few.FirstToken.Value.Seconds()*1.01 {
			t.Errorf("%+v: with %d prefill engines %.4g/s and %v, with one less %.4g/s and %v",
				c.Load, c.Prefills, more.Requests, more.FirstToken.Value, few.Requests, few.FirstToken.Value)
		}
	}
}

// Where the ratio is the matching one, prefill engines are about all busy; with many
// more, next to nothing is gained, and with a third of them the rate is that of prefill.
func TestPoolsThatMatchWaitForNeither(t *testing.T) {
	catalog := Default()
	model, err := catalog.Model("Qwen/Qwen3-32B")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := catalog.Estimator(Setup{Model: model, GPU: gpu, Engine: TRTLLM, Parallel: Parallel{TP: 2}})
	if err != nil {
		t.Fatal(err)
	}
	each := Load{Concurrency: 32, Input: 4000, Output: 300}
	p := Pools{Prefill: e, Decode: e, Prefills: 1, Decodes: 12}
	matching := p.Matching(each) * float64(p.Decodes)
	if matching < 3 {
		t.Fatalf("%.2f prefill engines match %d decode engines: too few to tell", matching, p.Decodes)
	}
	all := each
	all.Concurrency *= p.Decodes
	rate := func(prefills float64) Serving {
		p.Prefills = int(math.Ceil(prefills))
		return serve(t, p, all)
	}
	third, match, plenty := rate(matching/3), rate(matching), rate(4*matching)
	if gained := plenty.Requests / match.Requests; gained > 1.15 {
		t.Errorf("four times as many prefill engines as match serve %.2f times as much", gained)
	}
	p.Prefills = int(math.Ceil(matching / 3))
	if most := float64(p.Prefills) * e.PrefillRate(all); third.Requests < 0.95*most {
		t.Errorf("too few prefill engines serve %.3g/s of the %.3g/s that they can", third.Requests, most)
	}
	if third.PerToken.Value >= plenty.PerToken.Value || third.FirstToken.Value <= plenty.FirstToken.Value {
		t.Errorf("behind a narrow prefill pool tokens take %v and first ones %v, otherwise %v and %v",
			third.PerToken.Value, third.FirstToken.Value, plenty.PerToken.Value, plenty.FirstToken.Value)
	}
}

// deepseek is a prefill or decode engine of an H200 node or of several.
func deepseek(t *testing.T, p Parallel, places int) *Estimator {
	t.Helper()
	catalog := Default()
	model, err := catalog.Model("deepseek-ai/DeepSeek-V3")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h200_sxm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := catalog.Estimator(Setup{Model: model, GPU: gpu, Engine: TRTLLM, Parallel: p, Pool: true, MaxSequences: places})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Ranks without a prompt compute nothing, and their GPUs take over experts' work: one prompt
// is computed outside of experts by one GPU, and eight take much less than eight times that.
func TestOnePromptDoesNotTakeTheTimeOfOneOnEachAttentionRank(t *testing.T) {
	decode := deepseek(t, Parallel{TP: 8, EP: 8}, 0)
	first := func(prefill *Estimator) float64 {
		p := Pools{Prefill: prefill, Decode: decode, Prefills: 1, Decodes: 1}
		return serve(t, p, Load{Concurrency: 1, Input: 8192, Output: 1024}).FirstToken.Value.Seconds()
	}
	ranks, tensor := deepseek(t, Parallel{DP: 8, EP: 8}, 0), deepseek(t, Parallel{TP: 8, EP: 8}, 0)
	if one, other := first(ranks), first(tensor); one > 3*other {
		t.Errorf("one prompt takes %.3f s on attention ranks and %.3f on tensor-parallel ones", one, other)
	}
	load := Load{Input: 8192, Output: 1024}
	alone := ranks.FirstToken(8192, 0).Value.Seconds() - ranks.Overhead().Seconds()
	if rate := ranks.PrefillRate(load) * alone; rate < 2 || rate > 8 {
		t.Errorf("eight ranks compute %.1f prompts in the time of one", rate)
	}
}

// Short prompts share a pass that reads the weights once.
func TestShortPromptsShareAPass(t *testing.T) {
	e := deepseek(t, Parallel{TP: 8, EP: 8}, 0)
	short, long := e.PrefillRate(Load{Input: 512, Output: 2}), e.PrefillRate(Load{Input: 8192, Output: 2})
	alone := 1 / (e.FirstToken(512, 0).Value.Seconds() - e.Overhead().Seconds())
	if short < 1.5*alone || short < 16*long {
		t.Errorf("%.1f prompts of 512 tokens a second, %.1f of 8192, and %.1f one at a time", short, long, alone)
	}
}

func TestStaysGetLongerWithTheRate(t *testing.T) {
	for _, parallel := range []Parallel{{TP: 8, EP: 8}, {DP: 8, EP: 8}} {
		for _, input := range []int{256, 1024, 8192, 30000} {
			p := deepseek(t, parallel, 0).c.prefiller(Load{Input: input, Output: 2})
			last := 0.0
			for i := range 100 {
				stay := p.stay(p.most()*float64(i)/100, 2)
				if stay < last*0.999 || stay < p.seconds[0] {
					t.Errorf("%v, %d tokens: %.4f s at %d %% of the rate, %.4f at less", parallel, input, stay, i, last)
				}
				last = stay
			}
		}
	}
}

// Who finds no place in the decode pool waits for the first token, and no more decode at a
// time than there are places.
func TestUsersBeyondTheDecodePoolsPlacesWait(t *testing.T) {
	load := Load{Concurrency: 48, Input: 1024, Output: 1024}
	at := func(places int) Serving {
		return serve(t, Pools{Prefill: deepseek(t, Parallel{DP: 8, EP: 8}, 0), Decode: deepseek(t, Parallel{TP: 8, EP: 8}, places), Prefills: 1, Decodes: 4}, load)
	}
	few, enough, plenty := at(8), at(12), at(64)
	answer := func(s Serving) float64 { return 1023 * s.PerToken.Value.Seconds() }
	if wait := few.FirstToken.Value.Seconds() / answer(few); math.Abs(wait-0.5) > 0.05 {
		t.Errorf("48 users of 32 places wait for %.2f of an answer, want about half", wait)
	}
	if few.PerToken.Value >= plenty.PerToken.Value {
		t.Errorf("32 decode with %v a token, 48 with %v", few.PerToken.Value, plenty.PerToken.Value)
	}
	if more := enough.FirstToken.Value - plenty.FirstToken.Value; more <= 0 || more.Seconds() > 0.1*answer(enough) {
		t.Errorf("first tokens take %v longer where every place is taken", more)
	}
}

// A token is sent to GPUs that have experts which it chose: of 32 GPUs to at most 8.
func TestWholeExpertsAreSentTheirTokens(t *testing.T) {
	many, few := deepseek(t, Parallel{DP: 32, EP: 32}, 0), deepseek(t, Parallel{DP: 32, EP: 1}, 0)
	if whole, sliced := many.c.among(32).experts(128), few.c.among(32).experts(128); whole >= sliced {
		t.Errorf("whole experts take %.2g s a layer, slices of all %.2g", whole, sliced)
	}
}

// Where experts are whole, what a rank sends is what takes the time: alone it sends as many
// tokens as each receives of all. Slices are sent all tokens, of one rank an eighth.
func TestARankThatIsAloneSendsItsTokensAsFastAsOthersWould(t *testing.T) {
	for name, c := range map[string]struct {
		parallel Parallel
		want     float64 // of what handing over takes for all ranks
	}{
		"whole experts": {Parallel{DP: 8, EP: 8}, 1},
		"slices":        {Parallel{DP: 8}, 1. / 8},
	} {
		took := func(ranks, exchange float64) float64 {
			e := deepseek(t, c.parallel, 0).c
			e.k.Exchange, e.k.ExchangeStart = exchange, 0
			return e.among(ranks).experts(8192)
		}
		handing := func(ranks float64) float64 { return took(ranks, 0.25) - took(ranks, 0.5) }
		if got := handing(1) / handing(8); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: one rank takes %.3f of the time of eight, want %.3f", name, got, c.want)
		}
	}
}

// Launches are hidden behind long prompts, and are the time of short ones.
func TestPassesTakeAsLongAsTheyAreLaunchedOrComputed(t *testing.T) {
	e := deepseek(t, Parallel{TP: 8, EP: 8}, 0).c
	launched := e.occupied()
	for tokens, want := range map[int]float64{16: launched, 60000: e.prefill(1, 60000, 0) / e.k.Prefilling} {
		if got := e.prefiller(Load{Input: tokens, Output: 2}).seconds[0]; got < want || got > 1.15*want {
			t.Errorf("a pass of %d tokens takes %.4f s, want about %.4f", tokens, got, want)
		}
	}
}

// A prompt has a place until its cache was handed over, so an engine with few places waits.
func TestPrefillEnginesWaitForPlaces(t *testing.T) {
	load := Load{Input: 8192, Output: 2}
	rate := func(places int) float64 { return deepseek(t, Parallel{DP: 8, EP: 8}, places).PrefillRate(load) }
	plenty := deepseek(t, Parallel{DP: 8, EP: 8}, 0).c
	pass := plenty.prefiller(load).seconds[2]
	if got, want := rate(1), 8/(pass+plenty.k.handover()); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("with a place for each rank %.3f prompts a second, want %.3f", got, want)
	}
	if got, want := rate(64), 8/pass; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("with enough of them %.3f prompts a second, want %.3f", got, want)
	}
}
