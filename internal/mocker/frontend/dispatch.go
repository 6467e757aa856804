package frontend

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/mocker/kv"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/route"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/text"
	"github.com/dynamo-operator/dynamo-operator/internal/mocker/wire"
)

// pins name the workers a client insists on; 0 leaves the choice to the router.
type pins struct{ prefill, decode uint64 }

// dispatcher sends requests to workers.
type dispatcher struct {
	client  *wire.Client
	config  Config
	busy    *busyTable
	metrics *metrics
	shunned shunned
	log     *slog.Logger
}

// answer is a request under way: the stream of one worker, or of several in
// succession where the model's migration limit allows.
type answer struct {
	d       *dispatcher
	ctx     context.Context
	cancel  context.CancelFunc
	set     *workerSet
	request wire.Request
	pins    pins
	blocks  []kv.ID
	stream  *wire.Stream
	release func()
	moves   int // left
	sent    int // tokens passed on
	tried   []uint64
	// prefilled is the worker that computed the prompt; 0 if the one that answers did.
	prefilled uint64
}

// workers tells who computed the prompt and who answers, the last of several.
func (a *answer) workers() map[string]any {
	decode := a.tried[len(a.tried)-1]
	prefill := a.prefilled
	if prefill == 0 {
		prefill = decode
	}
	return map[string]any{"prefill_worker_id": prefill, "decode_worker_id": decode}
}

// dispatch picks a set of workers, prefills if there is somebody to do it, then starts the answer.
func (d *dispatcher) dispatch(ctx context.Context, m *model, request wire.Request, p pins) (*answer, error) {
	set, p, err := m.pick(p, d.config.Own)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	size := set.card.BlockSize
	if d.config.BlockSize > 0 {
		size = d.config.BlockSize
	}
	a := &answer{d: d, ctx: ctx, cancel: cancel, set: set, request: request, pins: p, moves: set.card.MigrationLimit, release: func() {}}
	if size > 0 {
		a.blocks = kv.Chain(request.Tokens, size)
	}
	err = d.checkBusy(set, request)
	if err == nil {
		err = a.prefill()
	}
	if err == nil {
		err = a.open()
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// checkBusy refuses when every worker is beyond the thresholds, as far as this
// frontend's own requests tell.
func (d *dispatcher) checkBusy(m *workerSet, request wire.Request) error {
	limits := d.busy.of(m.card.DisplayName)
	if limits.PrefillTokens != nil && len(request.Tokens) > *limits.PrefillTokens {
		return unavailable("All workers are busy, please retry later")
	}
	if limits.DecodeBlocks == nil {
		return nil
	}
	for _, t := range m.decode {
		if m.decodeRouter.Load(t.candidate()) <= *limits.DecodeBlocks {
			return nil
		}
	}
	return unavailable("All workers are busy, please retry later")
}

func (t target) candidate() route.Candidate {
	return route.Candidate{Instance: t.instance, Blocks: t.blocks}
}

// choose picks a target and books the request on it.
func (a *answer) choose(targets []target, router *route.Router, pin uint64) (target, func(), error) {
	if pin != 0 {
		for _, t := range targets {
			if t.instance == pin {
				return t, router.Charge(t.candidate(), a.blocks), nil
			}
		}
		return target{}, nil, unavailable("worker %d does not serve this model", pin)
	}
	targets = a.d.shunned.without(targets, time.Now())
	var candidates []route.Candidate
	for _, t := range targets {
		if !slices.Contains(a.tried, t.instance) {
			candidates = append(candidates, t.candidate())
		}
	}
	if len(candidates) == 0 {
		return target{}, nil, unavailable("no worker left to try")
	}
	chosen, release := router.Choose(candidates, a.blocks)
	for _, t := range targets {
		if t.instance == chosen.Instance {
			return t, release, nil
		}
	}
	return target{}, nil, unavailable("worker %d vanished", chosen.Instance)
}

// prefill has a prefill worker compute the prompt. Without one, or when it
// fails, the decode worker computes it itself, unless that is forbidden.
func (a *answer) prefill() error {
	if len(a.set.prefill) == 0 {
		if a.d.config.EnforceDisaggregation {
			return unavailable("no prefill worker for this model, and --enforce-disagg is set")
		}
		return nil
	}
	params, err := a.runPrefill()
	if err == nil {
		a.request.DisaggregatedParams = params
		return nil
	}
	if a.ctx.Err() != nil || a.d.config.EnforceDisaggregation {
		return asFailure(err)
	}
	a.d.log.Warn("prefill failed; the decode worker will prefill", "request", a.request.ID, "error", err)
	return nil
}

func (a *answer) runPrefill() ([]byte, error) {
	t, release, err := a.choose(a.set.prefill, a.set.prefillRouter, a.pins.prefill)
	if err != nil {
		return nil, err
	}
	defer release()
	request := a.request
	request.MaxTokens = 1
	stream, err := a.d.call(a.ctx, t, request)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for {
		chunk, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if chunk.Error != "" {
			return nil, errors.New(chunk.Error)
		}
		if chunk.FinishReason != "" {
			a.prefilled = t.instance
			return chunk.DisaggregatedParams, nil
		}
	}
}

// call sends a request to a worker, and remembers one that does not take it.
func (d *dispatcher) call(ctx context.Context, t target, request wire.Request) (*wire.Stream, error) {
	stream, err := d.client.Call(ctx, t.url, request)
	if errors.Is(err, wire.ErrNotAccepted) {
		d.shunned.add(t.instance, time.Now())
	}
	return stream, err
}

// open calls a decode worker. One that did not accept, or died before it
// answered, is replaced by another only within the migration limit: retrying is
// the model owner's decision.
func (a *answer) open() error {
	for {
		t, release, err := a.choose(a.set.decode, a.set.decodeRouter, a.pins.decode)
		if err != nil {
			return err
		}
		a.stream, err = a.d.call(a.ctx, t, a.request)
		if err == nil {
			a.release = release
			a.tried = append(a.tried, t.instance)
			return nil
		}
		release()
		a.tried = append(a.tried, t.instance)
		lost := errors.Is(err, wire.ErrNotAccepted) || errors.Is(err, wire.ErrBroken)
		if !lost || a.moves == 0 || a.pins.decode != 0 {
			return asFailure(err)
		}
		a.moves--
		a.d.metrics.migrations.WithLabelValues(label(a.set.card.DisplayName), "new_request").Inc()
		a.d.log.Warn("worker did not answer, trying another", "request", a.request.ID, "worker", t.instance, "error", err)
	}
}

// Next returns the next part of the answer, io.EOF after the last.
func (a *answer) Next() (wire.Chunk, error) {
	for {
		chunk, err := a.stream.Next()
		if err == nil {
			a.sent += chunk.Tokens
			if chunk.Error != "" {
				return chunk, fail(500, "%s", chunk.Error)
			}
			return chunk, nil
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, wire.ErrBroken) {
			return chunk, io.EOF
		}
		if !a.migrate() {
			return chunk, asFailure(err)
		}
	}
}

// migrate continues a broken answer elsewhere: what was produced becomes part
// of the prompt.
func (a *answer) migrate() bool {
	if a.moves == 0 || a.ctx.Err() != nil || a.pins.decode != 0 {
		return false
	}
	if a.request.MaxTokens > 0 && a.sent >= a.request.MaxTokens {
		return false
	}
	a.moves--
	a.stream.Close()
	a.release()
	a.release = func() {}
	for n := a.request.Offset; n < a.request.Offset+a.sent; n++ {
		token, _ := text.At(a.request.Seed, n)
		a.request.Tokens = append(slices.Clip(a.request.Tokens), token)
	}
	a.request.Offset += a.sent
	if a.request.MaxTokens > 0 {
		a.request.MaxTokens -= a.sent
	}
	a.request.DisaggregatedParams = nil
	a.sent = 0
	a.d.metrics.migrations.WithLabelValues(label(a.set.card.DisplayName), "ongoing_request").Inc()
	a.d.log.Warn("worker lost in the middle of an answer, moving on", "request", a.request.ID, "after", a.request.Offset)
	return a.open() == nil
}

// Close ends the request, wherever it is.
func (a *answer) Close() {
	if a.stream != nil {
		a.stream.Close()
	}
	a.release()
	a.cancel()
}

// asFailure turns a transport error into what a client is told.
func asFailure(err error) error {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return unavailable("%v", err)
}
