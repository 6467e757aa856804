package frontend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// body is what chat, completion and response requests have in common and apart.
type body struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Input         json.RawMessage `json:"input"`
	Instructions  string          `json:"instructions"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MaxOutputTokens     *int            `json:"max_output_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	N                   *int            `json:"n"`
	Stop                json.RawMessage `json:"stop"`
	Extension           extension       `json:"nvext"`
}

// extension is the runtime's own part of a request.
type extension struct {
	IgnoreEOS       *bool    `json:"ignore_eos"`
	Annotations     []string `json:"annotations"`
	ExtraFields     []string `json:"extra_fields"`
	BackendInstance *uint64  `json:"backend_instance_id"`
	PrefillWorker   *uint64  `json:"prefill_worker_id"`
	DecodeWorker    *uint64  `json:"decode_worker_id"`
	TTFT            *float64 `json:"ttft_target"`
	ITL             *float64 `json:"itl_target"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// decode reads a body; unreadable ones are the client's fault, with status 400
// also where the runtime's parser would say 422.
func decode(r *http.Request, into any) error {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		if strings.Contains(err.Error(), "request body too large") {
			return fail(http.StatusRequestEntityTooLarge, "%v", err)
		}
		return fail(http.StatusBadRequest, "Failed to parse the request body as JSON: %v", err)
	}
	return nil
}

// limits checks what all generating requests share.
func (b *body) limits() error {
	if b.N != nil && *b.N != 1 {
		return fail(http.StatusNotImplemented, "`n` is %d; only 1 is supported", *b.N)
	}
	if limit := b.maxTokens(); limit != nil && *limit < 1 {
		return fail(http.StatusBadRequest, "max_tokens must be at least 1, is %d", *limit)
	}
	return nil
}

func (b *body) maxTokens() *int {
	for _, limit := range []*int{b.MaxCompletionTokens, b.MaxTokens, b.MaxOutputTokens} {
		if limit != nil {
			return limit
		}
	}
	return nil
}

func (b *body) ignoresEnd() bool {
	return ptr.Deref(b.Extension.IgnoreEOS, b.IgnoreEOS)
}

// stops returns the stop strings: one, several or none.
func (b *body) stops() ([]string, error) {
	if len(b.Stop) == 0 || bytes.Equal(b.Stop, []byte("null")) {
		return nil, nil
	}
	var one string
	if json.Unmarshal(b.Stop, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if err := json.Unmarshal(b.Stop, &many); err != nil {
		return nil, fail(http.StatusBadRequest, "stop must be a string or a list of strings")
	}
	return many, nil
}

// chatTokens renders the messages as a chat template would.
func (b *body) chatTokens() ([]text.Token, error) {
	if len(b.Messages) == 0 {
		return nil, fail(http.StatusBadRequest, "messages must not be empty")
	}
	var prompt strings.Builder
	for i, m := range b.Messages {
		if m.Role == "" {
			return nil, fail(http.StatusBadRequest, "messages[%d] has no role", i)
		}
		content, err := plainText(m.Content)
		if err != nil {
			return nil, fail(http.StatusBadRequest, "messages[%d]: %v", i, err)
		}
		fmt.Fprintf(&prompt, "%s : %s\n", m.Role, content)
	}
	prompt.WriteString("assistant :")
	return text.Tokenize(prompt.String()), nil
}

// plainText reads a string, or the text of a list of parts.
func plainText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "", nil
	}
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		return whole, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither text nor a list of parts")
	}
	var out []string
	for _, part := range parts {
		if part.Text == "" {
			// Images and sound count as their kind: there is nobody to look.
			part.Text = "<" + part.Type + ">"
		}
		out = append(out, part.Text)
	}
	return strings.Join(out, " "), nil
}

// promptTokens reads the prompt of a completion: text, token ids, or a list
// with one of these.
func promptTokens(raw json.RawMessage) ([]text.Token, error) {
	var whole string
	if json.Unmarshal(raw, &whole) == nil {
		return text.Tokenize(whole), nil
	}
	var ids []text.Token
	if json.Unmarshal(raw, &ids) == nil {
		return ids, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		return promptTokens(list[0])
	}
	if len(list) > 1 {
		return nil, fail(http.StatusNotImplemented, "batches of prompts are not supported")
	}
	return nil, fail(http.StatusBadRequest, "prompt must be a string or a list of token ids")
}

// wireRequest is what goes to the worker.
func (b *body) wireRequest(id string, m *model, tokens []text.Token) (wire.Request, error) {
	room := m.card.ContextLength - len(tokens)
	if m.card.ContextLength > 0 && room < 1 {
		return wire.Request{}, fail(http.StatusBadRequest, "This model's maximum context length is %d tokens; the prompt has %d", m.card.ContextLength, len(tokens))
	}
	request := wire.Request{ID: id, Model: m.card.DisplayName, Tokens: tokens, Seed: text.Seed(tokens)}
	switch {
	case b.maxTokens() != nil:
		request.MaxTokens = *b.maxTokens()
	case b.ignoresEnd() && room > 0:
		request.MaxTokens = room
	case b.MinTokens > 0:
		request.MaxTokens = b.MinTokens
	}
	request.TTFT, request.ITL = ptr.Deref(b.Extension.TTFT, 0), ptr.Deref(b.Extension.ITL, 0)
	return request, nil
}

// pinned reads the workers a client or an endpoint picker insists on.
func (b *body) pinned(r *http.Request) pins {
	var p pins
	for _, id := range []*uint64{b.Extension.BackendInstance, b.Extension.DecodeWorker} {
		if id != nil {
			p.decode = *id
		}
	}
	if id := b.Extension.PrefillWorker; id != nil {
		p.prefill = *id
	}
	if id, err := strconv.ParseUint(r.Header.Get("X-Worker-Instance-Id"), 10, 64); err == nil {
		p.decode = id
	}
	if id, err := strconv.ParseUint(r.Header.Get("X-Prefill-Instance-Id"), 10, 64); err == nil {
		p.prefill = id
	}
	return p
}
