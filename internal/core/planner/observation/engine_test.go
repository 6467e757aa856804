package observation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/capacity"
)

func TestEnginesTellTheirLoad(t *testing.T) {
	for _, x := range []struct {
		rule, text       string
		running, waiting float64
		told             int
		cache            float64 // -1 where nobody tells
	}{
		{"vLLM", `# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a {b} c"} 3.0
vllm:num_requests_running{engine="0",model_name="a {b} c"} 5.0
vllm:kv_cache_usage_perc{engine="0",model_name="a {b} c"} 0.25
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 99.0
`, 5, 3, 1, 0.25},
		{"vLLM before it renamed its cache", "vllm:num_requests_waiting 1\nvllm:gpu_cache_usage_perc 0.5\n", 0, 1, 1, 0.5},
		{"one name of two counts", "vllm:num_requests_waiting 1\nvllm:gpu_cache_usage_perc 0.9\nvllm:kv_cache_usage_perc 0.5\ndynamo_component_gpu_cache_usage_percent{x=\"y\"} 0.7\n", 0, 1, 1, 0.5},
		{"ranks that have batches of their own add up", `vllm:num_requests_waiting{engine="0"} 3
vllm:num_requests_waiting{engine="1"} 4
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
`, 0, 7, 1, 0.5},
		{"SGLang, whose shards tell the same", `sglang:num_queue_reqs{model_name="m",dp_rank="0",tp_rank="0"} 3
sglang:num_queue_reqs{model_name="m",dp_rank="0",tp_rank="1"} 3
sglang:num_queue_reqs{model_name="m",dp_rank="1",tp_rank="0"} 2
sglang:num_running_reqs{model_name="m",dp_rank="0",tp_rank="0"} 4
sglang:token_usage{model_name="m",dp_rank="0",tp_rank="0"} 0.5
sglang:token_usage{model_name="m",dp_rank="1",tp_rank="0"} 0.25
`, 4, 5, 1, 0.375},
		{"TensorRT-LLM", "trtllm_num_requests_waiting 6\ntrtllm_num_requests_running 7\ntrtllm_kv_cache_utilization 0.5\n", 7, 6, 1, 0.5},
		{"one that tells of its cache by Dynamo alone", "trtllm_request_success_total 5\ndynamo_component_kvstats_gpu_cache_usage_percent 0.5\n", 0, 0, 0, 0.5},
		{"more than anybody serves", "vllm:num_requests_waiting 1e308\nvllm:num_requests_running 5\n", 5, 0, 1, -1},
		{"numbers that are none", "vllm:num_requests_waiting NaN\nvllm:kv_cache_usage_perc +Inf\n", 0, 0, 1, 0},
		{"nothing", "# a comment\nprocess_cpu_seconds_total 3\n", 0, 0, 0, -1},
	} {
		t.Run(x.rule, func(t *testing.T) {
			e, err := ParseEngine(strings.NewReader(x.text))
			if err != nil {
				t.Fatal(err)
			}
			cache, told := e.Cache()
			if !told {
				cache = -1
			}
			if diff := cmp.Diff([]float64{x.running, x.waiting, float64(x.told), x.cache}, []float64{e.Running, e.Waiting, float64(e.Told), cache}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAPageOfAnEngineIsReadInAFewBytes: of many at once each would take its size tenfold.
func TestAPageOfAnEngineIsReadInAFewBytes(t *testing.T) {
	adapters := "vllm:lora_requests_info{running_lora_adapters=\"" + strings.Repeat("a,", 1<<20) + "\"} 1\n"
	waiting := func(series int) string {
		var page strings.Builder
		for i := range series {
			fmt.Fprintf(&page, "vllm:num_requests_waiting{engine=\"%d\",model_name=\"m\"} 1\n", i)
		}
		return page.String()
	}
	for _, x := range []struct {
		rule, page string
		waiting    float64
		refused    bool
	}{
		{"what is not looked at may be long", adapters + waiting(3) + adapters, 3, false},
		{"a line that is, a little", "vllm:num_requests_waiting{model_name=\"" + strings.Repeat("m", 1<<14) + "\"} 5\n" + adapters, 5, false},
		{"ranks are hundreds at most", waiting(200), 200, false},
		{"and not thousands", waiting(5000), 0, true},
		{"nor is a name longer than a page", "vllm:num_requests_waiting{model_name=\"" + strings.Repeat("m", 1<<17) + "\"} 5\n", 0, true},
	} {
		t.Run(x.rule, func(t *testing.T) {
			e, err := ParseEngine(strings.NewReader(x.page))
			if (err != nil) != x.refused || e.Waiting != x.waiting {
				t.Errorf("%v wait, %v", e.Waiting, err)
			}
		})
	}
}

func TestWhatFrontendsDoNotTellEnginesDo(t *testing.T) {
	prefill, decode := Engines{Running: 2, Waiting: 30, Told: 2, Asked: 2}, Engines{Running: 12, Waiting: 1, Told: 1, Asked: 1}
	part := func(e Engines) Engines {
		e.Asked++
		return e
	}
	took := capacity.Observation{Requests: 10, FirstToken: 0.5, Token: 0.01}
	all := Counters{InFlight: 50, Queued: 8, TellsInFlight: true, TellsQueued: true}
	old := Counters{InFlight: 50, TellsInFlight: true}
	for _, x := range []struct {
		rule            string
		counted         []Counters
		prefill, decode Engines
		queue, active   float64
		observed        capacity.Observation
	}{
		{"what frontends tell is not counted twice", []Counters{all}, prefill, decode, 8, 42, took},
		{"nor is a queue that they tell to be empty", []Counters{{InFlight: 50, TellsInFlight: true, TellsQueued: true}}, prefill, decode, 0, 50, took},
		{"who waits for a first token is in a prefill engine", []Counters{old}, prefill, decode, 32, 18, took},
		{"and who has one in a decode engine", []Counters{{}}, prefill, decode, 32, 13, took},
		{"engines that tell nothing change nothing", []Counters{old}, Engines{Asked: 2}, Engines{Asked: 1}, 0, 50, took},
		{"a frontend that tells does not speak for another", []Counters{all, old}, prefill, decode, 32, 68, took},
		{"nor before it", []Counters{old, all}, prefill, decode, 32, 68, took},
		{"and knows who waits for it", []Counters{{InFlight: 50, Queued: 40, TellsInFlight: true, TellsQueued: true}, old}, part(prefill), decode, 40, 60, capacity.Observation{}},
		{"of a queue that is told in part at least that much is there, and times may be of waits", []Counters{old}, part(prefill), decode, 32, 18, capacity.Observation{}},
		{"of batches as well", []Counters{{Queued: 8, TellsQueued: true}}, prefill, part(decode), 8, 13, capacity.Observation{}},
		{"what frontends tell is enough", []Counters{all}, part(prefill), part(decode), 8, 42, took},
	} {
		t.Run(x.rule, func(t *testing.T) {
			look := Look{Frontends: map[string]Counters{}}
			for i, c := range x.counted {
				look.Frontends[fmt.Sprint(i)] = c
			}
			r, _ := Traffic{}.Next(look, 1)
			r.Observed = took
			r = r.Beside(x.prefill, x.decode)
			if diff := cmp.Diff([]float64{x.queue, x.active}, []float64{r.Queue, r.Active}); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(x.observed, r.Observed); diff != "" {
				t.Error(diff)
			}
		})
	}
}
