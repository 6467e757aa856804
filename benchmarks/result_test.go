package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sample(graphs int, create, bare time.Duration, writes, idle int) result {
	return result{scale: scale{graphs: graphs}, Posted: bareResult{Objects: 10 * graphs, Wall: bare}, Phases: []phaseResult{
		{Name: "create", Wall: create, CPU: time.Duration(graphs) * time.Millisecond, Peak: 100 << 20, Requests: requests{"patch": writes, "list": 7}},
		{Name: "idle", Requests: requests{"patch status": idle}},
	}}
}

// later is a run whose operator has grown since it created.
func later(r result, peak int64) result {
	r.Phases[1].Peak = peak
	return r
}

func TestARunOutsideItsRangeFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "range.json")
	if err := os.WriteFile(path, []byte(`{"ratio": 2, "writesPerGraph": 20, "idleWrites": 0, "peakMiBAt1000": 250, "exponent": 1.1, "seen": {"200": [1.3, 1.1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		results []result
		problem string
	}{
		"within":                   {[]result{sample(100, 15*time.Second, 10*time.Second, 1900, 0)}, ""},
		"too slow":                 {[]result{sample(100, 21*time.Second, 10*time.Second, 1900, 0)}, "times the bare client"},
		"too many writes":          {[]result{sample(100, 15*time.Second, 10*time.Second, 2100, 0)}, "writes a graph"},
		"too large after a while":  {[]result{later(sample(100, 15*time.Second, 10*time.Second, 1900, 0), 300<<20)}, "MiB"},
		"writes when idle":         {[]result{sample(100, 15*time.Second, 10*time.Second, 1900, 1)}, "phase idle"},
		"much slower than before":  {[]result{sample(200, 15*time.Second, 10*time.Second, 1900, 0)}, "at most 1.44"},
		"grows more than linearly": {[]result{sample(100, time.Second, time.Second, 1000, 0), sample(1000, 20*time.Second, 10*time.Second, 10000, 0)}, "time grows"},
		"grows as the API server":  {[]result{sample(100, time.Second, time.Second, 1000, 0), sample(1000, 20*time.Second, 20*time.Second, 10000, 0)}, ""},
		"does more than linearly":  {[]result{sample(100, time.Second, time.Second, 1000, 0), sample(1000, 20*time.Second, 20*time.Second, 20000, 0)}, "the operator does"},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(path, c.results)
			if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("want a problem with %q, got %v", c.problem, err)
			}
		})
	}
}

func TestQuantileIsOfThePhaseAlone(t *testing.T) {
	before := map[float64]float64{0.1: 90, 1: 100, math.Inf(1): 100}
	after := map[float64]float64{0.1: 90, 1: 200, math.Inf(1): 200}
	if got := quantile(before, after, 0.5); got != 1 {
		t.Errorf("the median is at most %v", got)
	}
}

func TestWhatTheOperatorTakesLongerForIsTold(t *testing.T) {
	const told = "Of the 9.0 s more that the operator takes, about 2.0 s are the price of that, 6.0 s the price of further writes, and 1.0 s are left"
	r := sample(100, 19*time.Second, 10*time.Second, 1400, 0)
	r.Patched = bareResult{Objects: 1000, Wall: 12 * time.Second}
	if got := r.comparison(); !strings.Contains(got, told) {
		t.Errorf("%q does not hold %q", got, told)
	}
	r.Phases[0].Wall = 11 * time.Second
	if got := r.comparison(); strings.Contains(got, "Of the") {
		t.Errorf("shares that cannot be: %q", got)
	}
}
