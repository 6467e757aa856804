package trace

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRead(t *testing.T) {
	const azure, burst = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
	for _, x := range []struct {
		rule, text string
		want       Trace
	}{
		{"dates of seven decimals count from the first", azure + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:47.1805900,396,109\n", Trace{{0, 374, 44}, {0.5, 396, 109}}},
		{"dates with a zone are moments", azure + "2024-05-10 00:00:00.5+00:00,10,20\n2024-05-10T02:00:01.5+02:00,11,21\n", Trace{{0, 10, 20}, {1, 11, 21}}},
		{"a byte order mark is no part of a name", "\ufeff" + azure + "3,10,20\n", Trace{{0, 10, 20}}},
		{"columns are known by name, in any order and case", "generatedtokens,Other,timestamp,ContextTokens\n20,x,3,10\n", Trace{{0, 10, 20}}},
		{"a request that failed is none", burst + "5,ChatGPT,472,18,490,x\n7,ChatGPT,472,0,472,x\n45,GPT-4,1087,230,1317,x\n", Trace{{0, 472, 18}, {40, 1087, 230}}},
		{"lines are in milliseconds", "{\"timestamp\": 1000, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [1]}\n{\"timestamp\": 31535, \"input_length\": 672, \"output_length\": 3}\n", Trace{{0, 6955, 52}, {30.535, 672, 3}}},
		{"requests are by time", azure + "9,1,2\n5,3,4\n", Trace{{0, 3, 4}, {4, 1, 2}}},
		{"requests of one moment keep their order", azure + "5,9,2\n5,3,4\n", Trace{{0, 9, 2}, {0, 3, 4}}},
		{"there is a prompt and an answer of a first and a last token", azure + "5,0,0\n", Trace{{0, 1, 2}}},
		{"a length that no model has is cut", azure + "5,2000000000,20\n", Trace{{0, 1 << 24, 20}}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			got, err := Read(strings.NewReader(x.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(x.want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for rule, text := range map[string]string{
		"nothing":                 "",
		"no request":              azure,
		"columns of nobody":       "a,b,c\n1,2,3\n",
		"a row that is cut off":   azure + "5,3\n",
		"a time that is none":     azure + "noon,3,4\n",
		"a length that is none":   azure + "5,many,4\n",
		"an answer that is none":  azure + "5,4,\n",
		"a line without a time":   "{\"input_length\": 3}\n",
		"a line that is no JSON":  "{\"timestamp\": 1}\n{",
		"a length beyond numbers": azure + "5,99999999999999999999,4\n",
		"a time beyond numbers":   azure + "NaN,3,4\n5,3,4\n",
		"a time without an end":   "{\"timestamp\": 1}\n{\"timestamp\": 1e400}\n",
		"infinity":                azure + "+Inf,3,4\n5,3,4\n",
	} {
		t.Run(rule+" is refused", func(t *testing.T) {
			if got, err := Read(strings.NewReader(text)); err == nil {
				t.Errorf("it is read as %v", got)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	chance := func() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
	one := Trace{{0, 10, 20}, {4, 11, 21}, {10, 12, 22}}
	for _, x := range []struct {
		rule      string
		got, want Trace
	}{
		{"a part begins anew, its end not included", one.Between(4, 10), Trace{{0, 11, 21}}},
		{"a part that nobody asked in is empty", one.Between(5, 9), Trace{}},
		{"time is stretched", one.Stretch(2), Trace{{0, 10, 20}, {8, 11, 21}, {20, 12, 22}}},
		{"a trace is repeated until a time", one.Repeat(15), Trace{{0, 10, 20}, {4, 11, 21}, {10, 12, 22}, {10, 10, 20}, {14, 11, 21}}},
		{"a single request is not repeated: it has no length", Trace{{0, 1, 2}}.Repeat(100), Trace{{0, 1, 2}}},
		{"a whole multiple without a spread is copies", Trace{{1, 5, 6}}.Multiply(2, 0, chance()), Trace{{1, 5, 6}, {1, 5, 6}}},
		{"no rate, no request", Poisson(0).in(10, chance()), nil},
	} {
		t.Run(x.rule, func(t *testing.T) {
			if diff := cmp.Diff(x.want, x.got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if diff := cmp.Diff(Trace{{0, 10, 20}, {4, 11, 21}, {10, 12, 22}}, one); diff != "" {
		t.Errorf("a change leaves the trace as it was: %s", diff)
	}
}

func (s Shape) in(length float64, chance *rand.Rand) Trace { return Generate(s, length, 1, 2, chance) }

func TestRates(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	many := Poisson(20).in(1000, chance)
	tenfold := many.Multiply(2.5, 20, chance)
	step := Step(2, 40, 100, 200).in(300, chance)
	sine := Sine(5, 45, 600).in(600, chance)
	count := func(t Trace, from, to float64) float64 { return float64(len(t.Between(from, to))) / (to - from) }
	for _, x := range []struct {
		rule      string
		got, want float64
	}{
		{"a constant rate is kept", many.Rate(), 20},
		{"a multiple with a rest has that many in the mean", tenfold.Rate() * tenfold.Length() / 1000, 50},
		{"copies are spread as far as told", tenfold.Length(), 1020},
		{"a step is low before", count(step, 0, 100), 2},
		{"a step is high in between", count(step, 100, 200), 40},
		{"a step is low after", count(step, 200, 300), 2},
		{"a sine begins low", count(sine, 0, 40), 5.6},
		{"a sine is high in its middle", count(sine, 280, 320), 44.6},
	} {
		if math.Abs(x.got-x.want) > 4*math.Sqrt(x.want/100)+0.02*x.want {
			t.Errorf("%s: %.2f, want about %.2f", x.rule, x.got, x.want)
		}
	}
	for i := 1; i < len(tenfold); i++ {
		if tenfold[i].At < tenfold[i-1].At {
			t.Fatal("copies are not by time")
		}
	}
	input, output := Trace{{0, 10, 20}, {1, 20, 40}}.Means()
	if input != 15 || output != 30 {
		t.Errorf("means are %v and %v", input, output)
	}
	if none := (Trace{}); none.Rate() != 0 || none.Length() != 0 {
		t.Error("nothing has a rate")
	}
}
