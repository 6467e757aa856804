package worker

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/engine"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// handle serves the request plane.
func (w *Worker) handle(response http.ResponseWriter, r *http.Request) {
	w.accept.RLock()
	accepted := w.serving.Load() && !w.asleep.Load()
	if accepted {
		w.active.Add(1)
	}
	w.accept.RUnlock()
	if !accepted {
		http.Error(response, "worker is not serving", http.StatusServiceUnavailable)
		return
	}
	defer w.active.Done()
	switch r.PathValue("endpoint") {
	case w.config.Address.Endpoint:
		w.generate(response, r)
	case "clear_kv_blocks":
		wire.WriteJSON(response, http.StatusOK, map[string]any{"status": "success", "message": "KV cache cleared"})
	default:
		http.Error(response, "no such endpoint", http.StatusNotFound)
	}
}

func (w *Worker) generate(response http.ResponseWriter, r *http.Request) {
	start := time.Now()
	w.lastUsed.Store(start.UnixNano())
	w.metrics.requests.Inc()
	w.metrics.inflight.Inc()
	w.metrics.received.Add(float64(max(0, r.ContentLength)))
	defer func() {
		w.metrics.inflight.Dec()
		w.metrics.duration.Observe(time.Since(start).Seconds())
		w.lastUsed.Store(time.Now().UnixNano())
	}()
	request, ok := wire.Read(response, r)
	if !ok {
		w.metrics.errors.WithLabelValues("deserialization").Inc()
		return
	}
	w.countdown()
	out := wire.NewWriter(response)
	defer func() { w.metrics.sent.Add(float64(out.Bytes)) }()
	if request.Embed {
		_ = out.Send(wire.Chunk{FinishReason: "stop", Embedding: text.Embedding(request.Seed, embeddingSize)})
		return
	}
	if rand.Float64() < w.knobs.ErrorRate {
		w.metrics.errors.WithLabelValues("generate").Inc()
		_ = out.Send(wire.Chunk{FinishReason: "error", Error: "the engine failed, as asked by MOCKER_ERROR_RATE"})
		return
	}
	generation, err := w.engine.Submit(w.engineRequest(request, start))
	if err != nil {
		w.metrics.errors.WithLabelValues("generate").Inc()
		_ = out.Send(wire.Chunk{FinishReason: "error", Error: err.Error()})
		return
	}
	if err := w.stream(r.Context(), out, request, generation, start); err != nil {
		generation.Cancel()
		w.metrics.errors.WithLabelValues("publish_response").Inc()
	}
}

// embeddingSize is the length of the vectors this engine makes.
const embeddingSize = 64

// engineRequest applies the worker's role: a prefill worker produces one
// token; a request that brings the result of a prefill need not be prefilled.
func (w *Worker) engineRequest(r wire.Request, received time.Time) engine.Request {
	request := engine.Request{
		Prompt: r.Tokens, Seed: r.Seed, Offset: r.Offset,
		MaxTokens: w.length(r), Prefilled: len(r.DisaggregatedParams) > 0, Rank: -1,
		Waited: r.Waited + time.Since(received),
	}
	if r.Rank != nil {
		request.Rank = *r.Rank
	}
	if w.config.Role == Prefill {
		request.MaxTokens = 1
	}
	return request
}

// length is how many tokens to produce: as many as asked, or until the answer
// ends by itself, and never beyond the context.
func (w *Worker) length(r wire.Request) int {
	length := r.MaxTokens
	if length <= 0 {
		length = max(1, text.NaturalLength(r.Seed)-r.Offset)
	}
	return max(1, min(length, w.config.Context-len(r.Tokens)))
}

// stream sends one chunk per token, even when several are due at once: whoever
// stops reading in between must not be charged for tokens it never saw.
func (w *Worker) stream(ctx context.Context, out *wire.Writer, r wire.Request, g *engine.Generation, received time.Time) error {
	sent, last := 0, received
	for {
		produced, finished, err := g.Next(ctx, sent)
		if err != nil {
			return err
		}
		if sent == 0 {
			if err := w.dawdle(ctx, time.Since(received)); err != nil {
				return err
			}
			w.metrics.produced(true, min(1, produced), time.Since(received))
			w.metrics.produced(false, max(0, produced-1), 0)
		} else {
			w.metrics.produced(false, produced-sent, time.Since(last))
		}
		last = time.Now()
		for sent < produced {
			chunk := w.chunk(r, g, sent)
			if sent == 0 {
				chunk.Took = time.Since(received)
			}
			sent++
			if finished && sent == produced {
				w.finish(&chunk, r)
			}
			if err := out.Send(chunk); err != nil || chunk.FinishReason != "" {
				return err
			}
		}
		if finished { // the last token was sent before its being the last was known
			last := wire.Chunk{}
			w.finish(&last, r)
			return out.Send(last)
		}
	}
}

// dawdle has the first token take as much longer as the knob says.
func (w *Worker) dawdle(ctx context.Context, took time.Duration) error {
	if w.knobs.TTFTFactor <= 1 {
		return nil
	}
	select {
	case <-time.After(time.Duration((w.knobs.TTFTFactor - 1) * float64(took))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// countdown has the engine die with the request that the knob names.
func (w *Worker) countdown() {
	if n := w.taken.Add(1); w.knobs.CrashRequests > 0 && n == int64(w.knobs.CrashRequests) {
		w.crash <- time.Now()
	}
}

func (w *Worker) chunk(r wire.Request, g *engine.Generation, n int) wire.Chunk {
	_, word := text.At(r.Seed, r.Offset+n)
	chunk := wire.Chunk{Text: word, Tokens: 1}
	if n == 0 {
		chunk.Cached = g.Cached()
	}
	return chunk
}

func (w *Worker) finish(chunk *wire.Chunk, r wire.Request) {
	chunk.FinishReason = "length"
	if r.MaxTokens <= 0 {
		chunk.FinishReason = "stop"
	}
	if w.config.Role == Prefill {
		chunk.DisaggregatedParams = w.handover(r)
	}
}

// handover is what a decode worker needs to fetch the computed prompt.
func (w *Worker) handover(r wire.Request) json.RawMessage {
	body, err := json.Marshal(map[string]any{"worker_id": w.config.Address.Instance, "request_id": r.ID})
	if err != nil {
		return json.RawMessage(`"dummy"`)
	}
	return body
}
