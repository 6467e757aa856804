package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
)

// generational is what the operator sets on every worker of 1.x.
func generational(more podenv.Env) podenv.Env {
	env := podenv.Env{"DYN_NAMESPACE": "ns-chat", "DYN_NAMESPACE_WORKER_SUFFIX": "1f2e", "DYN_FORWARDPASS_METRIC_PORT": "20380"}
	maps.Copy(env, more)
	return env
}

func TestWhatAWorkerRegistersAs(t *testing.T) {
	type said struct {
		Namespace, Component string
		Worker               discovery.WorkerType
		Needs                []discovery.WorkerType
	}
	needsPrefill, needsDecode := []discovery.WorkerType{discovery.PrefillWorker}, []discovery.WorkerType{discovery.DecodeWorker}
	for name, c := range map[string]struct {
		backend, args string
		env           podenv.Env
		want          said
	}{
		"a worker of 1.x has its generation's namespace":    {"vllm", "", generational(nil), said{"ns-chat-1f2e", "backend", discovery.AggregatedWorker, nil}},
		"a worker before has the graph's, and says no type": {"vllm", "--is-decode-worker", podenv.Env{"DYN_NAMESPACE": "ns-chat"}, said{"ns-chat", "backend", "", nil}},
		"vllm decode by mode":                               {"vllm", "--disaggregation-mode decode", generational(nil), said{"ns-chat-1f2e", "backend", discovery.DecodeWorker, needsPrefill}},
		"vllm prefill by mode":                              {"vllm", "--disaggregation-mode prefill", generational(nil), said{"ns-chat-1f2e", "prefill", discovery.PrefillWorker, needsDecode}},
		"vllm aggregated by mode":                           {"vllm", "--disaggregation-mode agg", generational(nil), said{"ns-chat-1f2e", "backend", discovery.AggregatedWorker, nil}},
		"vllm prefill by its old flag":                      {"vllm", "--is-prefill-worker", generational(nil), said{"ns-chat-1f2e", "prefill", discovery.PrefillWorker, needsDecode}},
		"sglang decode":                                     {"sglang", "--disaggregation-mode decode", generational(nil), said{"ns-chat-1f2e", "backend", discovery.DecodeWorker, needsPrefill}},
		"trtllm prefill":                                    {"trtllm", "--disaggregation-mode prefill", generational(nil), said{"ns-chat-1f2e", "prefill", discovery.PrefillWorker, needsDecode}},
		"mocker decode by mode":                             {"mocker", "--model-path m --disaggregation-mode decode", generational(nil), said{"ns-chat-1f2e", "backend", discovery.DecodeWorker, needsPrefill}},
		"an endpoint in the graph's namespace":              {"sglang", "--endpoint dyn://ns-chat.mine.generate", generational(nil), said{"ns-chat-1f2e", "mine", discovery.AggregatedWorker, nil}},
		"an endpoint elsewhere":                             {"sglang", "--endpoint dyn://other.mine.generate", generational(nil), said{"other", "mine", discovery.AggregatedWorker, nil}},
		"1.x without a suffix":                              {"vllm", "--disaggregation-mode decode", podenv.Env{"DYN_NAMESPACE": "ns-chat", "DYN_FORWARDPASS_METRIC_PORT": "20380"}, said{"ns-chat", "backend", discovery.DecodeWorker, needsPrefill}},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch.Program{Kind: launch.Worker, Name: "dynamo." + c.backend, Args: strings.Fields(c.args), Env: c.env}
			config, err := NewConfig(p, Knobs{Speedup: 1, Slowdown: 1})
			if err != nil {
				t.Fatal(err)
			}
			card := config.Card()
			if diff := cmp.Diff(c.want, said{config.Address.Namespace, config.Address.Component, card.Worker, card.Needs}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHealthOfAGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		env  podenv.Env
		do   func(*Health)
		want bool
	}{
		"the starting status stands at first":       {generational(podenv.Env{"DYN_SYSTEM_STARTING_HEALTH_STATUS": "notready"}), func(*Health) {}, false},
		"then that of the endpoints":                {generational(podenv.Env{"DYN_SYSTEM_STARTING_HEALTH_STATUS": "notready"}), func(h *Health) { h.Set("generate", true) }, true},
		"an endpoint that is gone":                  {generational(nil), func(h *Health) { h.Set("generate", true); h.Set("load_lora", false) }, false},
		"before 1.x it stands for ever":             {podenv.Env{}, func(h *Health) { h.Set("generate", true) }, false},
		"a list of endpoints decides all the same":  {generational(podenv.Env{"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": `["generate"]`}), func(h *Health) { h.Set("load_lora", true) }, false},
		"an engine that stands by is well":          {generational(nil), func(h *Health) { h.Standby(true) }, true},
		"one that stood by is as its endpoints are": {generational(nil), func(h *Health) { h.Standby(true); h.Standby(false) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := NewHealth(c.env, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			c.do(h)
			if got := h.Ready(); got != c.want {
				t.Errorf("ready %v, want %v", got, c.want)
			}
		})
	}
}

// journal is a log that is read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// serving runs a worker of 1.x in a pod at host until the test or the returned
// function ends it.
func serving(t *testing.T, host, args string, more podenv.Env) (log *journal, stop func() int) {
	t.Helper()
	env := generational(more)
	env["DYNAMO_LISTEN_HOST"] = host
	knobs, err := NewKnobs(env)
	if err != nil {
		t.Fatal(err)
	}
	config, err := NewConfig(launch.Program{Kind: launch.Worker, Name: "dynamo.vllm", Args: strings.Fields(args), Env: env}, knobs)
	if err != nil {
		t.Fatal(err)
	}
	log = &journal{}
	w, err := New(config, knobs, env, discovery.NewHub().Join(), 1, log, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- w.Run(ctx) }()
	status := -1
	stop = func() int { // the engine's exit status
		cancel()
		if status < 0 {
			status = <-ended
		}
		return status
	}
	t.Cleanup(func() { stop() })
	return log, stop
}

// address is one of this process: ports on it are well known.
func address(i int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%15, os.Getpid()/15%256, 100+i)
}

// answers reports the status of a URL; 0 if nobody listens.
func answers(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

const nixl = `--kv-transfer-config {"kv_connector":"NixlConnector"}`

func TestPortsOfNIXL(t *testing.T) {
	host := address(1)
	serving(t, host, nixl, podenv.Env{"NIXL_TELEMETRY_ENABLE": "y", "NIXL_TELEMETRY_PROMETHEUS_PORT": "19090"})
	eventually(t, "telemetry is served", func() bool { return answers("http://"+host+":19090/metrics") == http.StatusOK })
	conn, err := net.Dial("tcp", host+":5600")
	if err != nil {
		t.Fatalf("side channel: %v", err)
	}
	_ = conn.Close()
	log, stop := serving(t, host, nixl, nil)
	eventually(t, "a second engine on the same port dies", func() bool { return strings.Contains(log.String(), "is taken") })
	if got := stop(); got != ExitEngineDied {
		t.Errorf("it ended with %d", got)
	}
	if want := "port 5600 is taken: another engine of the pod needs its own, in VLLM_NIXL_SIDE_CHANNEL_PORT"; !strings.Contains(log.String(), want) {
		t.Errorf("no %q in\n%s", want, log)
	}
	quiet := address(2)
	serving(t, quiet, "", podenv.Env{"NIXL_TELEMETRY_ENABLE": "n", "NIXL_TELEMETRY_PROMETHEUS_PORT": "19090", "DYN_SYSTEM_PORT": "9090"})
	eventually(t, "the engine serves", func() bool { return answers("http://"+quiet+":9090/live") == http.StatusOK })
	if got := answers("http://" + quiet + ":19090/metrics"); got != 0 {
		t.Errorf("telemetry that is switched off answers %d", got)
	}
	if conn, err := net.Dial("tcp", quiet+":5600"); err == nil {
		_ = conn.Close()
		t.Error("an engine without KV transfers has a side channel")
	}
}

func TestAShadowEngineTakesOver(t *testing.T) {
	host := address(3)
	shadow := func(id int) podenv.Env {
		return podenv.Env{
			"ENGINE_ID": fmt.Sprint(id), "DYN_SYSTEM_PORT": fmt.Sprint(9090 + id), "VLLM_NIXL_SIDE_CHANNEL_PORT": fmt.Sprint(5600 + id),
			"FAILOVER_LOCK_PATH": "/control/failover.lock", "DYN_VLLM_GMS_SHADOW_MODE": "true", "DYN_SYSTEM_STARTING_HEALTH_STATUS": "notready",
		}
	}
	ready := func(id int) bool { return answers(fmt.Sprintf("http://%s:%d/health", host, 9090+id)) == http.StatusOK }
	_, stop := serving(t, host, nixl, shadow(0))
	eventually(t, "the first engine serves", func() bool { return ready(0) && answers("http://"+host+":8888/v1/rpc/generate") != 0 })
	log, _ := serving(t, host, nixl, shadow(1))
	eventually(t, "the second engine stands by and is well", func() bool { return ready(1) })
	if !strings.Contains(log.String(), "standing by") || strings.Contains(log.String(), "this engine serves") {
		t.Errorf("the second engine says\n%s", log)
	}
	stop()
	eventually(t, "the second engine serves", func() bool { return answers("http://"+host+":8888/v1/rpc/generate") != 0 && ready(1) })
}
