package view

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Sample is what one frontend counted up to a moment.
type Sample struct {
	At                       time.Time
	Requests, Errors, Tokens float64
	InFlight, Queued         float64
	FirstToken, InterToken   Histogram
}

// Histogram counts observations up to bounds.
type Histogram struct {
	// Counts by upper bound, each with those below it.
	Counts map[float64]float64
	Count  float64
}

// families reads the text in which metrics are served.
func families(r io.Reader) (map[string]*dto.MetricFamily, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return all, nil
}

// ParseFrontend reads a frontend's metrics. The prefix of their names can be
// configured, so they are known by how they end.
func ParseFrontend(r io.Reader, at time.Time) (Sample, error) {
	s := Sample{At: at}
	all, err := families(r)
	if err != nil {
		return s, err
	}
	for name, family := range all {
		switch {
		case strings.HasPrefix(name, "dynamo_component_"): // the runtime's own, beside the frontend's
		case strings.HasSuffix(name, "_requests_total"):
			for _, m := range family.GetMetric() {
				s.Requests += m.GetCounter().GetValue()
				if label(m, "status") == "error" {
					s.Errors += m.GetCounter().GetValue()
				}
			}
		case strings.HasSuffix(name, "_output_tokens_total"):
			s.Tokens += sum(family)
		case strings.HasSuffix(name, "_inflight_requests"):
			s.InFlight += sum(family)
		case strings.HasSuffix(name, "_queued_requests"):
			s.Queued += sum(family)
		case strings.HasSuffix(name, "_time_to_first_token_seconds"):
			s.FirstToken = histogram(family)
		case strings.HasSuffix(name, "_inter_token_latency_seconds"):
			s.InterToken = histogram(family)
		}
	}
	return s, nil
}

// loadNames are what engines call their load: running, waiting, and the share of the
// KV cache in use.
var loadNames = [][3]string{
	{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"},
	{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:gpu_cache_usage_perc"},
	{"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"},
	{"trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization"},
}

// ParseEngine reads what an engine tells of its load; it is false where it tells
// nothing.
func ParseEngine(r io.Reader) (Load, bool, error) {
	all, err := families(r)
	if err != nil {
		return Load{}, false, err
	}
	for _, names := range loadNames {
		if all[names[0]] == nil || all[names[2]] == nil {
			continue
		}
		l := Load{Running: sum(all[names[0]]), Waiting: sum(all[names[1]]), KV: sum(all[names[2]])}
		if n := len(all[names[2]].GetMetric()); n > 1 {
			l.KV /= float64(n)
		}
		return l, true, nil
	}
	return Load{}, false, nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func sum(f *dto.MetricFamily) float64 {
	total := 0.0
	for _, m := range f.GetMetric() {
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return total
}

func histogram(f *dto.MetricFamily) Histogram {
	h := Histogram{Counts: map[float64]float64{}}
	for _, m := range f.GetMetric() {
		h.Count += float64(m.GetHistogram().GetSampleCount())
		for _, b := range m.GetHistogram().GetBucket() {
			h.Counts[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return h
}

// since is what was observed after an earlier histogram.
func (h Histogram) since(earlier Histogram) Histogram {
	d := Histogram{Counts: map[float64]float64{}, Count: h.Count - earlier.Count}
	for bound, n := range h.Counts {
		d.Counts[bound] = n - earlier.Counts[bound]
	}
	return d
}

func (h *Histogram) add(other Histogram) {
	if h.Counts == nil {
		h.Counts = map[float64]float64{}
	}
	h.Count += other.Count
	for bound, n := range other.Counts {
		h.Counts[bound] += n
	}
}

// Quantile estimates one as Prometheus does: linear within a bucket. It is NaN
// without observations.
func (h Histogram) Quantile(q float64) float64 {
	if h.Count <= 0 {
		return math.NaN()
	}
	var bounds []float64
	for b := range h.Counts {
		if !math.IsInf(b, 1) {
			bounds = append(bounds, b)
		}
	}
	slices.Sort(bounds)
	low, below, want := 0.0, 0.0, q*h.Count
	for _, b := range bounds {
		if n := h.Counts[b]; n >= want {
			if n == below {
				return b
			}
			return low + (b-low)*(want-below)/(n-below)
		}
		low, below = b, h.Counts[b]
	}
	return low // beyond the last bound
}

// Point is what a graph's frontends did between two looks.
type Point struct {
	At                       time.Time
	Requests, Errors, Tokens float64 // a second
	InFlight, Queued         float64
	FirstToken, FirstToken99 float64 // seconds; NaN without requests
	InterToken, InterToken99 float64
}

// Between compares two looks at the frontends of a graph, by pod: pods come and go,
// and counters begin anew with them. It is false if no pod was seen twice.
func Between(before, now map[string]Sample) (Point, bool) {
	var p Point
	var first, inter Histogram
	compared := false
	for pod, s := range now {
		if p.InFlight, p.Queued = p.InFlight+s.InFlight, p.Queued+s.Queued; s.At.After(p.At) {
			p.At = s.At
		}
		b, known := before[pod]
		seconds := s.At.Sub(b.At).Seconds()
		if !known || seconds <= 0 || s.Requests < b.Requests || s.FirstToken.Count < b.FirstToken.Count {
			continue
		}
		compared = true
		p.Requests += (s.Requests - b.Requests) / seconds
		p.Errors += max(0, s.Errors-b.Errors) / seconds
		p.Tokens += max(0, s.Tokens-b.Tokens) / seconds
		first.add(s.FirstToken.since(b.FirstToken))
		inter.add(s.InterToken.since(b.InterToken))
	}
	p.FirstToken, p.FirstToken99 = first.Quantile(0.5), first.Quantile(0.99)
	p.InterToken, p.InterToken99 = inter.Quantile(0.5), inter.Quantile(0.99)
	return p, compared
}

// Figure is a chart with what it says in words.
type Figure struct {
	ID, Title, Unit string
	// Words say what the newest values are.
	Words  string
	Series []Series
	// Times are seconds since 1970.
	Times []float64
	// Stepped says that a value holds until the next one.
	Stepped bool
}

// Series is one line of a chart. A gap is nil.
type Series struct {
	Name   string
	Values []*float64
}

// Figures are the charts of a graph.
func Figures(points []Point) []Figure {
	var times []float64
	for _, p := range points {
		times = append(times, float64(p.At.UnixMilli())/1000)
	}
	line := func(name string, scale float64, of func(Point) float64) Series {
		s := Series{Name: name}
		for _, p := range points {
			v := of(p) * scale
			if math.IsNaN(v) {
				s.Values = append(s.Values, nil)
				continue
			}
			s.Values = append(s.Values, &v)
		}
		return s
	}
	figures := []Figure{
		{ID: "rate", Title: "Requests", Unit: "a second", Series: []Series{
			line("answered", 1, func(p Point) float64 { return p.Requests - p.Errors }),
			line("failed", 1, func(p Point) float64 { return p.Errors }),
		}},
		{ID: "ttft", Title: "Time to first token", Unit: "ms", Series: []Series{
			line("median", 1000, func(p Point) float64 { return p.FirstToken }),
			line("99th percentile", 1000, func(p Point) float64 { return p.FirstToken99 }),
		}},
		{ID: "itl", Title: "Time between tokens", Unit: "ms", Series: []Series{
			line("median", 1000, func(p Point) float64 { return p.InterToken }),
			line("99th percentile", 1000, func(p Point) float64 { return p.InterToken99 }),
		}},
		{ID: "queue", Title: "Requests under way", Unit: "", Series: []Series{
			line("in flight", 1, func(p Point) float64 { return p.InFlight }),
			line("without a first token", 1, func(p Point) float64 { return p.Queued }),
		}},
	}
	for i := range figures {
		figures[i].Times = times
		figures[i].Words = figures[i].words()
	}
	return figures
}

// words tell the newest value of each line.
func (f Figure) words() string {
	var parts []string
	for _, s := range f.Series {
		text := "no value yet"
		for _, v := range slices.Backward(s.Values) {
			if v != nil {
				text = strings.TrimSpace(Round(*v) + " " + f.Unit)
				break
			}
		}
		parts = append(parts, s.Name+" "+text)
	}
	return join(parts)
}

// Round is a number with three digits that count.
func Round(x float64) string {
	switch {
	case x == math.Trunc(x), math.Abs(x) >= 100:
		return number(x, 0)
	case math.Abs(x) >= 10:
		return number(x, 1)
	default:
		return number(x, 2)
	}
}

// TrafficOf is a row's share of the points of a graph.
func TrafficOf(points []Point) Traffic {
	if len(points) == 0 {
		return Traffic{}
	}
	var rates []float64
	for _, p := range points {
		rates = append(rates, p.Requests)
	}
	last := rates[len(rates)-1]
	t := Traffic{Known: true, Rate: Round(last) + "/s", Line: Spark(rates)}
	t.Words = fmt.Sprintf("%s requests a second now, at most %s in the last %s", Round(last), Round(slices.Max(rates)), age(points[0].At, points[len(points)-1].At))
	return t
}
