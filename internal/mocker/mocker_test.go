package mocker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/frontend"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/podenv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/worker"
)

var quiet = slog.New(slog.DiscardHandler)

// graph is a frontend and its workers in this process.
type graph struct {
	t   *testing.T
	hub *discovery.Hub
	url string
}

func newGraph(t *testing.T, args ...string) *graph {
	t.Helper()
	config, err := frontend.NewConfig(launch.Program{Args: args, Env: podenv.Env{}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.NewClient("")
	if err != nil {
		t.Fatal(err)
	}
	g := &graph{t: t, hub: discovery.NewHub()}
	f := frontend.New(config, g.hub.Join(), client, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go f.Follow(ctx)
	server := httptest.NewServer(f.Handler())
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// worker starts one and returns how to end it and learn its exit status.
func (g *graph) worker(instance uint64, env podenv.Env, args ...string) (stop func() int) {
	g.t.Helper()
	if env == nil {
		env = podenv.Env{"MOCKER_SPEEDUP": "100", "MOCKER_DRAIN_LINGER": "50ms"}
	}
	env["DYN_SYSTEM_PORT"] = "0"
	knobs, err := worker.NewKnobs(env)
	if err != nil {
		g.t.Fatal(err)
	}
	config, err := worker.NewConfig(launch.Program{Kind: launch.Worker, Name: "dynamo.vllm", Args: append([]string{"--model", "m"}, args...), Env: env}, knobs)
	if err != nil {
		g.t.Fatal(err)
	}
	w, err := worker.New(config, knobs, env, g.hub.Join(), instance, io.Discard, quiet)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	g.t.Cleanup(func() { stop() })
	return stop
}

func (g *graph) get(path string) string {
	g.t.Helper()
	response, err := http.Get(g.url + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(body)
}

func (g *graph) post(path, body string) (int, string) {
	g.t.Helper()
	response, err := http.Post(g.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (g *graph) await(path, part string) {
	g.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !strings.Contains(g.get(path), part) {
		if time.Now().After(deadline) {
			g.t.Fatalf("%s never has %q: %s", path, part, g.get(path))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

const (
	chatBody   = `{"model":"m","messages":[{"role":"user","content":"tell me of rivers and mountains"}],"max_tokens":12`
	generateAt = "component\":\"%s\",\"endpoint\":\"generate\",\"instance_id\":%d"
)

// streamed is a chat answer put together from its events.
type streamed struct {
	text, finish, role string
	usage              map[string]any
	chunks             int
	errors             []string
	done               bool
}

func (g *graph) stream(body string) streamed {
	g.t.Helper()
	response, err := http.Post(g.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		g.t.Fatalf("content type %s, status %s: %s", got, response.Status, text)
	}
	var s streamed
	name := ""
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		line := lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			s.done = true
			continue
		}
		if name == "error" {
			s.errors = append(s.errors, data)
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta        struct{ Content, Role string }
				FinishReason *string `json:"finish_reason"`
			}
			Usage map[string]any
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			g.t.Fatalf("chunk %s: %v", data, err)
		}
		for _, choice := range chunk.Choices {
			s.chunks++
			s.text += choice.Delta.Content
			s.role += choice.Delta.Role
			if choice.FinishReason != nil {
				s.finish = *choice.FinishReason
			}
		}
		if chunk.Usage != nil {
			s.usage = chunk.Usage
		}
	}
	return s
}

func TestDisaggregatedGraphStreamsTokens(t *testing.T) {
	g := newGraph(t, "--enforce-disagg")
	if status, body := g.post("/v1/chat/completions", chatBody+"}"); status != 404 || body != "" {
		t.Errorf("before any worker: %d %q, want a bare 404", status, body)
	}
	stopPrefill := g.worker(1, nil, "--is-prefill-worker")
	g.worker(2, nil)
	g.worker(3, nil)
	for component, instances := range map[string][]int{"prefill": {1}, "backend": {2, 3}} {
		for _, id := range instances {
			g.await("/health", fmt.Sprintf(generateAt, component, id))
		}
	}
	g.await("/v1/models", `"id":"m"`)

	s := g.stream(chatBody + `,"stream":true,"stream_options":{"include_usage":true}}`)
	if s.usage["completion_tokens"] != 12.0 || s.finish != "length" || s.role != "assistant" || !s.done || len(strings.Fields(s.text)) < 10 {
		t.Errorf("streamed %+v", s)
	}
	status, body := g.post("/v1/chat/completions", chatBody+"}")
	var whole struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(body), &whole); err != nil || status != 200 {
		t.Fatalf("unary: %d %s %v", status, body, err)
	}
	if whole.Choices[0].Message.Content != s.text {
		t.Errorf("unary says %q, the stream said %q", whole.Choices[0].Message.Content, s.text)
	}

	if got := stopPrefill(); got != 0 {
		t.Errorf("prefill worker ended with %d", got)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		if status, body = g.post("/v1/chat/completions", chatBody+"}"); status == 503 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("without a prefill worker: %d %s, want 503", status, body)
		}
	}
	if !strings.Contains(body, `"code":503`) || !strings.Contains(body, `"type":"Service Unavailable"`) {
		t.Errorf("error body %s", body)
	}
}

func TestWithoutPrefillTheGraphServesAggregated(t *testing.T) {
	g := newGraph(t)
	stop := g.worker(1, nil, "--is-prefill-worker")
	g.worker(2, nil)
	g.await("/health", fmt.Sprintf(generateAt, "prefill", 1))
	g.await("/v1/models", `"id":"m"`)
	stop()
	if status, body := g.post("/v1/chat/completions", chatBody+"}"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestRoundRobinReachesBothWorkers(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil)
	g.worker(3, nil)
	g.await("/health", fmt.Sprintf(generateAt, "backend", 2))
	g.await("/health", fmt.Sprintf(generateAt, "backend", 3))
	g.await("/v1/models", `"id":"m"`)
	// The same prompt is cached on a worker from the second time on.
	prompt := `{"model":"m","max_tokens":1,"prompt":"` + strings.Repeat("word ", 64) + `"}`
	var cached []string
	for range 4 {
		_, body := g.post("/v1/completions", prompt)
		_, after, found := strings.Cut(body, `"cached_tokens":`)
		if !found {
			t.Fatalf("no cached_tokens in %s", body)
		}
		cached = append(cached, after[:2])
	}
	if cached[0] != cached[1] || cached[2] != cached[3] || cached[1] == cached[2] {
		t.Errorf("cached tokens %q: want two cold answers, then two warm ones", cached)
	}
}

func TestDrainingWorkerFinishesItsAnswers(t *testing.T) {
	g := newGraph(t)
	stop := g.worker(2, podenv.Env{"MOCKER_SPEEDUP": "2", "MOCKER_DRAIN_LINGER": "0"})
	g.await("/v1/models", `"id":"m"`)
	done := make(chan streamed, 1)
	go func() {
		done <- g.stream(`{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":100,"stream":true,"stream_options":{"include_usage":true}}`)
	}()
	g.await("/metrics", `dynamo_frontend_output_tokens_total{model="m"}`)
	if got := stop(); got != 0 {
		t.Errorf("exit status %d, want 0", got)
	}
	if s := <-done; s.usage["completion_tokens"] != 100.0 {
		t.Errorf("the answer under way got %v", s.usage)
	}
}

func TestDrainThatTakesTooLong(t *testing.T) {
	g := newGraph(t)
	stop := g.worker(2, podenv.Env{"MOCKER_DRAIN_LINGER": "0", "DYN_WORKER_GRACEFUL_SHUTDOWN_TIMEOUT": "0.05"})
	g.await("/v1/models", `"id":"m"`)
	done := make(chan streamed, 1)
	go func() {
		done <- g.stream(`{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":10000,"stream":true}`)
	}()
	g.await("/metrics", `dynamo_frontend_output_tokens_total{model="m"}`)
	if got := stop(); got != worker.ExitDrainOverrun {
		t.Errorf("exit status %d, want %d", got, worker.ExitDrainOverrun)
	}
	if s := <-done; len(s.errors) != 1 || s.done {
		t.Errorf("a stream cut in the middle ended with errors %q, done %v; want one error event", s.errors, s.done)
	}
}

// mortal is a worker that dies after some tokens, or never answers at all.
func (g *graph) mortal(instance uint64, tokens int, limit int) {
	g.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, ok := wire.Read(w, r)
		if !ok {
			return
		}
		out := wire.NewWriter(w)
		for n := range tokens {
			_, word := text.At(request.Seed, request.Offset+n)
			if out.Send(wire.Chunk{Text: word, Tokens: 1}) != nil {
				return
			}
		}
		panic(http.ErrAbortHandler)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	g.t.Cleanup(server.Close)
	url := server.URL
	if tokens < 0 {
		server.Close() // nothing listens there any more
	}
	a := discovery.Address{Namespace: "dynamo", Component: "backend", Endpoint: "generate", Instance: instance}
	data := discovery.NewMetadata()
	data.Endpoints[a.Key()] = discovery.NewEndpoint(a, url)
	model := discovery.NewModel(a, discovery.Card{
		DisplayName: "m", Slug: "m", SourcePath: "m", ContextLength: 40960, BlockSize: 16, ModelType: discovery.Generative, ModelInput: "Tokens", MigrationLimit: limit,
	}, "")
	data.ModelCards[model.Key()] = model
	g.hub.Join().Publish(data)
	g.await("/health", fmt.Sprintf(generateAt, "backend", instance))
}

func TestLostWorkers(t *testing.T) {
	body := func(pin string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hello"}],"max_tokens":9` + pin + `}`
	}
	t.Run("without migration a worker that is not there is an error", func(t *testing.T) {
		g := newGraph(t)
		g.mortal(1, -1, 0)
		g.await("/v1/models", `"id":"m"`)
		if status, answer := g.post("/v1/chat/completions", body("")); status != 503 {
			t.Errorf("%d %s, want 503", status, answer)
		}
		g.await("/metrics", `status="error"} 1`)
	})
	t.Run("without migration a worker that dies before the first token is an error", func(t *testing.T) {
		g := newGraph(t)
		g.mortal(1, 0, 0)
		g.worker(2, nil)
		g.await("/v1/models", `"id":"m"`)
		if status, answer := g.post("/v1/chat/completions", body(`,"nvext":{"backend_instance_id":1}`)); status != 503 {
			t.Errorf("%d %s, want 503", status, answer)
		}
	})
	t.Run("with migration another worker takes over", func(t *testing.T) {
		g := newGraph(t)
		g.mortal(1, -1, 3)
		g.mortal(2, 4, 3)
		g.mortal(4, 0, 3)
		g.worker(3, nil, "--migration-limit", "3")
		g.await("/health", fmt.Sprintf(generateAt, "backend", 3))
		want := ""
		for range 4 { // whoever is first, the answer is whole and the same
			s := g.stream(body(`,"stream":true,"stream_options":{"include_usage":true}`))
			if s.usage["completion_tokens"] != 9.0 || len(s.errors) > 0 {
				t.Fatalf("answer %+v", s)
			}
			if want == "" {
				want = s.text
			}
			if s.text != want {
				t.Errorf("answer %q, want %q", s.text, want)
			}
		}
		g.await("/metrics", `dynamo_frontend_model_migration_total{migration_type="ongoing_request",model="m"}`)
		g.await("/metrics", `dynamo_frontend_model_migration_total{migration_type="new_request",model="m"}`)
	})
}

func TestErrors(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil, "--max-model-len", "100")
	g.await("/v1/models", `"id":"m"`)
	long := strings.Repeat("word ", 100)
	for name, c := range map[string]struct {
		path, body string
		status     int
		message    string
	}{
		"an unknown model":            {"/v1/chat/completions", `{"model":"x","messages":[{"role":"user","content":"a"}]}`, 404, "Model not found"},
		"bad JSON":                    {"/v1/chat/completions", `{"model":`, 400, "parse"},
		"a field of the wrong type":   {"/v1/chat/completions", `{"model":"m","messages":"x"}`, 400, "parse"},
		"no messages":                 {"/v1/chat/completions", `{"model":"m"}`, 400, "messages"},
		"several answers":             {"/v1/chat/completions", `{"model":"m","n":2,"messages":[{"role":"user","content":"a"}]}`, 501, "only 1"},
		"no tokens wanted":            {"/v1/completions", `{"model":"m","prompt":"a","max_tokens":0}`, 400, "max_tokens"},
		"a prompt beyond the context": {"/v1/completions", `{"model":"m","prompt":"` + long + `"}`, 400, "maximum context length is 100"},
		"no prompt":                   {"/v1/completions", `{"model":"m"}`, 400, "prompt"},
		"a worker that is not there":  {"/v1/completions", `{"model":"m","prompt":"a","nvext":{"backend_instance_id":99}}`, 503, "Service temporarily unavailable"},
		"no embedding model":          {"/v1/embeddings", `{"model":"m","input":"a"}`, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := g.post(c.path, c.body)
			if status != c.status || !strings.Contains(body, c.message) {
				t.Errorf("%d %s, want %d with %q", status, body, c.status, c.message)
			}
			if c.message != "" && (!strings.Contains(body, fmt.Sprintf(`"code":%d`, c.status)) || !strings.Contains(body, `"type":"`+http.StatusText(c.status)+`"`)) {
				t.Errorf("error body is not flat: %s", body)
			}
		})
	}
}

func TestLengthAndStop(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil)
	g.await("/v1/models", `"id":"m"`)
	ask := func(extra string) (text, reason string, tokens float64) {
		status, body := g.post("/v1/completions", `{"model":"m","prompt":"the same question"`+extra+`}`)
		var answer struct {
			Choices []struct {
				Text   string
				Reason string `json:"finish_reason"`
			}
			Usage map[string]any
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		return answer.Choices[0].Text, answer.Choices[0].Reason, answer.Usage["completion_tokens"].(float64)
	}
	natural, reason, length := ask("")
	if reason != "stop" || length < 10 {
		t.Errorf("an answer without limit ends with %q after %v tokens", reason, length)
	}
	if _, reason, n := ask(`,"max_tokens":300,"nvext":{"ignore_eos":true}`); reason != "length" || n != 300 {
		t.Errorf("max_tokens 300 gave %v tokens, %q", n, reason)
	}
	words := strings.Fields(natural)
	cut, reason, n := ask(`,"stop":[" ` + words[3] + `"]`)
	if reason != "stop" || strings.Contains(cut, " "+words[3]) || n > 5 || !strings.HasPrefix(natural, cut) {
		t.Errorf("stop at %q gave %q (%q, %v tokens)", words[3], cut, reason, n)
	}
}

func TestResponsesAndEmbeddings(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil)
	g.worker(3, nil, "--served-model-name", "e", "--task", "embed")
	g.await("/v1/models", `"id":"m"`)
	g.await("/v1/models", `"id":"e"`)
	status, body := g.post("/v1/responses", `{"model":"m","input":"hello","max_output_tokens":4}`)
	if status != 200 || !strings.Contains(body, `"output_tokens":4`) || !strings.Contains(body, `"type":"output_text"`) {
		t.Errorf("response: %d %s", status, body)
	}
	if _, body = g.post("/v1/responses", `{"model":"m","input":[{"role":"user","content":"hello"}],"max_output_tokens":4,"stream":true}`); !strings.Contains(body, "event: response.completed") {
		t.Errorf("streamed response: %s", body)
	}
	if status, body = g.post("/v1/embeddings", `{"model":"e","input":["a","b"]}`); status != 200 || strings.Count(body, `"object":"embedding"`) != 2 {
		t.Errorf("embeddings: %d %.200s", status, body)
	}
	if status, _ = g.post("/v1/chat/completions", `{"model":"e","messages":[{"role":"user","content":"a"}]}`); status != 404 {
		t.Errorf("chat with an embedding model: %d, want 404", status)
	}
}

func TestMetricNames(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil, "--served-model-name", "Org/M")
	g.await("/v1/models", `"id":"Org/M"`)
	g.stream(`{"model":"Org/M","messages":[{"role":"user","content":"hello"}],"max_tokens":3,"stream":true}`)
	g.await("/metrics", `dynamo_frontend_requests_total{endpoint="chat_completions",model="org/m",request_type="stream",status="success"} 1`)
	metrics := g.get("/metrics")
	for _, want := range []string{
		`dynamo_frontend_inflight_requests{model="org/m"} 0`, `dynamo_frontend_queued_requests{model="org/m"} 0`, `dynamo_frontend_disconnected_clients 0`,
		`dynamo_frontend_output_tokens_total{model="org/m"} 3`, `dynamo_frontend_time_to_first_token_seconds_count{model="org/m"} 1`,
		`dynamo_frontend_inter_token_latency_seconds_count{model="org/m"} 2`, `dynamo_frontend_output_sequence_tokens_sum{model="org/m"} 3`,
		`dynamo_frontend_input_sequence_tokens_count{model="org/m"} 1`, `dynamo_frontend_request_duration_seconds_bucket{model="org/m",le="1.9"}`,
		`dynamo_frontend_model_total_kv_blocks{model="Org/M"} 16384`, `dynamo_frontend_model_context_length{model="Org/M"} 40960`,
		`dynamo_frontend_cached_tokens_count{model="org/m"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestBusyWorkersAreRefused(t *testing.T) {
	g := newGraph(t)
	g.worker(2, nil)
	g.await("/v1/models", `"id":"m"`)
	if status, body := g.post("/busy_threshold", `{"model":"m","active_prefill_tokens_threshold":2}`); status != 200 || !strings.Contains(body, `"active_prefill_tokens_threshold":2`) {
		t.Errorf("set: %d %s", status, body)
	}
	if !strings.Contains(g.get("/busy_threshold"), `"thresholds":[{"model":"m"`) {
		t.Errorf("list: %s", g.get("/busy_threshold"))
	}
	if status, body := g.post("/v1/completions", `{"model":"m","prompt":"one two three","max_tokens":1}`); status != 503 || !strings.Contains(body, "Service temporarily unavailable") {
		t.Errorf("busy: %d %s", status, body)
	}
}

func TestNamespacesAreKeptApart(t *testing.T) {
	g := newGraph(t, "--namespace", "lab-one")
	g.worker(2, podenv.Env{"DYN_NAMESPACE": "lab-two", "MOCKER_DRAIN_LINGER": "0"})
	g.worker(3, podenv.Env{"DYN_NAMESPACE": "lab-one", "MOCKER_DRAIN_LINGER": "0"}, "--served-model-name", "mine")
	g.await("/v1/models", `"id":"mine"`)
	if strings.Contains(g.get("/v1/models"), `"id":"m"`) {
		t.Error("a model of another namespace is served")
	}
}
