package config

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/decision"
	"github.com/dynamo-operator/dynamo-operator/internal/core/planner/original"
)

func machine() Machine {
	return Machine{
		Env:   map[string]string{"DYN_PARENT_DGD_K8S_NAME": "chat", "POD_NAMESPACE": "lab", "PLANNER_PROMETHEUS_PORT": "9085", "DYN_SYSTEM_PORT": "9090", "GPUS": "4"},
		Files: fstest.MapFS{"etc/planner.yaml": {Data: []byte("ttft_ms: 250\nmode: agg\n")}},
		Dir:   "/etc",
	}
}

func told(change func(*Config)) Config {
	c := Config{
		Graph: "chat", Namespace: "lab", Mode: Disaggregated, Policy: Native, Interval: 3 * time.Minute, Tick: 5 * time.Second,
		Budget: 8, Floors: decision.Vector{1, 1}, Profile: "profiling_results", TTFT: 500 * time.Millisecond, ITL: 50 * time.Millisecond,
		Predictor: original.Constant, QLevel: 1, QTrend: 0.1, RNoise: 10, Port: 9085, SystemPort: 9090,
	}
	if change != nil {
		change(&c)
	}
	return c
}

func TestEveryFormOfStartingAPlannerIsRead(t *testing.T) {
	published := func(c *Config) { c.Interval, c.Profile = time.Minute, "/workspace/profiling_results" }
	tests := []string{"--environment=kubernetes", "--backend=vllm", "--adjustment-interval=60", "--profile-results-dir=/workspace/profiling_results"}
	for _, x := range []struct {
		rule   string
		words  []string
		change func(*Config)
	}{
		{"nothing is the defaults", nil, nil},
		{"bare flags", tests, published},
		{"a module after an interpreter", append([]string{"python3", "-m", "planner_sla"}, tests...), published},
		{"a module alone, of a replaced command", append([]string{"-m", "dynamo.planner.planner_sla"}, tests...), published},
		{"a line of a shell", []string{"/bin/sh", "-c", "exec python3 -m planner_sla --ttft 200 --itl 10 --no-correction --prometheus-port=9085\n"}, func(c *Config) {
			c.TTFT, c.ITL, c.NoCorrection = 200*time.Millisecond, 10*time.Millisecond, true
		}},
		{"a variable in a line", []string{"sh", "-c", "cd /x && python3 -m planner_sla --max-gpu-budget=$GPUS"}, func(c *Config) { c.Budget = 4 }},
		{"the line that a replaced shell leaves", []string{"python3 -m planner_sla --ttft 200"}, func(c *Config) { c.TTFT = 200 * time.Millisecond }},
		{"a beginning that is one name's alone", []string{"--max-g", "16", "--no-op"}, func(c *Config) { c.Budget, c.Advisory = 16, true }},
		{"a budget of -1 is none", []string{"--max-gpu-budget=-1"}, func(c *Config) { c.Budget = 0 }},
		{"a value may begin with a dash", []string{"--max-gpu-budget", "-1"}, func(c *Config) { c.Budget = 0 }},
		{"floors of a role win over those of both", []string{"--min-endpoint=2", "--decode-min-endpoint=3"}, func(c *Config) { c.Floors = decision.Vector{2, 3} }},
		{"and whichever is said first", []string{"--decode-min-endpoint=3", "--min-endpoint=2"}, func(c *Config) { c.Floors = decision.Vector{2, 3} }},
		{"in a document too", []string{"--config", `{"decode_min_endpoint":3,"min_endpoint":2}`}, func(c *Config) { c.Floors = decision.Vector{2, 3} }},
		{"and between a document and a flag", []string{"--config", `{"decode_min_endpoint":3}`, "--min-endpoint=2"}, func(c *Config) { c.Floors = decision.Vector{2, 3} }},
		{"either switch is enough to write nothing", []string{"--config", `{"advisory":true,"no_operation":false}`}, func(c *Config) { c.Advisory = true }},
		{"whichever of the two it is", []string{"--config", `{"advisory":false,"no_operation":true}`}, func(c *Config) { c.Advisory = true }},
		{"and whatever is said of it later", []string{"--no-operation", "--config", `{"advisory":false}`}, func(c *Config) { c.Advisory = true }},
		{"neither of them is no adviser", []string{"--config", `{"advisory":false,"no_operation":false}`}, nil},
		{"a document of the later revision", []string{"-m", "dynamo.planner", "--config", `{"environment":"kubernetes","backend":"vllm","ttft_ms":200,"itl":20,"max_gpu_budget":-1,"advisory":true,"enable_load_scaling":false,"throughput_adjustment_interval_seconds":30}`}, func(c *Config) {
			c.TTFT, c.ITL, c.Budget, c.Advisory, c.Interval = 200*time.Millisecond, 20*time.Millisecond, 0, true, 30*time.Second
		}},
		{"a document in a file", []string{"--config", "/etc/planner.yaml"}, func(c *Config) { c.TTFT, c.Mode = 250*time.Millisecond, Aggregated }},
		{"a file of the working directory", []string{"--config", "planner.yaml"}, func(c *Config) { c.TTFT, c.Mode = 250*time.Millisecond, Aggregated }},
		{"a file that is not there is no reason to act on the defaults", []string{"--config", "/nowhere.yaml"}, func(c *Config) { c.Advisory = true }},
		{"whatever flags say", []string{"--config", "/nowhere.yaml", "--advisory=false", "--ttft=200"}, func(c *Config) { c.TTFT, c.Advisory = 200*time.Millisecond, true }},
		{"who arbitrates among graphs stays up", []string{"python3", "-m", "dynamo.global_planner", "--no-operation", "--max-total-gpus=8"}, func(c *Config) { c.Idle, c.Advisory = true, true }},
		{"what GPUs are, and cost", []string{"--gpu=h100_sxm", "--price-per-gpu-hour=3.2"}, func(c *Config) { c.GPU, c.Price = [2]string{"h100_sxm", "h100_sxm"}, [2]float64{3.2, 3.2} }},
		{"what they cost, in a document", []string{"--config", `{"price_per_gpu_hour":2.5}`}, func(c *Config) { c.Price = [2]float64{2.5, 2.5} }},
		{"those of a role win over those of both", []string{"--prefill-gpu=l40s", "--gpu=h100_sxm", "--config", `{"decode_price_per_gpu_hour":2.5,"price_per_gpu_hour":3}`}, func(c *Config) {
			c.GPU, c.Price = [2]string{"l40s", "h100_sxm"}, [2]float64{3, 2.5}
		}},
		{"the policy of the original", []string{"--policy=original", "--load-predictor=kalman", "--kalman-r=5"}, func(c *Config) {
			c.Policy, c.Predictor, c.RNoise = Original, original.Kalman, 5
		}},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, err := New(x.words, machine())
			if err != nil {
				t.Fatal(err)
			}
			c.Notes = nil
			if diff := cmp.Diff(told(x.change), c); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatHasNoEffectIsSaid(t *testing.T) {
	for _, x := range []struct {
		rule  string
		words []string
		said  string
	}{
		{"a predictor of a library", []string{"--load-predictor=arima"}, foreseen},
		{"a Prometheus", []string{"--metric-pulling-prometheus-endpoint", "http://p"}, direct},
		{"another environment", []string{"--environment=global-planner"}, operator},
		{"a key that nobody knows", []string{"--config", `{"optimisation_target":"sla"}`}, "the nearest is optimization_target"},
		{"a file that is in another image", []string{"--config", "/nowhere.yaml"}, "nothing is written"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			c, err := New(x.words, machine())
			if err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), x.said) {
				t.Errorf("%v, %v", c.Notes, err)
			}
		})
	}
}

func TestAFileThatNobodyCanReadIsSaid(t *testing.T) {
	c, err := New([]string{"--config", "/etc/planner.yaml"}, Machine{Env: machine().Env})
	if err != nil || !strings.Contains(strings.Join(c.Notes, "\n"), "the defaults count") {
		t.Errorf("%v, %v", c.Notes, err)
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	for _, x := range []struct {
		rule  string
		words []string
		said  string
	}{
		{"an argument that nobody knows, with the nearest", []string{"--adjustment-intervall=3"}, "--adjustment-interval"},
		{"a beginning of two names", []string{"--load-predictor-"}, "could be"},
		{"a word that is no argument", []string{"serve"}, "want --name"},
		{"a value that is missing", []string{"--ttft"}, "missing"},
		{"a value that is no number", []string{"--ttft=fast"}, "positive number"},
		{"a number that is none", []string{"--itl=NaN"}, "positive number"},
		{"a price that nothing can be multiplied with", []string{"--price-per-gpu-hour=1e308"}, "at most"},
		{"another environment's protocol", []string{"--environment=virtual"}, "Kubernetes"},
		{"plugins", []string{"--config", `{"plugin_registration":{"a":1}}`}, "plugins"},
		{"a line that starts no planner", []string{"sh", "-c", "exit 0"}, "starts no planner"},
		{"a command within a line", []string{"sh", "-c", "python3 -m planner_sla --ttft $(cat /etc/passwd)"}, "substitution"},
		{"a document that is none", []string{"--config", "{"}, "--config"},
	} {
		t.Run(x.rule, func(t *testing.T) {
			_, err := New(x.words, machine())
			if _, usage := errors.AsType[Usage](err); !usage || !strings.Contains(err.Error(), x.said) {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := New(nil, Machine{}); err == nil {
		t.Error("a planner without a graph was started")
	}
}

func TestALineThatOnlyEndsIsAProbe(t *testing.T) {
	for line, want := range map[string]bool{"exit 0": true, "exit 3": true, "exit": false, "python3 -m planner_sla": false, "exit 0; rm x": false} {
		if _, ends := Exit([]string{"/bin/sh", "-c", line}); ends != want {
			t.Errorf("%q: %v", line, ends)
		}
	}
}
