package frontend

// usage counts the tokens of a request.
type usage struct{ prompt, completion, cached int }

func (u usage) openAI() map[string]any {
	return map[string]any{
		"prompt_tokens": u.prompt, "completion_tokens": u.completion, "total_tokens": u.prompt + u.completion,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.cached},
	}
}

// after is the last piece of an answer and, if it is wanted, the usage behind it.
func (u usage) after(piece func(choices []any) map[string]any, last []any, wanted bool) []event {
	events := []event{{data: piece(last)}}
	if wanted {
		sum := piece([]any{})
		sum["usage"] = u.openAI()
		events = append(events, event{data: sum})
	}
	return events
}

// shape is how one API words its answers.
type shape interface {
	// opening are the events before the first text.
	opening() []event
	// delta is one piece of text.
	delta(text string, first bool) event
	// closing are the events after the last text; usage is nil unless asked for.
	closing(text, reason string, u usage, wanted bool) []event
	// whole is the unstreamed answer.
	whole(text, reason string, u usage) any
}

// event is a server-sent event; most have no name.
type event struct {
	name string
	data any
}

// about is what every answer repeats.
type about struct {
	id, model string
	created   int64
	// workers tells who answered; nil unless the client asks for it.
	workers func() map[string]any
}

// chat is /v1/chat/completions.
type chat struct{ about }

func (c chat) chunk(choices []any) map[string]any {
	return map[string]any{"id": "chatcmpl-" + c.id, "object": "chat.completion.chunk", "created": c.created, "model": c.model, "choices": choices}
}

func (c chat) opening() []event { return nil }

func (c chat) delta(text string, first bool) event {
	delta := map[string]any{"content": text}
	if first {
		delta["role"] = "assistant"
	}
	return event{data: c.chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil, "logprobs": nil}})}
}

func (c chat) closing(_, reason string, u usage, wanted bool) []event {
	last := []any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": reason, "logprobs": nil}}
	events := u.after(c.chunk, last, wanted)
	if c.workers != nil {
		events[0].data.(map[string]any)["nvext"] = map[string]any{"worker_id": c.workers()}
	}
	return events
}

func (c chat) whole(text, reason string, u usage) any {
	return map[string]any{
		"id": "chatcmpl-" + c.id, "object": "chat.completion", "created": c.created, "model": c.model, "usage": u.openAI(),
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": reason, "logprobs": nil,
			"message": map[string]any{"role": "assistant", "content": text},
		}},
	}
}

// completion is /v1/completions.
type completion struct{ about }

func (c completion) object(choices []any) map[string]any {
	return map[string]any{"id": "cmpl-" + c.id, "object": "text_completion", "created": c.created, "model": c.model, "choices": choices}
}

func (c completion) choice(text string, reason any) []any {
	return []any{map[string]any{"index": 0, "text": text, "finish_reason": reason, "logprobs": nil}}
}

func (c completion) opening() []event { return nil }

func (c completion) delta(text string, _ bool) event {
	return event{data: c.object(c.choice(text, nil))}
}

func (c completion) closing(_, reason string, u usage, wanted bool) []event {
	return u.after(c.object, c.choice("", reason), wanted)
}

func (c completion) whole(text, reason string, u usage) any {
	out := c.object(c.choice(text, reason))
	out["usage"] = u.openAI()
	return out
}

// response is /v1/responses.
type response struct{ about }

func (r response) object(status string, output []any) map[string]any {
	return map[string]any{"id": "resp_" + r.id, "object": "response", "created_at": r.created, "model": r.model, "status": status, "output": output}
}

func (r response) item(text, status string) map[string]any {
	return map[string]any{
		"id": "msg_" + r.id, "type": "message", "role": "assistant", "status": status,
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
	}
}

func (r response) named(name string, fields map[string]any) event {
	fields["type"] = name
	return event{name: name, data: fields}
}

func (r response) opening() []event {
	return []event{r.named("response.created", map[string]any{"response": r.object("in_progress", []any{})})}
}

func (r response) delta(text string, _ bool) event {
	return r.named("response.output_text.delta", map[string]any{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "delta": text})
}

func (r response) closing(text, reason string, u usage, _ bool) []event {
	return []event{
		r.named("response.output_text.done", map[string]any{"item_id": "msg_" + r.id, "output_index": 0, "content_index": 0, "text": text}),
		r.named("response.completed", map[string]any{"response": r.whole(text, reason, u)}),
	}
}

func (r response) whole(text, _ string, u usage) any {
	out := r.object("completed", []any{r.item(text, "completed")})
	out["usage"] = map[string]any{"input_tokens": u.prompt, "output_tokens": u.completion, "total_tokens": u.prompt + u.completion}
	return out
}
