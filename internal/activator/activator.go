// Package activator stands before a frontend and holds requests while the graph behind it
// wakes. It passes everything else on as it comes, tells by a Lease when the last request
// came, and decides nothing: whether the graph sleeps is the operator's to say.
package activator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/render/pod"
)

// Limits are what an activator holds at most.
type Limits struct {
	Requests int
	Bytes    int64
	// Wait is how long a request is held.
	Wait time.Duration
}

// DefaultLimits are those of a frontend, but for the time, which a graph says.
func DefaultLimits(wait time.Duration) Limits {
	return Limits{Requests: 100, Bytes: 64 << 20, Wait: wait}
}

// Activator is a handler before one frontend.
type Activator struct {
	frontend *frontend
	signal   *renewer
	gate     *gate
	forward  *httputil.ReverseProxy
	comment  time.Duration
	// patience is how long the beginning of a body may take.
	patience time.Duration
	bodies   bodies
	log      *slog.Logger
}

// New makes the activator of a frontend. Run has to run for it to tell of requests.
func New(frontendURL *url.URL, lease Lease, renewal time.Duration, limits Limits, log *slog.Logger) *Activator {
	transport := &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	f := &frontend{url: frontendURL, client: &http.Client{Transport: transport, Timeout: 2 * time.Second}}
	a := &Activator{frontend: f, signal: newRenewer(lease, renewal, log), comment: 10 * time.Second, patience: time.Minute, log: log}
	a.gate = newGate(f, a.signal, limits)
	a.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(frontendURL)
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		Transport:     transport,
		FlushInterval: -1, // tokens are passed on one by one
		ModifyResponse: func(response *http.Response) error {
			return attemptOf(response.Request.Context()).judge(response.StatusCode)
		},
		ErrorHandler: a.failed,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return a
}

// Run tells of requests until ctx ends, and sends away those that are held then.
func (a *Activator) Run(ctx context.Context) {
	a.signal.run(ctx)
	a.gate.close()
}

// ServeHTTP passes a request on, when there is somebody to answer it.
func (a *Activator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == pod.ActivatorHealth:
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodGet && r.URL.Path == modelsPath:
		a.listModels(w, r)
	case r.Method == http.MethodPost && asksModel(r.URL.Path):
		a.serve(w, r)
	default:
		a.pass(w, r)
	}
}

// pass forwards what needs no worker.
func (a *Activator) pass(w http.ResponseWriter, r *http.Request) { a.forward.ServeHTTP(w, r) }

// serve has a model asked, and wakes the graph if it is not there.
func (a *Activator) serve(w http.ResponseWriter, r *http.Request) {
	memory := a.bodies.begin()
	defer memory.release()
	asked, err := read(w, r, memory, time.Now().Add(a.patience))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusRequestTimeout, "the request did not come")
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, "the request cannot be read")
		return
	}
	out := &answer{ResponseWriter: w}
	deadline := time.Now().Add(a.gate.wait(r.Header.Get(maxWaitHeader)))
	if err := a.recognise(r, out, asked, deadline); err != nil {
		a.refuse(out, err)
		return
	}
	switch {
	case asked.model == "" && asked.whole: // the frontend says what is wrong with it
	case asked.model == "": // it is named further on, and the frontend finds it there
		defer a.signal.begin()()
	case a.unknown(r.Context(), asked.model):
		a.refuse(out, errUnknownModel)
		return
	default:
		defer a.signal.begin()()
	}
	held := time.Time{} // when the request was let go after it was held
	for {
		if asked.model != "" && !a.frontend.serves(r.Context(), asked.model, fresh) {
			if err := a.hold(r, out, asked, deadline); err != nil {
				a.refuse(out, err)
				return
			}
			held = time.Now()
		}
		try := &attempt{again: func(status int) bool { return a.again(r.Context(), asked, status, held) }}
		again := r.Clone(context.WithValue(r.Context(), attemptKey{}, try))
		again.Body, again.ContentLength = asked.body(r)
		a.forward.ServeHTTP(out, again)
		if !try.gone {
			return
		}
		if !time.Now().Before(deadline) {
			a.refuse(out, errTimeout)
			return
		}
		if a.frontend.serves(r.Context(), asked.model, 0) {
			sleep(r.Context(), retryPause)
		}
	}
}

const (
	// fresh is how old what is known of a frontend may be.
	fresh = time.Second
	// settling is how long after a wake a worker may still turn requests away.
	settling   = 10 * time.Second
	retryPause = 200 * time.Millisecond
)

// again says whether an answer is no answer: nobody serves the model any more, or not yet.
// What cannot be sent a second time is not.
func (a *Activator) again(ctx context.Context, asked *request, status int, held time.Time) bool {
	if asked.model == "" || !asked.whole || status != http.StatusNotFound && status < http.StatusInternalServerError {
		return false
	}
	if status == http.StatusServiceUnavailable && !held.IsZero() && time.Since(held) < settling {
		return true
	}
	return !a.frontend.serves(ctx, asked.model, 0)
}

// unknown says that the graph serves no such model, awake or not. What is remembered may be
// of before its workers were changed, so that the Lease is read once more.
func (a *Activator) unknown(ctx context.Context, model string) bool {
	switch {
	case a.frontend.serves(ctx, model, fresh):
		return false
	case a.frontend.lacks(model, complete):
		// All that there are going to be are listed, but for those that take longer to load.
		a.signal.look(ctx)
		return !a.signal.declares(model)
	case a.signal.knows(model):
		return false
	}
	a.signal.look(ctx)
	return !a.signal.knows(model)
}

// recognise reads all of a request whose model is not named in what was read of it, if
// nobody is there to answer it: only then it is known whether the graph is worth waking.
func (a *Activator) recognise(r *http.Request, out *answer, asked *request, deadline time.Time) error {
	if asked.model != "" || asked.whole || a.frontend.awake(r.Context()) {
		return nil
	}
	ticket, err := a.gate.reserve(asked)
	if errors.Is(err, errTooLarge) {
		a.signal.begin()() // nothing finds out, and it is told to come back
	}
	if err != nil {
		return err
	}
	defer a.gate.release(ticket)
	return asked.complete(out.ResponseWriter, r.Body, deadline)
}

// hold keeps a request until its model is served.
func (a *Activator) hold(r *http.Request, out *answer, asked *request, deadline time.Time) error {
	ticket, err := a.gate.enter(asked)
	if err != nil {
		return err
	}
	defer a.gate.leave(ticket)
	if err := asked.complete(out.ResponseWriter, r.Body, deadline); err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(r.Context(), deadline)
	defer cancel()
	for {
		if err := a.gate.open(ctx, asked.model, complete, a.comment); !errors.Is(err, errStill) {
			return err
		}
		if asked.stream {
			out.comment()
		}
	}
}

// refuse answers in the frontend's stead.
func (a *Activator) refuse(out *answer, err error) {
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, io.ErrUnexpectedEOF):
		return // nobody waits for an answer
	case errors.Is(err, errUnknownModel):
		refuse(out, http.StatusNotFound, err.Error())
	default:
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
			err = errTimeout
		}
		out.Header().Set("Retry-After", strconv.Itoa(a.gate.retryAfter(err)))
		refuse(out, http.StatusServiceUnavailable, err.Error())
	}
}

// failed is called where a frontend did not answer, or not as it should.
func (a *Activator) failed(w http.ResponseWriter, r *http.Request, err error) {
	try := attemptOf(r.Context())
	if errors.Is(err, errGone) || r.Context().Err() == nil && try != nil && try.again != nil && try.again(http.StatusBadGateway) {
		try.gone = true
		return
	}
	if r.Context().Err() == nil {
		a.log.Warn("frontend did not answer", "path", r.URL.Path, "error", err)
		refuse(w, http.StatusBadGateway, "the frontend does not answer")
	}
}

var errGone = errors.New("nobody serves the model")

// attempt is one try to have a request answered.
type attempt struct {
	again func(status int) bool
	gone  bool
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	try, _ := ctx.Value(attemptKey{}).(*attempt)
	return try
}

func (t *attempt) judge(status int) error {
	if t != nil && t.again(status) {
		return errGone
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
