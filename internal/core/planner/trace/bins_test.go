package trace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBinsAreATrace(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 1))
	b := Bins{Tick: 5, Bins: []Bin{{At: 5, Requests: 50}, {At: 10, Requests: 100, Input: 2000, Output: 200}, {At: 60, Requests: 25.5, Input: 3000, Output: 300}, {At: 65, Requests: 10}}}
	got, err := b.Trace(chance)
	if err != nil {
		t.Fatal(err)
	}
	of := func(input, output int32) int {
		n := 0
		for _, r := range got {
			if r.Input == input && r.Output == output {
				n++
			}
		}
		return n
	}
	if n := of(2000, 200); n != 150 {
		t.Errorf("%d have the first lengths that were seen", n)
	}
	if n := of(3000, 300); n < 35 || n > 36 {
		t.Errorf("%d have the last ones", n)
	}
	// The first, which is at 0, came within the first 5 s.
	if between := got.Between(10, 50); len(between) > 0 || got.Length() < 55 || got.Length() > 65 {
		t.Errorf("%d between bins, %v s long", len(between), got.Length())
	}
}

func TestBinsThatAreNone(t *testing.T) {
	good := Bin{At: 5, Requests: 1, Input: 9, Output: 9}
	for rule, b := range map[string]Bins{
		"nothing":                  {Tick: 5},
		"no length":                {Tick: 5, Bins: []Bin{{At: 5, Requests: 3}}},
		"no tick":                  {Bins: []Bin{good}},
		"more than anybody serves": {Tick: 5, Bins: []Bin{good, {At: 10, Requests: 1e12}}},
		"fewer than none":          {Tick: 5, Bins: []Bin{good, {At: 10, Requests: -1}}},
		"no number":                {Tick: 5, Bins: []Bin{good, {At: 10, Requests: math.NaN()}}},
		"one before another":       {Tick: 5, Bins: []Bin{good, {At: 1, Requests: 1}}},
		"longer than a month":      {Tick: 5, Bins: []Bin{good, {At: 32 * day, Requests: 1}}},
		"longer than time":         {Tick: 5, Bins: []Bin{good, {At: 1e300, Requests: 1}}},
		"as long as numbers go":    {Tick: 5, Bins: []Bin{{At: -math.MaxFloat64, Requests: 1, Input: 9, Output: 9}, {At: math.MaxFloat64, Requests: 1}}},
		"more than are kept":       {Tick: 5, Bins: slices.Repeat([]Bin{good}, Kept+1)},
	} {
		if got, err := b.Trace(rand.New(rand.NewPCG(1, 1))); err == nil {
			t.Errorf("%s: %d requests", rule, len(got))
		}
	}
}

// TestBinsOfTheLastDayAreKept: where requests are rare, as many bins are of weeks.
func TestBinsOfTheLastDayAreKept(t *testing.T) {
	var b Bins
	for minute := range 3 * day / 60 {
		b.Add(Bin{At: 60 * float64(minute), Requests: 1})
	}
	last := b.Bins[len(b.Bins)-1].At
	if diff := cmp.Diff([]float64{last - day, 3*day - 60, day/60 + 1}, []float64{b.Bins[0].At, last, float64(len(b.Bins))}); diff != "" {
		t.Error(diff)
	}
	b.Add(Bin{At: last + day/2})
	if b.Bins[0].At != last-day/2 {
		t.Errorf("after half a day without requests the first is of %v", b.Bins[0].At)
	}
}

func TestADayOfBinsIsKept(t *testing.T) {
	var b Bins
	for _, x := range []Bin{{At: 1, Requests: 0}, {At: 2, Requests: math.NaN()}, {At: 3.14159, Requests: 2.71828, Input: math.NaN(), Output: math.Inf(1)}, {At: 4, Requests: 1, Input: 2000.4, Output: 199.6}} {
		b.Add(x)
	}
	if diff := cmp.Diff([]Bin{{At: 3.1, Requests: 2.72}, {At: 4, Requests: 1, Input: 2000, Output: 200}}, b.Bins); diff != "" {
		t.Error(diff)
	}
	for i := range 2 * Kept {
		b.Add(Bin{At: float64(i), Requests: 1})
	}
	if n := len(b.Bins); n != Kept || b.Bins[n-1].At != 2*Kept-1 {
		t.Errorf("%d are kept, the last of %v", n, b.Bins[n-1].At)
	}
}
