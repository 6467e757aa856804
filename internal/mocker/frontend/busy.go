package frontend

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/launch"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// Thresholds say when a worker counts as busy. Nil means never.
type Thresholds struct {
	DecodeBlocks  *float64 `json:"active_decode_blocks_threshold,omitempty"`
	PrefillTokens *int     `json:"active_prefill_tokens_threshold,omitempty"`
}

func thresholds(s *launch.Settings) Thresholds {
	var t Thresholds
	if s.Has("--active-decode-blocks-threshold") {
		t.DecodeBlocks = new(s.Float(0, "--active-decode-blocks-threshold"))
	}
	if s.Has("--active-prefill-tokens-threshold") {
		t.PrefillTokens = new(s.Int(0, "--active-prefill-tokens-threshold"))
	}
	return t
}

// busyTable holds the thresholds of each model.
type busyTable struct {
	mu        sync.Mutex
	byDefault Thresholds
	models    map[string]Thresholds
}

func (b *busyTable) of(model string) Thresholds {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.models[model]; ok {
		return t
	}
	return b.byDefault
}

type busyEntry struct {
	Model string `json:"model"`
	Thresholds
}

// get lists the thresholds that were set.
func (b *busyTable) get(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := []busyEntry{}
	for _, model := range slices.Sorted(maps.Keys(b.models)) {
		list = append(list, busyEntry{Model: model, Thresholds: b.models[model]})
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"thresholds": list})
}

// post sets what the body names and answers what is in force.
func (b *busyTable) post(w http.ResponseWriter, r *http.Request) {
	var entry busyEntry
	if err := json.NewDecoder(r.Body).Decode(&entry); err != nil || entry.Model == "" {
		problem(w, http.StatusBadRequest, "a JSON body with a model is required")
		return
	}
	if t := entry.DecodeBlocks; t != nil && (*t < 0 || *t > 1) {
		problem(w, http.StatusBadRequest, "active_decode_blocks_threshold must be between 0 and 1")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	current, ok := b.models[entry.Model]
	if !ok {
		current = b.byDefault
	}
	if entry.DecodeBlocks != nil {
		current.DecodeBlocks = entry.DecodeBlocks
	}
	if entry.PrefillTokens != nil {
		current.PrefillTokens = entry.PrefillTokens
	}
	b.models[entry.Model] = current
	wire.WriteJSON(w, http.StatusOK, busyEntry{Model: entry.Model, Thresholds: current})
}
