// Package observation makes the snapshots that decisions are about out of what can be
// seen: the counters of frontends, and how many replicas a graph has. It reads text and
// numbers that others fetched, keeps what the next look is compared with, and decides
// nothing.
package observation

import (
	"fmt"
	"io"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Counters are what a frontend has counted since it began.
type Counters struct {
	// Began are the requests that were accepted. Frontends before 1.0 do not tell: of
	// those it is what ended and what is under way.
	Began, Ended     float64
	InFlight, Queued float64
	// TellsInFlight and TellsQueued say that the frontend counts these at all.
	TellsInFlight, TellsQueued bool

	Input, Output     Histogram // tokens
	Cached            Histogram // tokens of prompts
	FirstToken, Token Histogram // seconds
	Duration          Histogram // seconds
}

// Histogram is a distribution by buckets.
type Histogram struct {
	Sum, Count float64
	// Bounds are the upper bounds of the buckets but the last, which has none; Counts
	// are the samples of each bucket alone.
	Bounds, Counts []float64
}

// prefix of a frontend's series.
const prefix = "dynamo_frontend_"

// Parse reads the metrics of a frontend, in Prometheus' text format. All models count:
// who serves them is the graph that the frontend belongs to.
func Parse(text io.Reader) (Counters, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return Counters{}, fmt.Errorf("read metrics: %w", err)
	}
	series := func(name string) []*dto.Metric { return families[prefix+name].GetMetric() }
	sum := func(name string) float64 {
		total := 0.0
		for _, m := range series(name) {
			for _, v := range []float64{m.GetCounter().GetValue(), m.GetGauge().GetValue(), m.GetUntyped().GetValue()} {
				if v > 0 && !math.IsInf(v, 0) { // of the three one is there
					total += v
				}
			}
		}
		return total
	}
	histogram := func(name string) Histogram {
		var all Histogram
		for _, m := range series(name) {
			all = all.plus(newHistogram(m.GetHistogram()))
		}
		return all
	}
	c := Counters{
		Ended: sum("requests_total"), InFlight: sum("inflight_requests"), Queued: sum("queued_requests"),
		TellsInFlight: families[prefix+"inflight_requests"] != nil, TellsQueued: families[prefix+"queued_requests"] != nil,
		Input: histogram("input_sequence_tokens"), Output: histogram("output_sequence_tokens"), Cached: histogram("cached_tokens"),
		FirstToken: histogram("time_to_first_token_seconds"), Token: histogram("inter_token_latency_seconds"),
		Duration: histogram("request_duration_seconds"),
	}
	c.Began = c.Ended + c.InFlight
	if families[prefix+"requests_started_total"] != nil {
		c.Began = sum("requests_started_total")
	}
	return c, nil
}

func newHistogram(h *dto.Histogram) Histogram {
	out := Histogram{Sum: finite(h.GetSampleSum()), Count: float64(h.GetSampleCount())}
	below := 0.0
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			continue
		}
		n := float64(b.GetCumulativeCount())
		out.Bounds, out.Counts = append(out.Bounds, b.GetUpperBound()), append(out.Counts, max(0, n-below))
		below = max(below, n)
	}
	out.Counts = append(out.Counts, max(0, out.Count-below))
	return out
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// plus is the sum of two distributions. Of one with other buckets sum and count are
// taken alone.
func (h Histogram) plus(other Histogram) Histogram {
	out := Histogram{Sum: h.Sum + other.Sum, Count: h.Count + other.Count, Bounds: h.Bounds, Counts: h.Counts}
	switch {
	case len(h.Counts) == 0:
		out.Bounds, out.Counts = other.Bounds, other.Counts
	case slices.Equal(h.Bounds, other.Bounds):
		out.Counts = slices.Clone(h.Counts)
		for i, n := range other.Counts {
			out.Counts[i] += n
		}
	}
	return out
}

// since is what was counted after an earlier look.
func (h Histogram) since(earlier Histogram) Histogram {
	if h.Count < earlier.Count {
		return h // it began anew
	}
	out := Histogram{Sum: max(0, h.Sum-earlier.Sum), Count: h.Count - earlier.Count, Bounds: h.Bounds, Counts: h.Counts}
	if slices.Equal(h.Bounds, earlier.Bounds) && len(earlier.Counts) == len(h.Counts) {
		out.Counts = slices.Clone(h.Counts)
		for i := range out.Counts {
			out.Counts[i] = max(0, out.Counts[i]-earlier.Counts[i])
		}
	}
	return out
}

// Mean is NaN of no sample.
func (h Histogram) Mean() float64 { return h.Sum / h.Count }

// shape is where a share of the samples lies below, and the variance over the squared
// mean. A bucket's samples are taken to be in its middle, and the whole is stretched to
// the mean that is known exactly: samples of one length in one bucket have no spread.
func (h Histogram) shape(share float64) (quantile, spread float64) {
	var count, mean, square float64
	middle := func(i int) float64 {
		switch {
		case len(h.Bounds) == 0:
			return 1
		case i == 0:
			return h.Bounds[0] / 2
		case i == len(h.Bounds):
			return h.Bounds[i-1] * 1.5
		default:
			return (h.Bounds[i-1] + h.Bounds[i]) / 2
		}
	}
	for i, n := range h.Counts {
		count += n
		mean += n * middle(i)
		square += n * middle(i) * middle(i)
	}
	if count <= 0 || mean <= 0 || h.Count <= 0 {
		return 0, 0
	}
	mean /= count
	left := share * count
	for i, n := range h.Counts {
		if left -= n; left <= 0 {
			return middle(i) * h.Mean() / mean, max(0, square/count/(mean*mean)-1)
		}
	}
	return h.Mean(), 0
}

// since is what a frontend counted after an earlier look at it. Gauges are as they are.
func (c Counters) since(earlier Counters) Counters {
	if c.Ended < earlier.Ended || c.Input.Count < earlier.Input.Count {
		return c // it began anew
	}
	return Counters{
		Began: max(0, c.Began-earlier.Began), Ended: c.Ended - earlier.Ended, InFlight: c.InFlight, Queued: c.Queued,
		TellsInFlight: c.TellsInFlight, TellsQueued: c.TellsQueued,
		Input: c.Input.since(earlier.Input), Output: c.Output.since(earlier.Output), Cached: c.Cached.since(earlier.Cached),
		FirstToken: c.FirstToken.since(earlier.FirstToken), Token: c.Token.since(earlier.Token), Duration: c.Duration.since(earlier.Duration),
	}
}

// Plus is what two looks have counted together. What one of them does not tell is not known of
// both.
func (c Counters) Plus(other Counters) Counters {
	return Counters{
		Began: c.Began + other.Began, Ended: c.Ended + other.Ended, InFlight: c.InFlight + other.InFlight, Queued: c.Queued + other.Queued,
		TellsInFlight: c.TellsInFlight && other.TellsInFlight, TellsQueued: c.TellsQueued && other.TellsQueued,
		Input: c.Input.plus(other.Input), Output: c.Output.plus(other.Output), Cached: c.Cached.plus(other.Cached),
		FirstToken: c.FirstToken.plus(other.FirstToken), Token: c.Token.plus(other.Token), Duration: c.Duration.plus(other.Duration),
	}
}
