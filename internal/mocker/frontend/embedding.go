package frontend

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// embed serves /v1/embeddings: one vector for each input.
func (f *Frontend) embed(w http.ResponseWriter, r *http.Request) {
	if !f.registry.any(discovery.Embedding) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	var b body
	if err := decode(r, &b); err != nil {
		problem(w, statusOf(err), err.Error())
		return
	}
	m, ok := f.registry.find(b.Model)
	if !ok || !m.card.ModelType.Has(discovery.Embedding) {
		problem(w, http.StatusNotFound, "Model not found")
		return
	}
	o := f.observe(m.card.DisplayName, "embeddings", "unary")
	data, tokens, err := f.vectors(r, m, b.Input)
	o.end(err)
	if err != nil {
		problem(w, statusOf(err), err.Error())
		return
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{
		"object": "list", "model": m.card.DisplayName, "data": data,
		"usage": map[string]any{"prompt_tokens": tokens, "total_tokens": tokens},
	})
}

func (f *Frontend) vectors(r *http.Request, m *model, input json.RawMessage) (data []any, total int, err error) {
	var inputs []string
	if json.Unmarshal(input, &inputs) != nil {
		var one string
		if json.Unmarshal(input, &one) != nil {
			return nil, 0, fail(http.StatusBadRequest, "input must be text or a list of texts")
		}
		inputs = []string{one}
	}
	for i, in := range inputs {
		tokens := text.Tokenize(in)
		total += len(tokens)
		request := wire.Request{ID: uuid.NewString(), Model: m.card.DisplayName, Tokens: tokens, Seed: text.Seed(tokens), Embed: true}
		answer, err := f.dispatcher.dispatch(r.Context(), m, request, pins{})
		if err != nil {
			return nil, 0, err
		}
		chunk, err := answer.Next()
		answer.Close()
		if err != nil {
			return nil, 0, err
		}
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": chunk.Embedding})
	}
	return data, total, nil
}
