// Package wire is the request plane between the mock's own processes: one HTTP
// POST per request, answered by a stream of server-sent events. Nobody outside
// the mock engine speaks it.
package wire

import (
	"encoding/json"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
)

// Request asks a worker for tokens.
type Request struct {
	ID     string       `json:"id"`
	Model  string       `json:"model"`
	Tokens []text.Token `json:"token_ids"`
	// Seed is the fingerprint of the original prompt, Offset how many tokens of
	// the answer other workers have produced already.
	Seed   uint64 `json:"seed"`
	Offset int    `json:"offset,omitempty"`
	// MaxTokens 0 lets the answer end where it ends.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Rank is the data-parallel rank; nil leaves it to the worker.
	Rank *int `json:"dp_rank,omitempty"`
	// DisaggregatedParams is what a prefill worker returned.
	DisaggregatedParams json.RawMessage `json:"disaggregated_params,omitempty"`
	// Waited is how long the sender has had the request, and how long the way to
	// the worker and back takes: part of the time that a real engine would have
	// needed for the same.
	Waited time.Duration `json:"waited_ns,omitempty"`
	// Embed asks for the prompt's vector instead of an answer.
	Embed bool `json:"embed,omitempty"`
	// TTFT and ITL, in milliseconds, are the targets a global router chooses by.
	TTFT float64 `json:"ttft_target,omitempty"`
	ITL  float64 `json:"itl_target,omitempty"`
}

// Chunk is a part of the answer. The last one has a finish reason.
type Chunk struct {
	Text   string `json:"text,omitempty"`
	Tokens int    `json:"tokens,omitempty"`
	// FinishReason: "stop", "length", or "error" with Error set.
	FinishReason string `json:"finish_reason,omitempty"`
	Error        string `json:"error,omitempty"`
	// Took is how long the worker had the request when it sent this chunk, the
	// first one.
	Took time.Duration `json:"took_ns,omitempty"`
	// Cached is how many prompt tokens were found in the worker's cache.
	Cached              int             `json:"cached_tokens,omitempty"`
	DisaggregatedParams json.RawMessage `json:"disaggregated_params,omitempty"`
	Embedding           []float64       `json:"embedding,omitempty"`
}
