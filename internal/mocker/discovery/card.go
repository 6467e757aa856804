package discovery

import "strings"

// Card describes a model to those who route to it.
type Card struct {
	DisplayName    string         `json:"display_name"`
	Slug           string         `json:"slug"`
	SourcePath     string         `json:"source_path"`
	ContextLength  int            `json:"context_length"`
	BlockSize      int            `json:"kv_cache_block_size"`
	MigrationLimit int            `json:"migration_limit"`
	ModelType      ModelType      `json:"model_type"`
	ModelInput     string         `json:"model_input"`
	UserData       map[string]any `json:"user_data"`
	Runtime        RuntimeConfig  `json:"runtime_config"`
	// Worker and Needs are said by runtimes of 1.x: what the worker is, and which
	// others its namespace must have before it gets any traffic.
	Worker WorkerType   `json:"worker_type,omitempty"`
	Needs  []WorkerType `json:"needs,omitempty"`
}

// WorkerType is a worker's share of the work.
type WorkerType string

// The types.
const (
	AggregatedWorker WorkerType = "aggregated"
	PrefillWorker    WorkerType = "prefill"
	DecodeWorker     WorkerType = "decode"
)

// Type is the type that the card says, or that its model type means.
func (c Card) Type() WorkerType {
	switch {
	case c.Worker != "":
		return c.Worker
	case c.ModelType.Has(Prefill):
		return PrefillWorker
	}
	return AggregatedWorker
}

// RuntimeConfig is the size of the engine behind a card.
type RuntimeConfig struct {
	TotalBlocks           int                    `json:"total_kv_blocks"`
	MaxSequences          int                    `json:"max_num_seqs"`
	MaxBatchedTokens      int                    `json:"max_num_batched_tokens"`
	DataParallelSize      int                    `json:"data_parallel_size"`
	DisaggregatedEndpoint *DisaggregatedEndpoint `json:"disaggregated_endpoint,omitempty"`
}

// DisaggregatedEndpoint is where a prefill worker meets decode workers.
type DisaggregatedEndpoint struct {
	Host string `json:"bootstrap_host"`
	Port int    `json:"bootstrap_port"`
}

// ModelType is what a model can do: flag names joined by " | ".
type ModelType string

// The flags of a model type.
const (
	Chat        ModelType = "Chat"
	Completions ModelType = "Completions"
	Embedding   ModelType = "Embedding"
	Prefill     ModelType = "Prefill"
	// Generative models both chat and complete.
	Generative = Chat + " | " + Completions
)

// Has says whether the flag is set.
func (t ModelType) Has(flag ModelType) bool {
	for part := range strings.SplitSeq(string(t), "|") {
		if strings.TrimSpace(part) == string(flag) {
			return true
		}
	}
	return false
}

// Fit says whether two workers may serve one model together: they must agree
// on everything a request's meaning depends on. Sizes may differ.
func (c Card) Fit(other Card) bool {
	return c.DisplayName == other.DisplayName && c.SourcePath == other.SourcePath && c.ContextLength == other.ContextLength &&
		c.BlockSize == other.BlockSize && c.ModelInput == other.ModelInput
}

// Slug makes a name fit for a key: lower case, anything but letters, digits,
// '-' and '_' becomes '_', and leading '_' go.
func Slug(name string) string {
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, strings.ToLower(name))
	return strings.TrimLeft(slug, "_")
}
