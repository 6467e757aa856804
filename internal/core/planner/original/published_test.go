package original

import (
	"math"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// What is known of the published profile of a model of 8 billion parameters on one H200: its
// cache, milliseconds to the first token of prompts of 100, 1117 and so on, and milliseconds a
// token of so many sequences of 2997.
const tokens = 945029

var (
	measuredTTFT = []float64{
		19.525, 38.494, 49.968, 63.215, 87.342, 104.894, 123.237, 143.295, 171.029, 194.532, 232.073, 240.384, 262.46, 296.155, 313.34, 354.089, 375.483,
	}
	measuredSequences = []float64{1, 49, 97, 145, 193, 241}
	measuredITL       = []float64{4.43, 9.94, 15.48, 22.13, 26.76, 31.80}
)

// along is the measured time at a usage of the cache, straight between what was measured and on.
func along(usage float64) float64 {
	at := func(i int) float64 { return measuredSequences[i] * 2997 / tokens }
	i := 1
	for i < len(measuredITL)-1 && usage > at(i) {
		i++
	}
	share := max(0, (usage-at(i-1))/(at(i)-at(i-1)))
	return measuredITL[i-1] + share*(measuredITL[i]-measuredITL[i-1])
}

// published is that profile as far as it is known. Its prompts are. Of decode one context is,
// with the numbers of sequences that a sweep of 16,384 tokens with a granularity of 6 has there,
// so the other contexts are that sweep's. Their times are the measured ones at the same usage of
// the cache, times what capacity.H200, the model of that profile, has there over what it has at
// 2997: more sequences take longer than longer ones. Throughput is a token of each in that time.
func published() capacity.Profile {
	p, m := capacity.Profile{CacheTokens: tokens}, capacity.H200()
	for i, ms := range measuredTTFT {
		input := 100 + 1017*float64(i)
		p.Input, p.FirstToken, p.InputThroughput = append(p.Input, input), append(p.FirstToken, ms), append(p.InputThroughput, input/ms*1e3)
	}
	const output, granularity = 500, 6
	for input := 100; input < 16384-output; input += (16384 - output) / granularity {
		context, most := float64(input+output/2), min(2000, tokens/(input+output))
		for n := 1; n < most; n += (most - 1) / granularity {
			usage := float64(n) * context / tokens
			token := along(usage) * m.Token(float64(n), context) / m.Token(usage*tokens/2997, 2997)
			p.Usage, p.Context = append(p.Usage, usage), append(p.Context, context)
			p.Token, p.OutputThroughput = append(p.Token, token), append(p.OutputThroughput, float64(n)/token*1e3)
		}
	}
	return p
}

// TestThePublishedProfileGivesItsThroughputs: of 3000 tokens and 300 at 10 ms each, 49,481
// tokens/s/GPU of prefill, and of decode 4,556, at 9.70 ms and 16.16 % of the cache. Those are
// 7 % fewer than sequences over their time. Throughput falls as contexts grow, steeply from 350
// and hardly at 5644, and where the surface bends between them it is too low.
func TestThePublishedProfileGivesItsThroughputs(t *testing.T) {
	p, err := NewProfile(published())
	if err != nil {
		t.Fatal(err)
	}
	if is := p.PrefillThroughput(3000); math.Abs(is-49481) > 0.5 {
		t.Errorf("prefill: %.1f tokens/s/GPU, published are 49481", is)
	}
	const context = 3000 + 300/2
	const cell = 16 // of 99: 16.16 %
	if is := p.token[cell][p.column(context)]; !alike(is, 9.70, 0.05) {
		t.Errorf("decode: %.2f ms, published are 9.70", is)
	}
	if is := p.BestThroughput(10, context); !alike(is, 4556, 0.05) || is != p.throughput[cell][p.column(context)] {
		t.Errorf("decode: %.0f tokens/s/GPU, published are 4556, in cell %d", is, cell)
	}
}
