package original

import (
	"encoding/json"
	"iter"
	"math"
	"os"
	"testing"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

// golden is what SciPy makes of profiles, by testdata/golden.py.
type golden struct {
	Profiles []struct {
		Name, Layout      string
		Arguments         [4]int // tokens of cache and context, granularity, ranks
		Points            int
		Token, Throughput sampled
	}
	Prompts struct {
		At         []float64
		FirstToken []float64 `json:"first_token"`
		Throughput []float64
	}
}

// sampled is a table's cells of some contexts, by usage each, and its sums over ten contexts
// each, in which every cell counts.
type sampled struct{ Cells, Sums []float64 }

// wobble is noise of a per cent that Python makes as well.
func wobble(i int) float64 { return 1 + float64(7919*i%101-50)/5000 }

// swept lays a profile out as the original's profiler does, regular so that each four places
// are on a circle. Both yield usages of the cache, contexts and sequences.
func swept(cache, context, granularity, ranks int) iter.Seq[[3]float64] {
	return func(yield func([3]float64) bool) {
		for prompt := 100; prompt < context-500; prompt += (context - 500) / granularity {
			most := min(2000, cache/(prompt+500))
			step := max(ranks, (most-ranks)/granularity/ranks*ranks)
			for n := ranks; n <= most; n += step {
				if !yield([3]float64{float64((prompt+250)*n) / float64(cache), float64(prompt + 250), float64(n) / float64(ranks)}) {
					return
				}
			}
		}
	}
}

func regular(cache, context, granularity, _ int) iter.Seq[[3]float64] {
	return func(yield func([3]float64) bool) {
		for i := range granularity {
			for j := range granularity {
				usage, length := float64(j+1)/float64(granularity), float64(350+i*(context/granularity))
				if !yield([3]float64{usage, length, usage * float64(cache) / length}) {
					return
				}
			}
		}
	}
}

// measured is a profile with such places.
func measured(places iter.Seq[[3]float64]) capacity.Profile {
	p := capacity.Profile{CacheTokens: 1}
	for at := range places {
		usage, n := at[0], at[2]
		token := (4.3 + 0.02*n + 30*usage) * wobble(len(p.Usage))
		p.Usage, p.Context, p.Token = append(p.Usage, usage), append(p.Context, at[1]), append(p.Token, token)
		p.OutputThroughput = append(p.OutputThroughput, 500*n/(0.002*n+0.5*token))
	}
	for prompt := 100; prompt < 16384-512; prompt += 985 {
		n := float64(prompt)
		first := (15 + 0.02*n + 5e-7*n*n) * wobble(len(p.Input))
		p.Input, p.FirstToken, p.InputThroughput = append(p.Input, n), append(p.FirstToken, first), append(p.InputThroughput, n/first*1000)
	}
	return p
}

func read(t *testing.T) golden {
	t.Helper()
	body, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(body, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTablesAreThoseOfSciPy(t *testing.T) {
	profiles := read(t).Profiles
	if len(profiles) == 0 {
		t.Fatal("no profile")
	}
	for _, x := range profiles {
		t.Run(x.Name, func(t *testing.T) {
			layout := swept
			if x.Layout == "regular" {
				layout = regular
			}
			p := measured(layout(x.Arguments[0], x.Arguments[1], x.Arguments[2], x.Arguments[3]))
			if len(p.Usage) != x.Points {
				t.Fatalf("%d points, Python made %d", len(p.Usage), x.Points)
			}
			got, err := NewProfile(p)
			if err != nil {
				t.Fatal(err)
			}
			t.Run("times", func(t *testing.T) { compare(t, &got.token, x.Token) })
			t.Run("throughputs", func(t *testing.T) { compare(t, &got.throughput, x.Throughput) })
		})
	}
}

func compare(t *testing.T, got *[cells][cells]float64, want sampled) {
	t.Helper()
	at := []int{0, 33, 66, 99}
	for k, v := range want.Cells {
		i, j := at[k%len(at)], at[k/len(at)]
		if is := got[i][j]; !alike(is, v, 1e-8) {
			t.Errorf("%v in cell %d, %d, want %v", is, i, j, v)
		}
	}
	for k, v := range want.Sums {
		sum := 0.0
		for i := range cells {
			for j := range 10 {
				sum += got[i][10*k+j]
			}
		}
		if !alike(sum, v, 1e-8) {
			t.Errorf("contexts from %d are %v together, want %v", 10*k, sum, v)
		}
	}
}

func TestPromptsAreThoseOfSciPy(t *testing.T) {
	want := read(t).Prompts
	got, err := NewProfile(measured(swept(945029, 16384, 6, 1)))
	if err != nil || len(want.At) == 0 {
		t.Fatal(err, want)
	}
	for i, n := range want.At {
		if is := got.FirstToken(n); !alike(is, want.FirstToken[i], 1e-9) {
			t.Errorf("%v tokens: %v ms, want %v", n, is, want.FirstToken[i])
		}
		if is := got.PrefillThroughput(n); !alike(is, want.Throughput[i], 1e-9) {
			t.Errorf("%v tokens: %v tokens/s/GPU, want %v", n, is, want.Throughput[i])
		}
	}
}

// alike leaves what rounding may do on another machine.
func alike(is, want, share float64) bool { return math.Abs(is-want) <= share*math.Abs(want) }
