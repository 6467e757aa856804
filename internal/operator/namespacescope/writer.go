package namespacescope

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/operator/metric"
)

// Permit is for how long a namespace may be written to from now on; the empty name
// is the cluster itself.
type Permit func(ctx context.Context, namespace string) (time.Duration, error)

// Writer stands in the way of every request that changes something. What decides
// earlier, at the beginning of a reconcile, spares work; what keeps two operators from
// writing at once is here, since a process can be stopped for minutes between any two
// of its steps.
//
// Between the check and the moment the request is on its way are microseconds. A
// process that is stopped exactly there sends one late request, which no client of
// Kubernetes can prevent: the API server does not know terms.
type Writer struct {
	// Permits all have to agree.
	Permits []Permit
	// Terms end when a namespace is lost.
	Terms []func(namespace string) context.Context

	// sending is held by requests that are under way.
	sending sync.RWMutex
	closed  atomic.Bool
}

// Left is for how long a namespace may be written to from now on.
func (w *Writer) Left(ctx context.Context, namespace string) (time.Duration, error) {
	if GuardWriter.Off() {
		return time.Hour, nil
	}
	if w.closed.Load() {
		return 0, fmt.Errorf("%w: the operator is ending", ErrNotWriter)
	}
	least := time.Hour
	for _, permit := range w.Permits {
		left, err := permit(ctx, namespace)
		if err != nil {
			return 0, err
		}
		least = min(least, left)
	}
	return least, nil
}

// While is a context for work on a namespace that ends, for its reason, when the
// namespace is lost.
func (w *Writer) While(ctx context.Context, namespace string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if GuardWriter.Off() {
		return ctx, func() { cancel(nil) }
	}
	var stops []func() bool
	for _, term := range w.Terms {
		lost := term(namespace)
		stops = append(stops, context.AfterFunc(lost, func() { cancel(context.Cause(lost)) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// Close lets nothing be written any more and returns when the last request has been
// answered, or ctx ends.
func (w *Writer) Close(ctx context.Context) error {
	w.closed.Store(true)
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		w.sending.Lock()
		defer w.sending.Unlock()
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the answer to the last write: %w", ctx.Err())
	}
}

// Transport refuses requests that are not ours to make.
func (w *Writer) Transport(next http.RoundTripper) http.RoundTripper { return writing{w, next} }

type writing struct {
	*Writer
	next http.RoundTripper
}

func (w writing) RoundTrip(request *http.Request) (*http.Response, error) {
	write, changes := metric.WriteOf(request)
	if !changes || harmless(write) {
		return w.next.RoundTrip(request)
	}
	w.sending.RLock()
	defer w.sending.RUnlock()
	left, err := w.Left(context.WithValue(request.Context(), noting{}, isNote(request)), write.Namespace)
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a transport does, whatever comes of it
		}
		return nil, fmt.Errorf("%s %s: %w", write.Verb, write.Resource, err)
	}
	// A request that waits for a connection must not go out when the time is over.
	ctx, cancel := context.WithTimeoutCause(request.Context(), left, ErrNotWriter)
	response, err := w.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = &closing{response.Body, cancel}
	return response, nil
}

// closing ends a context with the body that is read under it.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *closing) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// harmless is what operators may do side by side: events belong to nobody.
func harmless(write metric.Write) bool { return write.Resource == "events" }

// noter is the field manager of conditions that say whose an object is. They are the
// one thing that is written to a namespace that another operator holds, and never
// over what was not seen.
const noter = "dynamo-operator-scope"

type noting struct{}

func isNote(request *http.Request) bool {
	return strings.HasSuffix(request.URL.Path, "/status") && request.URL.Query().Get("fieldManager") == noter
}

// IsNote reports whether a URL, as an audit log has it, is that of such a condition.
func IsNote(uri string) bool {
	return strings.Contains(uri, "/status?") && strings.Contains(uri, "fieldManager="+noter)
}
