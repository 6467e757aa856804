package activator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// world is an activator between clients and a frontend whose models come and go.
type world struct {
	*testing.T
	a      *Activator
	server *httptest.Server
	lease  *leaseStub

	mu       sync.Mutex
	models   []string
	unready  bool
	turnAway int // so many requests find that nobody serves the model
	answered int
	stream   chan string
}

type leaseStub struct {
	mu      sync.Mutex
	before  Told
	told    []Told
	failing int
	unread  int // so many reads fail
	reads   int
	renewed chan struct{}
}

func (l *leaseStub) Read(context.Context) (Told, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.unread > 0 {
		l.unread--
		return Told{}, errors.New("the API server is away")
	}
	return l.before, nil
}

// says has the Lease say something else.
func (l *leaseStub) says(told Told) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = told
}

func (l *leaseStub) Renew(_ context.Context, told Told) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing > 0 {
		l.failing--
		return errors.New("the API server is away")
	}
	l.told = append(l.told, told)
	select {
	case l.renewed <- struct{}{}:
	default:
	}
	return nil
}

func (l *leaseStub) writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.told)
}

func newWorld(t *testing.T, limits Limits, renewal time.Duration, before Told) *world {
	w := &world{T: t, lease: &leaseStub{before: before, renewed: make(chan struct{}, 100)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(out http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		data := []map[string]string{}
		for _, m := range w.models {
			data = append(data, map[string]string{"id": m})
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"data": data})
	})
	mux.HandleFunc("GET /v1/models/{model...}", func(out http.ResponseWriter, _ *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.unready {
			out.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST /v1/chat/completions", func(out http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		w.mu.Lock()
		away := w.turnAway > 0 || len(w.models) == 0
		w.turnAway--
		stream := w.stream
		if !away {
			w.answered++
		}
		w.mu.Unlock()
		if away {
			http.Error(out, "Model not found", http.StatusNotFound)
			return
		}
		if stream == nil {
			fmt.Fprintf(out, "%d bytes", length)
			return
		}
		out.Header().Set("Content-Type", "text/event-stream")
		for token := range stream {
			fmt.Fprintf(out, "data: %s\n\n", token)
			out.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("GET /metrics", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "up 1") })
	behind := httptest.NewServer(mux)
	t.Cleanup(behind.Close)
	at, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.a = New(at, w.lease, renewal, limits, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.a.Run(ctx) }()
	w.server = httptest.NewServer(w.a)
	t.Cleanup(func() { stop(); <-ended; w.server.Close() })
	return w
}

func (w *world) serve(models ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = models
}

func (w *world) ask(body string, header ...string) (status int, text, retryAfter string) {
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.server.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.Error(err)
		return
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Error(err)
		return
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.Error(err)
	}
	return response.StatusCode, string(answer), response.Header.Get("Retry-After")
}

func (w *world) post(body string) *http.Response {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.server.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	return response
}

func (w *world) held() int {
	w.a.gate.mu.Lock()
	defer w.a.gate.mu.Unlock()
	return w.a.gate.held
}

// until waits for a condition.
func (w *world) until(what string, met func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("waited in vain for %s", what)
		}
	}
}

const chat = `{"model": "qwen", "messages": []}`

func roomy() Limits { return Limits{Requests: 100, Bytes: 64 << 20, Wait: time.Minute} }

func TestFiftyRequestsAtASleepingGraphWakeItOnceAndAreAnswered(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if status, text, _ := w.ask(chat); status != http.StatusOK || text != fmt.Sprintf("%d bytes", len(chat)) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
	w.until("50 requests to be held", func() bool { return w.held() == 50 })
	w.until("the wake to be written", func() bool { return w.lease.writes() > 0 })
	w.serve("qwen")
	all.Wait()
	if w.answered != 50 {
		t.Errorf("%d answered", w.answered)
	}
	if n := w.lease.writes(); n != 1 {
		t.Errorf("woken %d times", n)
	}
}

func TestNothingIsReleasedBeforeEveryRoleIsThere(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.mu.Lock()
	w.unready = true
	w.mu.Unlock()
	done := make(chan int)
	go func() { status, _, _ := w.ask(chat); done <- status }()
	w.until("the request to be held", func() bool { return w.held() == 1 })
	w.serve("qwen")
	w.until("the readiness to be asked for", func() bool {
		w.a.frontend.readyMu.Lock()
		defer w.a.frontend.readyMu.Unlock()
		_, asked := w.a.frontend.answers["qwen"]
		return asked
	})
	if w.held() != 1 || w.answered != 0 {
		t.Errorf("%d held, %d answered", w.held(), w.answered)
	}
	w.mu.Lock()
	w.unready = false
	w.mu.Unlock()
	if status := <-done; status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		held   int
		body   string
		header []string
		before Told
		status int
		after  string
	}{
		"no more requests than so many":         {limits: Limits{Requests: 2, Bytes: 1 << 20, Wait: time.Minute}, held: 2, body: chat, status: 503, after: "120"},
		"no more bytes than so many":            {limits: Limits{Requests: 9, Bytes: int64(len(chat)) + 5, Wait: time.Minute}, held: 1, body: chat, status: 503, after: "120"},
		"nothing that is too large":             {limits: Limits{Requests: 9, Bytes: 5, Wait: time.Minute}, body: chat, status: 503, after: "120"},
		"no longer than so long":                {limits: Limits{Requests: 9, Bytes: 1 << 20, Wait: 50 * time.Millisecond}, body: chat, status: 503, after: "120"},
		"no longer than the client says":        {limits: roomy(), body: chat, header: []string{maxWaitHeader, "50ms"}, status: 503, after: "120"},
		"what a start took says when to return": {limits: roomy(), body: chat, header: []string{maxWaitHeader, "0s"}, before: Told{Start: 45 * time.Second}, status: 503, after: "45"},
		"a model that it never served":          {limits: roomy(), body: chat, before: Told{Models: []string{"llama"}}, status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.limits, 30*time.Second, c.before)
			w.until("what was told before", func() bool {
				return cmp.Equal(w.a.signal.models(), c.before.Models) && (c.before.Start == 0 || w.a.signal.start() == c.before.Start)
			})
			var others sync.WaitGroup
			for range c.held {
				others.Go(func() {
					if status, _, _ := w.ask(chat); status != http.StatusOK {
						t.Errorf("a request that was held: %d", status)
					}
				})
			}
			w.until("the others to be held", func() bool { return w.held() == c.held })
			status, text, after := w.ask(c.body, c.header...)
			if status != c.status {
				t.Errorf("answered %d %s", status, text)
			}
			want, _ := strconv.Atoi(c.after)
			if got, _ := strconv.Atoi(after); got < want-5 || got > want {
				t.Errorf("Retry-After is %q, want about %q", after, c.after)
			}
			w.serve("qwen")
			others.Wait()
		})
	}
}

func TestAModelThatItNeverServedWakesNobody(t *testing.T) {
	w := newWorld(t, roomy(), time.Millisecond, Told{Models: []string{"llama"}})
	w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
	if status, _, _ := w.ask(chat); status != http.StatusNotFound {
		t.Errorf("answered %d", status)
	}
	w.a.signal.mu.Lock()
	defer w.a.signal.mu.Unlock()
	if !w.a.signal.told.LastRequest.IsZero() || w.lease.writes() > 0 {
		t.Error("a request for nothing was told of")
	}
}

// TestWhatTheLeaseSaysLaterCounts: others write on it while a frontend of a sleeping graph
// remembers what it once read.
func TestWhatTheLeaseSaysLaterCounts(t *testing.T) {
	for rule, later := range map[string]Told{
		"workers are told to serve another model":  {Models: []string{"llama"}, Declared: []string{"qwen"}},
		"another frontend was asked for a new one": {Models: []string{"llama", "qwen"}},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, roomy(), 30*time.Second, Told{Models: []string{"llama"}})
			w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
			w.lease.says(later)
			done := make(chan int, 1)
			go func() { status, _, _ := w.ask(chat); done <- status }()
			w.until("the request to be held", func() bool { return w.held() == 1 || len(done) > 0 })
			w.serve("qwen")
			if status := <-done; status != http.StatusOK {
				t.Errorf("answered %d", status)
			}
		})
	}
}

// TestALeaseThatCannotBeReadIsReadLater: what was told before is not overwritten by who
// does not know it.
func TestALeaseThatCannotBeReadIsReadLater(t *testing.T) {
	lease := &leaseStub{unread: 1, before: Told{Models: []string{"adapter", "qwen"}}, renewed: make(chan struct{}, 1)}
	n := newRenewer(lease, time.Hour, slog.New(slog.DiscardHandler))
	n.note([]string{"qwen"}, false)
	n.begin()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); n.run(ctx) }()
	<-lease.renewed
	stop()
	<-ended
	if diff := cmp.Diff([]string{"adapter", "qwen"}, lease.told[0].Models); diff != "" {
		t.Errorf("models that are remembered (-want +got):\n%s", diff)
	}
}

// TestWhoAsksForNothingDoesNotHaveTheLeaseReadEachTime: whoever asks a sleeping graph for
// models that it does not serve is no load.
func TestWhoAsksForNothingDoesNotHaveTheLeaseReadEachTime(t *testing.T) {
	w := newWorld(t, roomy(), time.Millisecond, Told{Models: []string{"llama"}})
	w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
	w.lease.mu.Lock()
	w.lease.reads = 0
	w.lease.mu.Unlock()
	for range 20 {
		if status, _, _ := w.ask(chat); status != http.StatusNotFound {
			t.Errorf("answered %d", status)
		}
	}
	w.lease.mu.Lock()
	defer w.lease.mu.Unlock()
	if w.lease.reads > 2 || len(w.lease.told) > 0 {
		t.Errorf("%d reads, %d writes", w.lease.reads, len(w.lease.told))
	}
}

func TestStreamsPassTokenByToken(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.stream = make(chan string)
	w.serve("qwen")
	go func() { w.stream <- "zero" }() // headers come with the first token
	response := w.post(`{"model":"qwen","stream":true}`)
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for i, token := range []string{"zero", "one", "two", "three"} {
		if i > 0 {
			w.stream <- token // nobody sends the next before this one has arrived
		}
		if !lines.Scan() || lines.Text() != "data: "+token {
			t.Fatalf("got %q, want %s", lines.Text(), token)
		}
		lines.Scan()
	}
	close(w.stream)
	if lines.Scan() {
		t.Errorf("after the end: %q", lines.Text())
	}
}

func TestAStreamThatIsHeldIsKeptAlive(t *testing.T) {
	for name, c := range map[string]struct{ wait, want string }{
		"and goes on":  {"1m", "data: token"},
		"and may fail": {"300ms", "event: error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, roomy(), 30*time.Second, Told{})
			w.a.comment = 20 * time.Millisecond
			w.stream = make(chan string, 1)
			w.stream <- "token"
			close(w.stream)
			if c.want == "data: token" {
				go func() {
					w.until("the request to be held", func() bool { return w.held() == 1 })
					time.Sleep(100 * time.Millisecond) // some comments
					w.serve("qwen")
				}()
			}
			status, text, _ := w.ask(`{"model":"qwen","stream":true}`, maxWaitHeader, c.wait)
			if status != http.StatusOK || !strings.HasPrefix(text, ": the model is being started\n\n") || !strings.Contains(text, "\n"+c.want) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

func TestARequestWhileWorkersEndIsSentAgain(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.serve("qwen")
	if status, _, _ := w.ask(chat); status != http.StatusOK {
		t.Fatal(status)
	}
	w.serve() // what is known of the frontend is older
	done := make(chan int)
	go func() { status, _, _ := w.ask(chat); done <- status }()
	w.until("the request to be held", func() bool { return w.held() == 1 })
	w.serve("qwen")
	if status := <-done; status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
	if n := w.lease.writes(); n != 2 {
		t.Errorf("%d writes: the first request, and at once the one that finds nobody", n)
	}
}

func TestWhatAModelSaysIsPassedOn(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.serve("qwen")
	w.turnAway = 1
	if status, text, _ := w.ask(chat); status != http.StatusNotFound || !strings.Contains(text, "Model not found") {
		t.Errorf("%d %s", status, text)
	}
	w.turnAway = 0
	large := `{"model":"qwen","messages":"` + strings.Repeat("x", 3<<20) + `"}`
	if status, text, _ := w.ask(large); status != http.StatusOK || text != fmt.Sprintf("%d bytes", len(large)) {
		t.Errorf("%d %s", status, text)
	}
	// One without a model is the frontend's to judge.
	if status, _, _ := w.ask(`{}`); status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
}

func TestALargeRequestIsHeldWhole(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	large := `{"model":"qwen","messages":"` + strings.Repeat("x", 3<<20) + `"}`
	done := make(chan string)
	go func() { _, text, _ := w.ask(large); done <- text }()
	w.until("the request to be held", func() bool { return w.held() == 1 })
	w.serve("qwen")
	if text := <-done; text != fmt.Sprintf("%d bytes", len(large)) {
		t.Error(text)
	}
}

// late is a request of 3 MiB whose model comes after everything else.
func late(model string) string {
	return `{"messages":"` + strings.Repeat("x", 3<<20) + `","model":"` + model + `"}`
}

func TestAModelThatIsNamedLateIsFound(t *testing.T) {
	t.Run("a graph that serves is told to be asked", func(t *testing.T) {
		w := newWorld(t, roomy(), 30*time.Second, Told{Models: []string{"qwen"}})
		w.serve("qwen")
		if status, text, _ := w.ask(late("qwen")); status != http.StatusOK || text != fmt.Sprintf("%d bytes", len(late("qwen"))) {
			t.Errorf("%d %s", status, text)
		}
		w.until("the request to be told of", func() bool { return w.lease.writes() == 1 })
	})
	t.Run("a graph that sleeps is woken", func(t *testing.T) {
		w := newWorld(t, roomy(), 30*time.Second, Told{Models: []string{"qwen"}})
		w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
		done := make(chan string, 1)
		go func() { _, text, _ := w.ask(late("qwen")); done <- text }()
		w.until("the request to be held", func() bool { return w.held() == 1 || len(done) > 0 })
		w.until("the wake to be written", func() bool { return w.lease.writes() == 1 || len(done) > 0 })
		w.serve("qwen")
		if text := <-done; text != fmt.Sprintf("%d bytes", len(late("qwen"))) {
			t.Error(text)
		}
		if n := w.lease.writes(); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
	t.Run("what it never served wakes nobody", func(t *testing.T) {
		w := newWorld(t, roomy(), time.Millisecond, Told{Models: []string{"llama"}})
		w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
		if status, _, _ := w.ask(late("qwen")); status != http.StatusNotFound {
			t.Errorf("answered %d", status)
		}
		w.a.signal.mu.Lock()
		defer w.a.signal.mu.Unlock()
		if !w.a.signal.told.LastRequest.IsZero() || w.lease.writes() > 0 {
			t.Error("a request for nothing was told of")
		}
	})
}

// TestAFormNamesItsModel: requests with audio are forms, with the file before or after.
func TestAFormNamesItsModel(t *testing.T) {
	for _, fields := range [][]string{{"model", "file"}, {"file", "model"}} {
		t.Run(strings.Join(fields, " before "), func(t *testing.T) {
			w := newWorld(t, roomy(), 30*time.Second, Told{Models: []string{"whisper"}})
			w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
			body := &bytes.Buffer{}
			form := multipart.NewWriter(body)
			for _, field := range fields {
				if field == "model" {
					_ = form.WriteField("model", "whisper")
					continue
				}
				file, err := form.CreateFormFile("file", "speech.wav")
				if err != nil {
					t.Fatal(err)
				}
				_, _ = file.Write(make([]byte, 3<<20))
			}
			_ = form.Close()
			text := body.String()
			done := make(chan string, 1)
			go func() {
				_, answer, _ := w.ask(text, "Content-Type", form.FormDataContentType())
				done <- answer
			}()
			w.until("the request to be held", func() bool { return w.held() == 1 || len(done) > 0 })
			w.serve("whisper")
			if answer := <-done; answer != fmt.Sprintf("%d bytes", len(text)) {
				t.Error(answer)
			}
			w.until("the wake to be written", func() bool { return w.lease.writes() > 0 })
		})
	}
}

// TestAModelThatDoesNotComeBackIsNotWaitedFor: a graph woke with other models than those
// that a request was held for.
func TestAModelThatDoesNotComeBackIsNotWaitedFor(t *testing.T) {
	for rule, c := range map[string]struct {
		before Told
		listed time.Duration // for so long others are
		status int
	}{
		"not longer than adapters take":           {Told{Models: []string{"qwen"}}, complete + time.Second, http.StatusNotFound},
		"nor where nothing is known":              {Told{}, complete + time.Second, http.StatusNotFound},
		"one that was served may still come":      {Told{Models: []string{"qwen"}}, complete - 30*time.Second, http.StatusServiceUnavailable},
		"so may any where nothing is known":       {Told{}, settling + time.Second, http.StatusServiceUnavailable},
		"what workers are told to serve may load": {Told{Models: []string{"llama"}, Declared: []string{"llama", "qwen"}}, 2 * complete, http.StatusServiceUnavailable},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, roomy(), 30*time.Second, c.before)
			w.until("what was told before", func() bool { return len(w.a.signal.models()) == len(c.before.Models) })
			type answer struct {
				status int
				text   string
			}
			done := make(chan answer, 1)
			go func() { status, text, _ := w.ask(chat, maxWaitHeader, "3s"); done <- answer{status, text} }()
			w.until("the request to be held", func() bool { return w.held() == 1 })
			w.serve("llama")
			w.until("the other to be seen", func() bool {
				w.a.frontend.mu.Lock()
				defer w.a.frontend.mu.Unlock()
				if w.a.frontend.up.IsZero() {
					return false
				}
				w.a.frontend.up = time.Now().Add(-c.listed)
				return true
			})
			if got := <-done; got.status != c.status {
				t.Errorf("answered %d %s", got.status, got.text)
			}
		})
	}
}

// TestADeclaredModelMayLoadWhileOthersServe: who asks for it late is held as who asked before.
func TestADeclaredModelMayLoadWhileOthersServe(t *testing.T) {
	for rule, c := range map[string]struct {
		before, later []string // what workers are told to serve, and what they are told once others serve
		status        int
	}{
		"one that workers are told to serve may load":  {[]string{"llama", "qwen"}, []string{"llama", "qwen"}, http.StatusServiceUnavailable},
		"so may one that they were told to later":      {[]string{"llama"}, []string{"llama", "qwen"}, http.StatusServiceUnavailable},
		"one that they are not told to does not come":  {[]string{"llama"}, []string{"llama"}, http.StatusNotFound},
		"nor one that they are not told to any longer": {[]string{"llama", "qwen"}, []string{"llama"}, http.StatusNotFound},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, roomy(), 30*time.Second, Told{Models: []string{"llama"}, Declared: c.before})
			w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
			w.serve("llama")
			w.a.frontend.serves(t.Context(), "llama", 0)
			w.a.frontend.mu.Lock()
			w.a.frontend.up = time.Now().Add(-2 * complete)
			w.a.frontend.mu.Unlock()
			w.lease.says(Told{Models: []string{"llama"}, Declared: c.later})
			status, text, retryAfter := w.ask(chat, maxWaitHeader, "1s")
			if status != c.status || (retryAfter != "") != (c.status == http.StatusServiceUnavailable) {
				t.Errorf("answered %d %s, Retry-After %q", status, text, retryAfter)
			}
		})
	}
}

func TestAMomentIsNoStart(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{Start: 45 * time.Second})
	w.until("what was told before", func() bool { return w.a.signal.start() == 45*time.Second })
	done := make(chan int)
	go func() { status, _, _ := w.ask(chat); done <- status }()
	w.until("the request to be held", func() bool { return w.held() == 1 })
	w.serve("qwen")
	if status := <-done; status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
	if got := w.a.signal.start(); got != 45*time.Second {
		t.Errorf("the last start took %s", got)
	}
}

// stalled begins a request of so many bytes, sends the first of them and no more.
func (w *world) stalled(beginning string, length int, header ...string) (answer func() (int, error)) {
	w.Helper()
	connection, err := net.Dial("tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = connection.Close() })
	text := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: w\r\nContent-Length: %d\r\n", length)
	for i := 0; i+1 < len(header); i += 2 {
		text += header[i] + ": " + header[i+1] + "\r\n"
	}
	if _, err := io.WriteString(connection, text+"\r\n"+beginning); err != nil {
		w.Fatal(err)
	}
	return func() (int, error) {
		_ = connection.SetReadDeadline(time.Now().Add(20 * time.Second))
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			return 0, err
		}
		_ = response.Body.Close()
		return response.StatusCode, nil
	}
}

// TestStalledRequestsTakeNoMoreMemoryThanThereIs: whoever announces a large body and never
// sends it has its share of a budget, and others are answered.
func TestStalledRequestsTakeNoMoreMemoryThanThereIs(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.serve("qwen")
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	beginning := `{"model":"qwen","messages":"` + strings.Repeat("x", 900<<10)
	for range 400 {
		w.stalled(beginning, peek-1)
	}
	w.until("what they sent to be read", func() bool { return w.a.bodies.waiting() == 400 })
	if status, text, _ := w.ask(chat); status != http.StatusOK {
		t.Errorf("another is answered %d %s", status, text)
	}
	large := `{"model":"qwen","messages":"` + strings.Repeat("x", 3<<20) + `"}`
	if status, text, _ := w.ask(large); status != http.StatusOK || text != fmt.Sprintf("%d bytes", len(large)) {
		t.Errorf("another large one is answered %d %s", status, text)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if most := uint64(200 << 20); after.HeapAlloc-before.HeapAlloc > most {
		t.Errorf("%d MiB are held", (after.HeapAlloc-before.HeapAlloc)>>20)
	}
}

func TestABodyThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	w := newWorld(t, roomy(), 30*time.Second, Told{})
	w.a.patience = 200 * time.Millisecond
	for rule, c := range map[string]struct {
		sent   int
		length int
		wait   string
		status int
	}{
		"before it is known what it asks": {sent: 10, length: 1000, status: http.StatusRequestTimeout},
		"while it is held":                {sent: peek, length: 3 << 20, wait: "300ms", status: http.StatusServiceUnavailable},
	} {
		t.Run(rule, func(t *testing.T) {
			body := `{"model":"qwen","messages":"` + strings.Repeat("x", c.sent)
			status, err := w.stalled(body, c.length, maxWaitHeader, c.wait)()
			if err != nil || status != c.status {
				t.Errorf("answered %d, %v", status, err)
			}
		})
	}
	if w.held() != 0 || w.a.bodies.waiting() != 0 {
		t.Errorf("%d are held, %d are read", w.held(), w.a.bodies.waiting())
	}
	w.serve("qwen")
	if status, text, _ := w.ask(chat); status != http.StatusOK {
		t.Errorf("another is answered %d %s", status, text)
	}
}

func TestWhoeverOnlyLooksWakesNobody(t *testing.T) {
	w := newWorld(t, roomy(), time.Millisecond, Told{Models: []string{"qwen"}})
	w.until("what was told before", func() bool { return len(w.a.signal.models()) > 0 })
	for path, want := range map[string]string{"/metrics": "up 1", "/v1/models": `"qwen"`, "/activator/healthz": ""} {
		response, err := http.Get(w.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d %s", path, response.StatusCode, text)
		}
	}
	if n := w.lease.writes(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestRequestsAreToldOfRarelyAndIdleNotAtAll(t *testing.T) {
	w := newWorld(t, roomy(), 300*time.Millisecond, Told{})
	w.serve("qwen")
	begin := time.Now()
	for range 40 {
		w.ask(chat)
		time.Sleep(10 * time.Millisecond)
	}
	w.until("the last request to be told of", func() bool {
		w.lease.mu.Lock()
		defer w.lease.mu.Unlock()
		w.a.signal.mu.Lock()
		defer w.a.signal.mu.Unlock()
		return !w.a.signal.dirty && len(w.lease.told) > 0 && w.lease.told[len(w.lease.told)-1].LastRequest.Equal(w.a.signal.told.LastRequest)
	})
	n := w.lease.writes()
	if most := int(time.Since(begin)/(300*time.Millisecond)) + 1; n < 2 || n > most {
		t.Errorf("%d writes, at most %d", n, most)
	}
	if due, pending := w.a.signal.due(time.Now()); pending {
		t.Errorf("while nobody asks something is to be written in %s", due)
	}
	if diff := cmp.Diff([]string{"qwen"}, w.lease.told[n-1].Models); diff != "" {
		t.Error(diff)
	}
}

func TestAWakeIsWrittenUntilItIsTaken(t *testing.T) {
	w := newWorld(t, roomy(), time.Hour, Told{})
	w.lease.failing = 2
	done := make(chan int)
	go func() { status, _, _ := w.ask(chat); done <- status }()
	w.until("the wake to be written", func() bool { return w.lease.writes() == 1 })
	w.serve("qwen")
	if status := <-done; status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
}

func TestWhoEndsSendsAwayWhatItHolds(t *testing.T) {
	w := newWorld(t, roomy(), time.Hour, Told{})
	type answer struct {
		status int
		after  string
	}
	done := make(chan answer)
	go func() { status, _, after := w.ask(chat); done <- answer{status, after} }()
	w.until("the request to be held", func() bool { return w.held() == 1 })
	w.a.gate.close()
	if got := <-done; got.status != http.StatusServiceUnavailable || got.after != "1" {
		t.Errorf("%+v", got)
	}
}

func TestNames(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"a/b","stream":true}`:             "a/b true",
		`{"messages":[{"model":"no"}],"model":"m"}`: "m false",
		`{"model":"m","messages":"cut o`:            "m false",
		`{"messages":"cut o`:                        " false",
		`{"model":7}`:                               " false",
		`[1]`:                                       " false",
		``:                                          " false",
		`{"model":"m","stream":"true"}`:             "m false",
	} {
		model, stream := names([]byte(body))
		if got := fmt.Sprintf("%s %t", model, stream); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestModelsAreForgottenOnceTheGraphIsComplete(t *testing.T) {
	n := newRenewer(&leaseStub{}, time.Hour, slog.New(slog.DiscardHandler))
	for _, c := range []struct {
		rule   string
		listed []string
		all    bool
		want   []string
	}{
		{"the first", []string{"base", "adapter"}, true, []string{"adapter", "base"}},
		{"a graph that wakes has them one by one", []string{"base"}, false, []string{"adapter", "base"}},
		{"one that is gone is forgotten", []string{"base"}, true, []string{"base"}},
	} {
		n.note(c.listed, c.all)
		if diff := cmp.Diff(c.want, n.models()); diff != "" {
			t.Errorf("%s: %s", c.rule, diff)
		}
	}
	if n.knows("adapter") || !n.knows("base") {
		t.Error("what is gone is known")
	}
}
