package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/discovery"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// api is one of the generating routes.
type api struct {
	// name is the route's label in metrics.
	name   string
	needs  discovery.ModelType
	tokens func(*body) ([]text.Token, error)
	shape  func(about) shape
}

var (
	chatAPI = api{
		name: "chat_completions", needs: discovery.Chat, tokens: (*body).chatTokens,
		shape: func(a about) shape { return chat{a} },
	}
	completionAPI = api{
		name: "completions", needs: discovery.Completions,
		tokens: func(b *body) ([]text.Token, error) { return promptTokens(b.Prompt) },
		shape:  func(a about) shape { return completion{a} },
	}
	responseAPI = api{
		name: "responses", needs: discovery.Chat,
		tokens: responseTokens,
		shape:  func(a about) shape { return response{a} },
	}
)

// responseTokens reads the input of a response: text or messages.
func responseTokens(b *body) ([]text.Token, error) {
	var whole string
	if json.Unmarshal(b.Input, &whole) == nil {
		return text.Tokenize(b.Instructions + " user : " + whole + " assistant :"), nil
	}
	if err := json.Unmarshal(b.Input, &b.Messages); err != nil {
		return nil, fail(http.StatusBadRequest, "input must be text or a list of messages")
	}
	return b.chatTokens()
}

// generate serves one of the generating routes.
func (f *Frontend) generate(a api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		received := time.Now()
		if !f.registry.any(a.needs) {
			w.WriteHeader(http.StatusNotFound) // the route does not exist yet
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, f.config.BodyLimit)
		var b body
		if err := decode(r, &b); err != nil {
			problem(w, statusOf(err), err.Error())
			return
		}
		m, ok := f.registry.find(b.Model)
		if !ok || !m.card.ModelType.Has(a.needs) {
			problem(w, http.StatusNotFound, "Model not found")
			return
		}
		kind := "unary"
		if b.Stream {
			kind = "stream"
		}
		o := f.observe(m.card.DisplayName, a.name, kind)
		err := f.answer(w, r, a, &b, m, o, received)
		if r.Context().Err() != nil {
			o.disconnected()
		}
		o.end(err)
	}
}

// answer runs a request. Errors before the first byte become an HTTP error;
// later ones an error event.
func (f *Frontend) answer(w http.ResponseWriter, r *http.Request, a api, b *body, m *model, o *observation, received time.Time) error {
	refuse := func(err error) error {
		problem(w, statusOf(err), err.Error())
		return err
	}
	if err := b.limits(); err != nil {
		return refuse(err)
	}
	stops, err := b.stops()
	if err != nil {
		return refuse(err)
	}
	tokens, err := a.tokens(b)
	if err != nil {
		return refuse(err)
	}
	id := r.Header.Get("X-Dynamo-Request-Id")
	if id == "" {
		id = uuid.NewString()
	}
	request, err := b.wireRequest(id, m, tokens)
	if err != nil {
		return refuse(err)
	}
	o.input(len(tokens))
	request.Waited = time.Since(received)
	generation, err := f.dispatcher.dispatch(r.Context(), m, request, b.pinned(r))
	if err != nil {
		return refuse(err)
	}
	defer generation.Close()
	out := &collector{stop: stopper{stops: stops}, usage: usage{prompt: len(tokens)}, observation: o}
	said := about{id: id, model: m.card.DisplayName, created: time.Now().Unix()}
	if slices.Contains(b.Extension.ExtraFields, "worker_id") {
		said.workers = generation.workers
	}
	shape := a.shape(said)
	if b.Stream {
		return f.stream(r.Context(), w, generation, out, shape, b.StreamOptions.IncludeUsage)
	}
	for !out.done {
		if _, err := out.next(generation); err != nil {
			return refuse(err)
		}
	}
	wire.WriteJSON(w, http.StatusOK, shape.whole(out.text.String(), out.reason, out.usage))
	return nil
}

// stream sends the answer piece by piece. The first piece is awaited before the
// status line, so that early failures keep their HTTP status.
func (f *Frontend) stream(ctx context.Context, w http.ResponseWriter, generation *answer, out *collector, s shape, wantsUsage bool) error {
	piece, err := out.next(generation)
	if err != nil {
		problem(w, statusOf(err), err.Error())
		return err
	}
	events := &events{out: wire.NewWriter(w)}
	for _, e := range s.opening() {
		events.send(e)
	}
	for first := true; ; first = false {
		if piece != "" || first {
			events.send(s.delta(piece, first))
		}
		if out.done {
			break
		}
		if piece, err = out.next(generation); err != nil {
			if ctx.Err() == nil {
				events.send(event{name: "error", data: problemBody(statusOf(err), err.Error())})
			}
			return err
		}
	}
	for _, e := range s.closing(out.text.String(), out.reason, out.usage, wantsUsage) {
		events.send(e)
	}
	if events.err == nil {
		_, events.err = io.WriteString(w, "data: [DONE]\n\n")
	}
	return events.err
}

// collector gathers an answer.
type collector struct {
	stop        stopper
	text        strings.Builder
	reason      string
	usage       usage
	observation *observation
	done        bool
}

// next takes one chunk and returns the text it adds.
func (c *collector) next(generation *answer) (string, error) {
	chunk, err := generation.Next()
	if errors.Is(err, io.EOF) {
		return "", unavailable("worker ended without a reason")
	}
	if err != nil {
		return "", err
	}
	c.count(chunk)
	piece, stopped := c.stop.pass(chunk.Text)
	switch {
	case stopped:
		c.done, c.reason = true, "stop"
	case chunk.FinishReason != "":
		c.done, c.reason = true, chunk.FinishReason
		piece += c.stop.rest()
	}
	c.text.WriteString(piece)
	return piece, nil
}

func (c *collector) count(chunk wire.Chunk) {
	if chunk.Cached > 0 {
		c.usage.cached = chunk.Cached
	}
	c.usage.completion += chunk.Tokens
	c.observation.output(chunk.Tokens, chunk.Cached)
}

// events writes an answer's events up to the first that cannot be written.
type events struct {
	out *wire.Writer
	err error
}

func (e *events) send(ev event) {
	if e.err == nil {
		e.err = e.out.Event(ev.name, ev.data)
	}
}
