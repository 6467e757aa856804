package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
)

// stream writes an answer of n tokens to a prompt that it counts by word, with a
// template of 5 tokens.
func stream(w http.ResponseWriter, r *http.Request) {
	var body struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for range body.MaxTokens {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x \"}}]}\n\n")
	}
	prompt := len(strings.Fields(body.Messages[0].Content)) + 5
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", prompt, body.MaxTokens)
}

func client(t *testing.T, handler http.HandlerFunc) *Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &Client{Client: openai.Client{HTTP: server.Client(), URL: server.URL}, Model: "m"}
}

func TestRunAsksForTheShape(t *testing.T) {
	for name, shape := range map[string]Shape{
		"closed loop":      {ISL: 100, OSL: 7, Concurrency: 4, Requests: 20, Warmups: 2},
		"arrivals by rate": {ISL: 100, OSL: 7, Rate: 1e4, Requests: 20},
		"a long prompt":    {ISL: 5000, OSL: 1, Concurrency: 1, Requests: 2},
	} {
		t.Run(name, func(t *testing.T) {
			summary, err := client(t, stream).Run(t.Context(), shape)
			if err != nil {
				t.Fatal(err)
			}
			if summary.Requests != shape.Requests || summary.Failed != 0 {
				t.Errorf("%d requests, %d failed", summary.Requests, summary.Failed)
			}
			if math.Abs(summary.Prompt-float64(shape.ISL)) > 1 {
				t.Errorf("prompts of %g tokens, want %d", summary.Prompt, shape.ISL)
			}
			if summary.TTFT.P50 <= 0 || summary.TTFT.Max < summary.TTFT.P99 || summary.Throughput <= 0 {
				t.Errorf("implausible: %+v", summary)
			}
		})
	}
}

// Every request that counts has company: all users ask before any of them is
// answered, also at the end.
func TestRunCountsWhatRunsBesideOthers(t *testing.T) {
	const users, counted = 4, 10
	var sent, running atomic.Int64
	summary, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if calibration := []byte(`"max_tokens":1,`); !bytes.Contains(body, calibration) {
			sent.Add(1)
			running.Add(1)
			defer running.Add(-1)
			for running.Load() < users && r.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		stream(w, r)
	}).Run(t.Context(), Shape{ISL: 20, OSL: 3, Concurrency: users, Requests: counted})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Requests != counted || summary.Failed != 0 || sent.Load() < users+counted {
		t.Errorf("%d requests counted, %d failed, %d sent", summary.Requests, summary.Failed, sent.Load())
	}
}

func TestRunCountsFailures(t *testing.T) {
	var n atomic.Int64
	summary, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%3 == 0 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		stream(w, r)
	}).Run(t.Context(), Shape{ISL: 6, OSL: 2, Concurrency: 1, Requests: 9})
	if err != nil {
		t.Fatal(err)
	}
	if summary.Failed != 3 || summary.Requests != 6 {
		t.Errorf("%d failed, %d answered", summary.Failed, summary.Requests)
	}
}

func TestRunFailsWhenNobodyAnswers(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusServiceUnavailable) })
	if _, err := c.Run(t.Context(), Shape{ISL: 6, OSL: 2, Requests: 3}); err == nil {
		t.Error("no error")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that a client left once it has read the request
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.Run(ctx, Shape{ISL: 6, OSL: 2, Requests: 3}); err == nil {
		t.Error("no error")
	}
}

func TestReadTimesTheStream(t *testing.T) {
	text := func(s string) string { return `data: {"choices":[{"delta":{"content":"` + s + `"}}]}` + "\n\n" }
	for name, test := range map[string]struct {
		body string
		want Answer
		ok   bool
	}{
		"the role alone is no token":         {`data: {"choices":[{"delta":{"role":"assistant"}}]}` + "\n\n" + text("a") + text("b") + "data: [DONE]\n", Answer{First: 1, Last: 2, Tokens: 2}, true},
		"the server's count wins":            {text("a b") + text("c") + `data: {"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":9}}` + "\n\ndata: [DONE]\n", Answer{First: 1, Last: 2, Tokens: 3, Prompt: 9}, true},
		"reasoning counts":                   {`data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}` + "\n\ndata: [DONE]\n", Answer{First: 1, Last: 1, Tokens: 1}, true},
		"a stream that breaks off":           {text("a"), Answer{}, false},
		"an answer without a token":          {"data: [DONE]\n", Answer{}, false},
		"an error after the stream began":    {text("a") + "event: error\ndata: {\"message\":\"gone\"}\n\n", Answer{}, false},
		"a comment and a blank are no token": {": hi\n\n" + text("a") + "data: [DONE]\n", Answer{First: 1, Last: 1, Tokens: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			var got Answer
			err := openai.ReadStream(strings.NewReader(test.body), func(chunk openai.Chunk) {
				if chunk.Text() != "" {
					now++
				}
				got.add(chunk, now)
			})
			if (err == nil) != test.ok || test.ok && got != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestDistribution(t *testing.T) {
	got := distribution([]float64{4, 1, 3, 2, 5})
	if got.Min != 1 || got.P50 != 3 || got.Max != 5 || got.Avg != 3 || math.Abs(got.P90-4.6) > 1e-9 {
		t.Errorf("got %+v", got)
	}
}
