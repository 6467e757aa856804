// Package analysis judges a candidate by its requests, held against those of the
// stable generation at the same time: what happens to both, such as a rush of
// requests, says nothing about the candidate.
//
// It is pure. What pods have counted goes in as text, with the time, and a judgement
// comes out; who scrapes keeps the Series in between.
package analysis

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counters are what a pod has counted since it began.
type Counters struct {
	Requests, Errors float64
	// TTFT and ITL are in seconds; nil where the pod does not measure them.
	TTFT, ITL *Histogram
}

// Histogram is a distribution by buckets.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, ascending; the last is infinite.
	Bounds []float64
	// Counts are the samples of each bucket alone.
	Counts []float64
}

// names are the metrics of frontends, of workers and of the engines that export some.
var (
	frontendRequests = "dynamo_frontend_requests_total"
	workerRequests   = "dynamo_component_requests_total"
	workerErrors     = "dynamo_component_errors_total"
	firstToken       = []string{"dynamo_frontend_time_to_first_token_seconds", "vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds", "trtllm_time_to_first_token_seconds"}
	betweenTokens    = []string{
		"dynamo_frontend_inter_token_latency_seconds", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds",
		"sglang:inter_token_latency_seconds", "trtllm_time_per_output_token_seconds",
	}
)

// The labels that tell requests apart.
const (
	statusLabel    = "status"
	statusSuccess  = "success"
	endpointLabel  = "dynamo_endpoint"
	endpointServes = "generate"
)

// Parse reads the metrics of a frontend or of a worker, in Prometheus' text format.
func Parse(text io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return Counters{}, fmt.Errorf("read metrics: %w", err)
	}
	c := Counters{TTFT: first(families, firstToken), ITL: first(families, betweenTokens)}
	for _, m := range families[frontendRequests].GetMetric() {
		c.Requests += value(m)
		if label(m, statusLabel) != statusSuccess {
			c.Errors += value(m)
		}
	}
	c.Requests += serving(families[workerRequests])
	c.Errors += serving(families[workerErrors])
	return c, nil
}

// serving sums a counter of a worker over the endpoint that serves requests; others
// ask it for its load, and do not fail. One that names no endpoint counts whole.
func serving(family *dto.MetricFamily) float64 {
	sum := 0.0
	for _, m := range family.GetMetric() {
		if endpoint := label(m, endpointLabel); endpoint == "" || endpoint == endpointServes {
			sum += value(m)
		}
	}
	return sum
}

func value(m *dto.Metric) float64 {
	for _, v := range []float64{m.GetCounter().GetValue(), m.GetUntyped().GetValue(), m.GetGauge().GetValue()} {
		if v > 0 && !math.IsInf(v, 0) {
			return v
		}
	}
	return 0
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return strings.ToLower(l.GetValue())
		}
	}
	return ""
}

// first is the histogram of the first name that there is, over all models.
func first(families map[string]*dto.MetricFamily, names []string) *Histogram {
	for _, name := range names {
		var sum *Histogram
		for _, m := range families[name].GetMetric() {
			if h := histogram(m.GetHistogram()); h != nil {
				sum = sum.plus(h)
			}
		}
		if sum != nil {
			return sum
		}
	}
	return nil
}

func histogram(h *dto.Histogram) *Histogram {
	if h == nil || len(h.GetBucket()) == 0 {
		return nil
	}
	cumulative := map[float64]float64{math.Inf(1): float64(h.GetSampleCount())}
	for _, b := range h.GetBucket() {
		cumulative[b.GetUpperBound()] = float64(b.GetCumulativeCount())
	}
	out := &Histogram{Bounds: slices.Sorted(maps.Keys(cumulative))}
	below := 0.0
	for _, bound := range out.Bounds {
		out.Counts = append(out.Counts, max(0, cumulative[bound]-below))
		below = max(below, cumulative[bound])
	}
	return out
}

// plus is the sum of two distributions. Those with other buckets are left out: there
// is no telling where their samples belong.
func (h *Histogram) plus(other *Histogram) *Histogram {
	switch {
	case other == nil:
		return h
	case h == nil:
		return &Histogram{other.Bounds, slices.Clone(other.Counts)}
	case !slices.Equal(h.Bounds, other.Bounds):
		return h
	}
	sum := &Histogram{h.Bounds, slices.Clone(h.Counts)}
	for i, n := range other.Counts {
		sum.Counts[i] += n
	}
	return sum
}

// since is what was counted after an earlier look. A process that has begun anew
// counts from zero.
func (h *Histogram) since(earlier *Histogram) *Histogram {
	if h == nil || earlier == nil || !slices.Equal(h.Bounds, earlier.Bounds) || h.Samples() < earlier.Samples() {
		return h
	}
	out := &Histogram{h.Bounds, make([]float64, len(h.Counts))}
	for i := range h.Counts {
		out.Counts[i] = max(0, h.Counts[i]-earlier.Counts[i])
	}
	return out
}

// Samples is how many there are.
func (h *Histogram) Samples() float64 {
	if h == nil {
		return 0
	}
	sum := 0.0
	for _, n := range h.Counts {
		sum += n
	}
	return sum
}

// Quantile is where a share of the samples lies below, taking those of a bucket as
// evenly spread. Of what lies beyond the last bound only that bound is known.
func (h *Histogram) Quantile(share float64) float64 {
	rank, below := share*h.Samples(), 0.0
	low := 0.0
	for i, n := range h.Counts {
		high := h.Bounds[i]
		if math.IsInf(high, 1) {
			return low
		}
		if n > 0 && below+n >= rank {
			return low + (high-low)*max(0, rank-below)/n
		}
		below += n
		low = high
	}
	return low
}

func (c Counters) plus(other Counters) Counters {
	return Counters{c.Requests + other.Requests, c.Errors + other.Errors, c.TTFT.plus(other.TTFT), c.ITL.plus(other.ITL)}
}

func (c Counters) since(earlier Counters) Counters {
	out := Counters{Requests: c.Requests, Errors: c.Errors, TTFT: c.TTFT.since(earlier.TTFT), ITL: c.ITL.since(earlier.ITL)}
	if c.Requests >= earlier.Requests && c.Errors >= earlier.Errors {
		out.Requests -= earlier.Requests
		out.Errors -= earlier.Errors
	}
	return out
}
