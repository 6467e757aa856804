// Package interpolation lays out the points at which an engine is timed for the
// planner and the mock engine, and writes them in the two forms those read: JSON
// in a ConfigMap, and NumPy archives. Where the times come from is the caller's.
package interpolation

import (
	"encoding/json"
	"fmt"
)

// The planner's grids start here and leave this much of the context free.
const (
	firstLength   = 100
	prefillMargin = 512
	decodeOutput  = 500
	maxConcurrent = 2000
)

// Prefill is the time to first token by prompt length. Times are milliseconds.
type Prefill struct {
	ISL        []float64 `json:"prefill_isl"`
	TTFT       []float64 `json:"prefill_ttft"`
	Throughput []float64 `json:"prefill_thpt_per_gpu"`
}

// Decode is the time between tokens by cache usage and context length; the four
// lists go together.
type Decode struct {
	Usage      []float64 `json:"x_kv_usage"`
	Context    []float64 `json:"y_context_length"`
	ITL        []float64 `json:"z_itl"`
	Throughput []float64 `json:"z_thpt_per_gpu"`
	MaxTokens  int       `json:"max_kv_tokens"`
}

// Data is a profile.
type Data struct {
	Prefill Prefill
	Decode  Decode
}

// Lengths are the prompt lengths to time prefill at.
func Lengths(context, points int) []int {
	last := context - prefillMargin
	step := max(1, (last-firstLength)/max(1, points))
	var all []int
	for n := firstLength; n < last; n += step {
		all = append(all, n)
	}
	// A short context still needs three points to interpolate between.
	if len(all) < 3 {
		top := max(3, context)
		all = []int{max(1, top/4), max(2, top/2), top}
	}
	return all
}

// Load is a place of the decode grid: so many sequences, so long on average.
type Load struct {
	Prompt, Context, Sequences int
}

// Loads are the places to time decode at, on an engine whose cache holds
// maxTokens over its attention ranks.
func Loads(context, points, maxTokens, ranks int) []Load {
	var all []Load
	output := min(decodeOutput, max(1, context/2))
	step := max(1, (context-output)/max(1, points))
	for prompt := min(firstLength, max(1, context/4)); ; prompt += step {
		for _, n := range sequences(maxTokens/(prompt+output), points, ranks) {
			all = append(all, Load{Prompt: prompt, Context: prompt + output/2, Sequences: n})
		}
		if prompt+step >= context-output {
			return all
		}
	}
}

// sequences spreads points from one per rank to the most that fit, in multiples
// of the ranks, so that every rank has the same work.
func sequences(most, points, ranks int) []int {
	ranks = max(1, ranks)
	most = min(most, maxConcurrent) / ranks * ranks
	if most < ranks {
		return nil
	}
	steps := most / ranks
	points = min(max(2, points), steps)
	var all []int
	for i := range points {
		n := 1
		if points > 1 {
			n += (steps - 1) * i / (points - 1)
		}
		all = append(all, n*ranks)
	}
	return all
}

// Timer says how long an engine takes, in milliseconds, and on how many GPUs.
type Timer struct {
	Prefill func(tokens int) float64
	Decode  func(sequences, context int) float64
	// PrefillGPUs and DecodeGPUs are those of one engine; Ranks are the attention
	// ranks, each of which takes prompts of its own.
	PrefillGPUs, PrefillRanks int
	DecodeGPUs, DecodeRanks   int
	// MaxTokens is what the decode engine's cache holds, all ranks together.
	MaxTokens int
	Context   int
}

// Tabulate times an engine over both grids.
func Tabulate(t Timer, prefillPoints, decodePoints int) (Data, error) {
	d := Data{Decode: Decode{MaxTokens: t.MaxTokens}}
	for _, n := range Lengths(t.Context, prefillPoints) {
		ms := t.Prefill(n)
		d.Prefill.ISL = append(d.Prefill.ISL, float64(n))
		d.Prefill.TTFT = append(d.Prefill.TTFT, ms)
		d.Prefill.Throughput = append(d.Prefill.Throughput, float64(n)/ms*1000/float64(t.PrefillGPUs)*float64(max(1, t.PrefillRanks)))
	}
	for _, l := range Loads(t.Context, decodePoints, t.MaxTokens, t.DecodeRanks) {
		ms := t.Decode(l.Sequences, l.Context)
		d.Decode.Usage = append(d.Decode.Usage, float64(l.Context*l.Sequences)/float64(t.MaxTokens))
		d.Decode.Context = append(d.Decode.Context, float64(l.Context))
		d.Decode.ITL = append(d.Decode.ITL, ms)
		d.Decode.Throughput = append(d.Decode.Throughput, float64(l.Sequences)/ms*1000/float64(t.DecodeGPUs))
	}
	if len(d.Decode.ITL) == 0 {
		return Data{}, fmt.Errorf("tabulate decode: a cache of %d tokens holds no sequence of the grid", t.MaxTokens)
	}
	return d, nil
}

// JSON is the profile in the ConfigMap's form.
func (d Data) JSON() (prefill, decode string, err error) {
	p, err := json.Marshal(d.Prefill)
	if err != nil {
		return "", "", fmt.Errorf("write prefill data: %w", err)
	}
	q, err := json.Marshal(d.Decode)
	if err != nil {
		return "", "", fmt.Errorf("write decode data: %w", err)
	}
	return string(p), string(q), nil
}
