package observation

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

const old = `
# TYPE dynamo_frontend_requests_total counter
dynamo_frontend_requests_total{model="qwen/qwen3",status="success"} 90
dynamo_frontend_requests_total{model="qwen/qwen3",status="error"} 10
dynamo_frontend_requests_total{model="other",status="success"} 7
# TYPE dynamo_frontend_inflight_requests gauge
dynamo_frontend_inflight_requests{model="qwen/qwen3"} 5
# TYPE dynamo_frontend_queued_requests gauge
dynamo_frontend_queued_requests{model="qwen/qwen3"} 2
# TYPE dynamo_frontend_input_sequence_tokens histogram
dynamo_frontend_input_sequence_tokens_bucket{model="qwen/qwen3",le="1000"} 50
dynamo_frontend_input_sequence_tokens_bucket{model="qwen/qwen3",le="3000"} 100
dynamo_frontend_input_sequence_tokens_bucket{model="qwen/qwen3",le="+Inf"} 100
dynamo_frontend_input_sequence_tokens_sum{model="qwen/qwen3"} 125000
dynamo_frontend_input_sequence_tokens_count{model="qwen/qwen3"} 100
`

func TestParse(t *testing.T) {
	for _, x := range []struct {
		rule, text                    string
		began, ended, flying, waiting float64
	}{
		{"what began is what ended and what is under way, where nobody tells", old, 112, 107, 5, 2},
		{"frontends of 1.x tell what began", old + "# TYPE dynamo_frontend_requests_started_total counter\ndynamo_frontend_requests_started_total{model=\"qwen/qwen3\"} 120\n", 120, 107, 5, 2},
		{"an empty page is a frontend that nobody asked", "", 0, 0, 0, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, err := Parse(strings.NewReader(x.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]float64{x.began, x.ended, x.flying, x.waiting}, []float64{c.Began, c.Ended, c.InFlight, c.Queued}); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := Parse(strings.NewReader("<html>")); err == nil {
		t.Error("a page that is no metrics was read")
	}
}

func TestTheShapeOfADistribution(t *testing.T) {
	for _, x := range []struct {
		rule             string
		of               Histogram
		quantile, spread float64
	}{
		{"one length in one bucket has no spread", Histogram{Sum: 40000, Count: 10, Bounds: []float64{2000, 4100}, Counts: []float64{0, 10, 0}}, 4000, 0},
		{"a tenth of long ones is the quantile", Histogram{Sum: 9*1000 + 11000, Count: 10, Bounds: []float64{2000, 20000}, Counts: []float64{9, 1, 0}}, 11000, 2.25},
		{"of nothing there is nothing", Histogram{}, 0, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			quantile, spread := x.of.shape(0.95)
			if diff := cmp.Diff([]float64{x.quantile, x.spread}, []float64{quantile, spread}, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTraffic(t *testing.T) {
	const tick = 5 * time.Second
	at := func(n int) time.Duration { return time.Duration(n) * tick }
	counted := func(began, ended float64) Counters {
		return Counters{Began: began, Ended: ended, InFlight: began - ended}
	}
	one := func(n int, began, ended float64) Look {
		return Look{At: at(n), Frontends: map[string]Counters{"a": counted(began, ended)}}
	}
	for _, x := range []struct {
		rule   string
		looks  []Look
		bins   []float64
		failed bool
	}{
		{"what was counted before the first look is of unknown age", []Look{one(0, 100, 90)}, nil, false},
		{"a bin is what began since", []Look{one(0, 100, 90), one(1, 120, 90)}, []float64{20}, false},
		{"a late look is several bins", []Look{one(0, 100, 90), one(3, 130, 90)}, []float64{10, 10, 10}, false},
		{"a frontend that began anew counts from zero", []Look{one(0, 100, 90), one(1, 7, 3)}, []float64{7}, false},
		// It may have begun a moment ago, or days: nobody saw it. A tick of it is lost at most.
		{"what a frontend has counted that is new is of unknown age, too", []Look{one(0, 100, 90), {At: at(1), Frontends: map[string]Counters{"a": counted(110, 90), "b": counted(5, 1)}}}, []float64{10}, false},
		{"one that was ready late is no burst", []Look{one(0, 100, 90), {At: at(1), Frontends: map[string]Counters{"a": counted(110, 90), "b": counted(1e6, 1e6)}}}, []float64{10}, false},
		{"and counts from then on", []Look{
			one(0, 100, 90), {At: at(1), Frontends: map[string]Counters{"a": counted(110, 90), "b": counted(1e6, 1e6)}},
			{At: at(2), Frontends: map[string]Counters{"a": counted(120, 90), "b": counted(1e6+5, 1e6)}},
		}, []float64{15}, false},
		{"where all are new it is as at the first look", []Look{one(0, 100, 90), {At: at(1), Frontends: map[string]Counters{"b": counted(500, 500)}}}, nil, false},
		{"one that was away for a look has counted since it was seen last", []Look{
			{At: at(0), Frontends: map[string]Counters{"a": counted(100, 90), "b": counted(1000, 990)}}, one(1, 110, 90),
			{At: at(2), Frontends: map[string]Counters{"a": counted(120, 90), "b": counted(1010, 990)}},
		}, []float64{20}, false},
		{"one that was away for hours is another", []Look{
			{At: at(0), Frontends: map[string]Counters{"a": counted(100, 90), "b": counted(30, 30)}}, one(1000, 110, 90),
			{At: at(1001), Frontends: map[string]Counters{"a": counted(120, 90), "b": counted(40, 40)}},
		}, []float64{10}, false},
		{"idle is a zero that was seen", []Look{one(0, 100, 100), one(1, 100, 100)}, []float64{0}, false},
		{"a frontend that does not answer makes blind", []Look{one(0, 100, 100), {At: at(1), Failed: map[string]string{"a": "refused"}}}, nil, true},
		{"what came meanwhile is in the next answer", []Look{one(0, 100, 100), {At: at(1), Failed: map[string]string{"a": "refused"}}, one(2, 140, 100)}, []float64{20, 20}, false},
		{"without a frontend nothing is seen", []Look{{At: at(0)}}, nil, true},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var traffic Traffic
			var r Reading
			for _, look := range x.looks {
				r, traffic = traffic.Next(look, tick)
			}
			if diff := cmp.Diff(x.bins, r.Bins, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if (r.Failed != "") != x.failed {
				t.Errorf("failed: %q", r.Failed)
			}
		})
	}
}

func TestFrontendsThatAreGoneAreForgotten(t *testing.T) {
	var traffic Traffic
	for n := range 1000 {
		_, traffic = traffic.Next(Look{At: time.Duration(n) * time.Second, Frontends: map[string]Counters{fmt.Sprintf("10.0.0.%d", n): {Began: 1}}}, 5*time.Second)
	}
	_, newest := traffic.last["10.0.0.998"]
	_, oldest := traffic.last["10.0.0.0"]
	if n := len(traffic.last); n > mostAway+1 || !newest || oldest {
		t.Errorf("%d frontends are remembered, of those that went the last %v, the first %v", n, newest, oldest)
	}
}

func TestLengthsAreOfTheLastMinutes(t *testing.T) {
	prompts := func(n, each float64) Counters {
		return Counters{Began: n, Ended: n, Input: Histogram{Sum: n * each, Count: n}, Output: Histogram{Sum: n * 100, Count: n}, Cached: Histogram{Sum: n * each / 4, Count: n}}
	}
	var traffic Traffic
	look := func(at time.Duration, c Counters) Reading {
		var r Reading
		r, traffic = traffic.Next(Look{At: at, Frontends: map[string]Counters{"a": c}}, 5*time.Second)
		return r
	}
	look(0, Counters{})
	first := look(5*time.Second, prompts(10, 2000))
	if diff := cmp.Diff(capacity.Lengths{Input: 2000, Input95: 2000, Output: 100, Hit: 0.25}, first.Lengths); diff != "" {
		t.Error(diff)
	}
	more := prompts(10, 2000).Plus(prompts(10, 1000))
	if got := look(time.Minute, more).Lengths.Input; got != 1500 {
		t.Errorf("within five minutes the mean is %v", got)
	}
	if got := look(5*time.Minute+30*time.Second, more).Lengths.Input; got != 1000 {
		t.Errorf("the oldest are gone, and the mean is %v", got)
	}
}

func TestStarts(t *testing.T) {
	const s = time.Second
	type look struct {
		at  time.Duration
		was Replicas
	}
	for _, x := range []struct {
		rule     string
		looks    []look
		starting []time.Duration
		startup  time.Duration
		homeless time.Duration
	}{
		{"a start is timed from when it was asked for", []look{{0, Replicas{Wanted: 1, Ready: 1}}, {5 * s, Replicas{Wanted: 2, Ready: 1}}, {35 * s, Replicas{Wanted: 2, Ready: 2}}}, nil, 35 * s, 0},
		{"one that was ready by the next look is timed, too", []look{{0, Replicas{Wanted: 1, Ready: 1}}, {5 * s, Replicas{Wanted: 2, Ready: 2}}}, nil, 5 * s, 0},
		{"a pod that is replaced counts from when it was missed", []look{{0, Replicas{Wanted: 1, Ready: 1}}, {5 * s, Replicas{Wanted: 1}}, {15 * s, Replicas{Wanted: 1, Ready: 1}}}, nil, 10 * s, 0},
		{"what was on its way before the first look is of unknown age", []look{{0, Replicas{Wanted: 1}}, {5 * s, Replicas{Wanted: 1, Ready: 1}}}, nil, 0, 0},
		{"those that start have ages", []look{{0, Replicas{}}, {5 * s, Replicas{Wanted: 1}}, {10 * s, Replicas{Wanted: 2}}}, []time.Duration{10 * s, 5 * s}, 0, 0},
		{"who asks for fewer gives up the newest", []look{{0, Replicas{}}, {5 * s, Replicas{Wanted: 1}}, {10 * s, Replicas{Wanted: 2}}, {15 * s, Replicas{Wanted: 1}}}, []time.Duration{15 * s}, 0, 0},
		{"what is held back has not begun", []look{
			{0, Replicas{Wanted: 1, Ready: 1}}, {5 * s, Replicas{Wanted: 1, Held: true}}, {3600 * s, Replicas{Wanted: 1, Held: true}},
			{3605 * s, Replicas{Wanted: 1}}, {3630 * s, Replicas{Wanted: 1, Ready: 1}},
		}, nil, 30 * s, 0},
		{"and is of no age", []look{{0, Replicas{}}, {5 * s, Replicas{Wanted: 2, Held: true}}, {100 * s, Replicas{Wanted: 2, Held: true}}}, []time.Duration{0, 0}, 0, 0},
		{"who gets ready while others are held back began nobody knows when", []look{
			{0, Replicas{Wanted: 1, Ready: 1}}, {5 * s, Replicas{Wanted: 3, Ready: 1, Held: true}}, {90 * s, Replicas{Wanted: 3, Ready: 1, Held: true}}, {95 * s, Replicas{Wanted: 3, Ready: 2, Held: true}},
		}, []time.Duration{0}, 0, 0},
		{"without a node time counts from the first word of it", []look{{0, Replicas{Wanted: 1, Unschedulable: true}}, {60 * s, Replicas{Wanted: 1, Unschedulable: true}}}, []time.Duration{60 * s}, 0, 60 * s},
		{"a word of something else between does not begin it anew", []look{{0, Replicas{Wanted: 1, Unschedulable: true}}, {50 * s, Replicas{Wanted: 1, Unschedulable: true}}, {55 * s, Replicas{Wanted: 2}}, {60 * s, Replicas{Wanted: 2, Unschedulable: true}}}, []time.Duration{60 * s, 10 * s}, 0, 60 * s},
		{"who is silent of it for long has found a node", []look{{0, Replicas{Wanted: 1, Unschedulable: true}}, {10 * s, Replicas{Wanted: 1}}, {30 * s, Replicas{Wanted: 1}}, {35 * s, Replicas{Wanted: 1, Unschedulable: true}}, {40 * s, Replicas{Wanted: 1, Unschedulable: true}}}, []time.Duration{40 * s}, 0, 5 * s},
		{"who was ready begins anew", []look{{0, Replicas{Wanted: 1, Unschedulable: true}}, {5 * s, Replicas{Wanted: 1, Ready: 1}}, {10 * s, Replicas{Wanted: 2, Ready: 1, Unschedulable: true}}, {15 * s, Replicas{Wanted: 2, Ready: 1, Unschedulable: true}}}, []time.Duration{10 * s}, 0, 5 * s},
		{"a node that was found ends that", []look{{0, Replicas{Wanted: 1, Unschedulable: true}}, {60 * s, Replicas{Wanted: 1}}}, []time.Duration{60 * s}, 0, 0},
	} {
		t.Run(x.rule, func(t *testing.T) {
			var starts Starts
			now := time.Duration(0)
			for _, l := range x.looks {
				now = l.at
				starts = starts.Next(now, l.was)
			}
			if diff := cmp.Diff(x.starting, starts.Starting(now), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if got := Startup(starts, Starts{}); got != x.startup {
				t.Errorf("a start takes %v", got)
			}
			if got := starts.Unschedulable(now); got != x.homeless {
				t.Errorf("without a node for %v", got)
			}
		})
	}
}

func TestLacking(t *testing.T) {
	for message, want := range map[string]string{
		"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none": "nvidia.com/gpu",
		"0/3 nodes are available: 3 Insufficient cpu, 1 too old":                   "cpu",
		"Insufficient ": "Insufficient ",
		"no node":       "no node",
	} {
		if got := Lacking(message); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
}

func TestNumbersThatAreNoneAreNotCounted(t *testing.T) {
	c, err := Parse(strings.NewReader("# TYPE dynamo_frontend_requests_total counter\ndynamo_frontend_requests_total NaN\ndynamo_frontend_requests_total{status=\"a\"} +Inf\n"))
	if err != nil || c.Ended != 0 || math.IsNaN(c.Began) {
		t.Errorf("%+v, %v", c, err)
	}
}
