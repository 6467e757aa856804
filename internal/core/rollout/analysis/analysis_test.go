package analysis

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/api/v1alpha1"
	"github.com/dynamo-operator/dynamo-operator/internal/core/rollout/policy"
)

const ofFrontend = `
# TYPE dynamo_frontend_requests_total counter
dynamo_frontend_requests_total{model="m",endpoint="chat_completions",request_type="stream",status="success"} 90
dynamo_frontend_requests_total{model="m",endpoint="chat_completions",request_type="stream",status="error"} 10
# TYPE dynamo_frontend_time_to_first_token_seconds histogram
dynamo_frontend_time_to_first_token_seconds_bucket{model="m",le="0.1"} 40
dynamo_frontend_time_to_first_token_seconds_bucket{model="m",le="1"} 85
dynamo_frontend_time_to_first_token_seconds_bucket{model="m",le="+Inf"} 90
dynamo_frontend_time_to_first_token_seconds_sum{model="m"} 30
dynamo_frontend_time_to_first_token_seconds_count{model="m"} 90
dynamo_frontend_time_to_first_token_seconds_bucket{model="n",le="0.1"} 1
dynamo_frontend_time_to_first_token_seconds_bucket{model="n",le="1"} 1
dynamo_frontend_time_to_first_token_seconds_bucket{model="n",le="+Inf"} 1
dynamo_frontend_time_to_first_token_seconds_sum{model="n"} 0.05
dynamo_frontend_time_to_first_token_seconds_count{model="n"} 1
`

const ofWorker = `
# TYPE dynamo_component_requests_total counter
dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="llm-chat-3fa91c02"} 50
dynamo_component_requests_total{dynamo_component="backend",dynamo_endpoint="load_metrics",dynamo_namespace="llm-chat-3fa91c02"} 999
# TYPE dynamo_component_errors_total counter
dynamo_component_errors_total{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="llm-chat-3fa91c02",error_type="generate"} 2
dynamo_component_errors_total{dynamo_component="backend",dynamo_endpoint="generate",dynamo_namespace="llm-chat-3fa91c02",error_type="response_stream"} 1
# TYPE vllm:inter_token_latency_seconds histogram
vllm:inter_token_latency_seconds_bucket{model_name="m",le="0.01"} 5
vllm:inter_token_latency_seconds_bucket{model_name="m",le="+Inf"} 7
vllm:inter_token_latency_seconds_sum{model_name="m"} 1
vllm:inter_token_latency_seconds_count{model_name="m"} 7
`

func TestParse(t *testing.T) {
	inf := math.Inf(1)
	for rule, c := range map[string]struct {
		text string
		want Counters
	}{
		"a frontend tells how requests ended, and how long a first token took, of all models": {ofFrontend, Counters{
			Requests: 100, Errors: 10, TTFT: &Histogram{[]float64{0.1, 1, inf}, []float64{41, 45, 5}},
		}},
		"a worker counts the endpoint that serves, and its engine measures": {ofWorker, Counters{
			Requests: 50, Errors: 3, ITL: &Histogram{[]float64{0.01, inf}, []float64{5, 2}},
		}},
		"who counts nothing has nothing": {"go_goroutines 7\n", Counters{}},
	} {
		t.Run(rule, func(t *testing.T) {
			got, err := Parse(strings.NewReader(c.text))
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := Parse(strings.NewReader("<html>")); err == nil {
		t.Error("a page that is no metrics is read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(ofFrontend)
	f.Add(ofWorker)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		if c.Requests < 0 || c.Errors < 0 || c.TTFT.Samples() < 0 {
			t.Errorf("%q counts %+v", text, c)
		}
		for _, h := range []*Histogram{c.TTFT, c.ITL} {
			if h != nil && math.IsInf(h.Quantile(percentile), 0) {
				t.Errorf("%q has an infinite percentile", text)
			}
		}
	})
}

func TestQuantile(t *testing.T) {
	h := &Histogram{[]float64{1, 2, 4, math.Inf(1)}, []float64{50, 40, 0, 10}}
	for share, want := range map[float64]float64{0.25: 0.5, 0.5: 1, 0.7: 1.5, 0.9: 2, 0.95: 4} {
		if got := h.Quantile(share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v of the samples are below %v, want %v", share, got, want)
		}
	}
}

var start = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func counted(requests, errors float64) map[string]Counters {
	return map[string]Counters{"pod": {Requests: requests, Errors: errors}}
}

func TestObserve(t *testing.T) {
	look := func(seconds int, candidate, stable map[string]Counters) Look {
		return Look{start.Add(time.Duration(seconds) * time.Second), candidate, stable}
	}
	type result struct{ Candidate, Stable, Errors float64 }
	for rule, c := range map[string]struct {
		looks []Look
		want  result
	}{
		"one look tells nothing: it may be of any time": {[]Look{look(0, counted(10, 1), counted(1000, 100))}, result{}},
		"the stable generation counts from the candidate's first request on": {[]Look{
			look(0, nil, counted(1000, 100)), look(15, counted(0, 0), counted(1100, 100)), look(30, counted(0, 0), counted(1200, 100)),
			look(45, counted(20, 2), counted(1260, 100)),
		}, result{20, 60, 2}},
		"a container that began anew counts from zero": {[]Look{
			look(0, counted(10, 0), counted(0, 0)), look(15, counted(30, 0), counted(50, 0)), look(30, counted(5, 1), counted(90, 0)),
		}, result{25, 90, 1}},
		"a pod that did not answer is counted up when it does": {[]Look{
			look(0, counted(10, 0), counted(0, 0)), look(15, nil, counted(50, 0)), look(30, counted(40, 1), counted(90, 0)),
		}, result{30, 40, 1}},
		"a pod that is seen for the first time has counted before": {[]Look{
			look(0, counted(10, 0), counted(0, 0)), look(15, counted(20, 0), map[string]Counters{"pod": {Requests: 5}, "late": {Requests: 5000, Errors: 900}}),
		}, result{10, 5, 0}},
	} {
		t.Run(rule, func(t *testing.T) {
			var s Series
			for _, l := range c.looks {
				s = s.Observe(l)
			}
			if diff := cmp.Diff(c.want, result{s.Candidate.Requests, s.Stable.Requests, s.Candidate.Errors}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// latencies are a histogram in which a share of samples is slow.
func latencies(samples, slow float64) *Histogram {
	return &Histogram{[]float64{0.1, 0.2, 0.4, 0.8, 1.6, math.Inf(1)}, []float64{samples - slow, 0, 0, slow, 0, 0}}
}

func TestJudge(t *testing.T) {
	warm := start.Add(3 * time.Minute)
	requests := func(n, errors float64) Counters { return Counters{Requests: n, Errors: errors} }
	ttft := func(samples, slow float64) Counters { return Counters{TTFT: latencies(samples, slow)} }
	for rule, c := range map[string]struct {
		series Series
		slo    policy.SLO
		want   policy.Verdict
		says   string
	}{
		"nothing seen is inconclusive":                    {Series{}, policy.SLO{}, policy.VerdictInconclusive, "no request of the candidate was seen"},
		"so is a warm-up":                                 {Series{Began: start, Candidate: requests(80, 0), Stable: requests(900, 0), last: Look{At: start.Add(time.Minute)}}, policy.SLO{}, policy.VerdictInconclusive, "80 of 500 requests for the warm-up, 1m0s of 2m0s"},
		"so is a candidate with nobody beside it":         {Series{Began: start, Warm: warm, Candidate: requests(900, 0)}, policy.SLO{}, policy.VerdictInconclusive, "no request of the stable generation was seen at the same time"},
		"so are too few latencies on one side":            {Series{Began: start, Warm: warm, Candidate: requests(900, 9), Stable: requests(900, 9), warmCandidate: ttft(900, 0), warmStable: ttft(199, 0)}, policy.SLO{}, policy.VerdictInconclusive, "199 of 200 latencies on each side"},
		"an equal candidate passes":                       {Series{Began: start, Warm: warm, Candidate: requests(900, 9), Stable: requests(900, 9), warmCandidate: ttft(400, 4), warmStable: ttft(400, 4)}, policy.SLO{}, policy.VerdictPass, ""},
		"it passes by errors alone where nobody measures": {Series{Began: start, Warm: warm, Candidate: requests(900, 9), Stable: requests(900, 9)}, policy.SLO{}, policy.VerdictPass, ""},
		"errors fail, and need no warm-up":                {Series{Began: start, Candidate: requests(300, 30), Stable: requests(900, 9)}, policy.SLO{}, policy.VerdictFail, "10.0% of its requests fail, of the stable generation's 1.0%"},
		"four errors are none":                            {Series{Began: start, Candidate: requests(4, 4), Stable: requests(9000, 0)}, policy.SLO{}, policy.VerdictInconclusive, "4 of 500 requests for the warm-up, 0s of 2m0s"},
		"twice the errors are not enough under a point":   {Series{Began: start, Warm: warm, Candidate: requests(1e6, 3000), Stable: requests(1e6, 1000)}, policy.SLO{}, policy.VerdictPass, ""},
		"a point is not enough under twice the errors":    {Series{Began: start, Warm: warm, Candidate: requests(1e6, 160000), Stable: requests(1e6, 100000)}, policy.SLO{}, policy.VerdictPass, ""},
		"a candidate that has all errors fails":           {Series{Began: start, Candidate: requests(50, 50), Stable: requests(150, 0)}, policy.SLO{}, policy.VerdictFail, "100.0% of its requests fail, of the stable generation's 0.0%"},
		"errors over an SLO fail":                         {Series{Began: start, Warm: warm, Candidate: requests(10000, 180), Stable: requests(10000, 90)}, policy.SLO{Errors: 0.01}, policy.VerdictFail, "1.8% of its requests fail, and may 1.0%"},
		"unless the stable generation breaks it too":      {Series{Began: start, Warm: warm, Candidate: requests(10000, 180), Stable: requests(10000, 110)}, policy.SLO{Errors: 0.01}, policy.VerdictPass, ""},
		"a slow candidate fails":                          {Series{Began: start, Warm: warm, Candidate: requests(900, 0), Stable: requests(900, 0), warmCandidate: ttft(400, 100), warmStable: ttft(400, 4)}, policy.SLO{}, policy.VerdictFail, "95th percentile of the time to first token is 720ms, of the stable generation 96ms"},
		"a slow candidate within its SLO does not":        {Series{Began: start, Warm: warm, Candidate: requests(900, 0), Stable: requests(900, 0), warmCandidate: ttft(400, 100), warmStable: ttft(400, 4)}, policy.SLO{TTFT: time.Second}, policy.VerdictPass, ""},
		"over the SLO it does":                            {Series{Began: start, Warm: warm, Candidate: requests(900, 0), Stable: requests(900, 0), warmCandidate: ttft(400, 100), warmStable: ttft(400, 4)}, policy.SLO{TTFT: 300 * time.Millisecond}, policy.VerdictFail, "95th percentile of the time to first token is 720ms, and may be 300ms (of the stable generation 96ms)"},
		"time between tokens counts as well":              {Series{Began: start, Warm: warm, Candidate: requests(900, 0), Stable: requests(900, 0), warmCandidate: Counters{ITL: latencies(400, 100)}, warmStable: Counters{ITL: latencies(400, 4)}}, policy.SLO{}, policy.VerdictFail, "95th percentile of the time between tokens is 720ms, of the stable generation 96ms"},
		"a few slow answers are no evidence":              {Series{Began: start, Warm: warm, Candidate: requests(900, 0), Stable: requests(900, 0), warmCandidate: ttft(200, 12), warmStable: ttft(200, 8)}, policy.SLO{}, policy.VerdictPass, ""},
	} {
		t.Run(rule, func(t *testing.T) {
			if c.series.last.At.IsZero() {
				c.series.last.At = c.series.Began
			}
			got := c.series.Judge(c.slo)
			if got.Verdict != c.want || got.Message != c.says {
				t.Errorf("verdict %s, %q; want %s, %q", got.Verdict, got.Message, c.want, c.says)
			}
		})
	}
}

func TestJudgementIsTold(t *testing.T) {
	j := Judgement{Verdict: policy.VerdictFail, Samples: 812, Errors: [2]float64{0.0512, 0.01}, TTFT: [2]time.Duration{850 * time.Millisecond, 400 * time.Millisecond}}
	want := &v1alpha1.RolloutAnalysis{Verdict: "fail", Samples: 812, Errors: []string{"5.1%", "1.0%"}, TTFTP95: []string{"850ms", "400ms"}}
	if diff := cmp.Diff(want, j.Status()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAStatusIsNotWrittenForEverySample(t *testing.T) {
	j := func(v policy.Verdict, samples int64) Judgement { return Judgement{Verdict: v, Samples: samples} }
	for rule, c := range map[string]struct {
		before *v1alpha1.RolloutAnalysis
		now    Judgement
		want   int64
	}{
		"the first is told":             {nil, j(policy.VerdictInconclusive, 0), 0},
		"few more are not":              {&v1alpha1.RolloutAnalysis{Verdict: "inconclusive", Samples: 100}, j(policy.VerdictInconclusive, 149), 100},
		"half as many again are":        {&v1alpha1.RolloutAnalysis{Verdict: "inconclusive", Samples: 100}, j(policy.VerdictInconclusive, 150), 150},
		"another verdict is":            {&v1alpha1.RolloutAnalysis{Verdict: "inconclusive", Samples: 100}, j(policy.VerdictFail, 101), 101},
		"none, again and again, is not": {&v1alpha1.RolloutAnalysis{Verdict: "inconclusive"}, j(policy.VerdictInconclusive, 0), 0},
		"who begins anew is told":       {&v1alpha1.RolloutAnalysis{Verdict: "pass", Samples: 900}, j(policy.VerdictPass, 10), 10},
	} {
		t.Run(rule, func(t *testing.T) {
			got := c.now.Told(c.before)
			if got.Samples != c.want || got.Verdict != string(c.now.Verdict) {
				t.Errorf("told %+v", got)
			}
		})
	}
}

func TestWhatAPodIsAskedFor(t *testing.T) {
	h := &Histogram{Bounds: []float64{1}, Counts: []float64{7}}
	all := Counters{Requests: 10, Errors: 2, TTFT: h, ITL: h}
	for rule, c := range map[string]struct {
		duty Duty
		want Counters
	}{
		"one that does all of it":               {Duty{Entry: true, FirstToken: true}, all},
		"one that decodes after another":        {Duty{Entry: true}, Counters{Requests: 10, Errors: 2, ITL: h}},
		"one that prefills, whose errors count": {Duty{FirstToken: true}, Counters{Errors: 2, TTFT: h}},
		"one that supports, whose errors count": {Duty{}, Counters{Errors: 2}},
	} {
		t.Run(rule, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.duty.Of(all)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
