package console

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dynamo-operator/dynamo-operator/internal/core/sanitise"
)

// Times of a live page: changes that come together are sent together, and ages move on
// though nothing changes.
const (
	gather  = 100 * time.Millisecond
	breath  = 250 * time.Millisecond
	refresh = 5 * time.Second
)

// stream writes server-sent events.
type stream struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return stream{w, http.NewResponseController(w)}
}

// send writes one event; text may have several lines.
func (s stream) send(name, id, text string) error {
	var b strings.Builder
	b.WriteString("event: " + name + "\n")
	if id != "" {
		b.WriteString("id: " + id + "\n")
	}
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("data: " + strings.TrimSuffix(line, "\r") + "\n")
	}
	if _, err := io.WriteString(s.w, b.String()+"\n"); err != nil {
		return err
	}
	return s.c.Flush()
}

// live sends the blocks of a page, each when it changes.
func (s *Server) live(w http.ResponseWriter, r *http.Request, p page) {
	changes, stop := s.source.changes.listen()
	defer stop()
	if p.closely != nil {
		defer s.scraper.watch(p.closely(r))()
	}
	out := newStream(w)
	sent := map[string]string{}
	for tick := time.NewTicker(refresh); ; {
		_, data := p.data(s, r)
		if err := s.sendChanged(out, sent, p, data); err != nil {
			tick.Stop()
			return // the page is closed
		}
		pause(r.Context(), breath)
		select {
		case <-r.Context().Done():
			tick.Stop()
			return
		case <-tick.C:
		case <-changes:
			pause(r.Context(), gather)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s *Server) sendChanged(out stream, sent map[string]string, p page, data any) error {
	send := func(name string, data any) error {
		text, err := text(name, data)
		if err != nil || sent[name] == text {
			return err
		}
		sent[name] = text
		return out.send(name, "", text)
	}
	if err := send("banner", s.banner()); err != nil {
		return err
	}
	for _, name := range p.blocks {
		if err := send(name, data); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of a log that is followed.
const (
	logTail  = int64(500)
	logBatch = 200
)

// log follows a container's log.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	namespace, pod, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	previous := r.URL.Query().Has("previous")
	options := &corev1.PodLogOptions{Container: container, Follow: !previous, Previous: previous, Timestamps: true, TailLines: new(logTail)}
	last := r.Header.Get("Last-Event-ID") // of a page that was cut off
	if at, err := time.Parse(time.RFC3339Nano, last); err == nil {
		options.TailLines, options.SinceTime = nil, &metav1.Time{Time: at}
	}
	out := newStream(w)
	lines, err := s.options.Cluster.Pods.Pods(namespace).GetLogs(pod, options).Stream(r.Context())
	if err != nil {
		s.end(out, "The log cannot be read: "+err.Error())
		return
	}
	defer lines.Close()
	err = follow(r.Context(), lines, last, out)
	switch {
	case r.Context().Err() != nil:
	case err != nil:
		s.end(out, "The log broke off: "+err.Error())
	default:
		s.end(out, "The log ends here.")
	}
}

func (s *Server) end(out stream, said string) {
	text, err := text("log-end", said)
	if err == nil {
		_ = out.send("end", "", text) // who is gone needs no end
	}
}

// follow passes lines on, as many at a time as there are.
func follow(ctx context.Context, from io.Reader, last string, out stream) error {
	read := make(chan string, logBatch)
	failed := make(chan error, 1)
	go func() {
		defer close(read)
		lines := bufio.NewScanner(from)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			select {
			case read <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
		failed <- lines.Err()
	}()
	for line := range read {
		batch := []string{line}
		for len(batch) < logBatch && len(read) > 0 {
			batch = append(batch, <-read)
		}
		if err := sendLines(out, batch, last); err != nil {
			return err
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return ctx.Err()
	}
}

// logLine is a line of a log and when it was written.
type logLine struct{ Time, Text string }

func sendLines(out stream, batch []string, last string) error {
	var lines []logLine
	id := ""
	for _, line := range batch {
		at, rest, timed := strings.Cut(line, " ")
		if when, err := time.Parse(time.RFC3339Nano, at); !timed || err != nil {
			lines = append(lines, logLine{Text: sanitise.Text(line)})
		} else if at > last {
			id = at
			lines = append(lines, logLine{when.Local().Format(time.TimeOnly), sanitise.Text(rest)})
		}
	}
	if len(lines) == 0 {
		return nil
	}
	text, err := text("log-lines", lines)
	if err != nil {
		return err
	}
	return out.send("lines", id, text)
}

// ask takes a question; the answer comes by a stream of its own.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestQuestion)
	q := question{key: keyOf(r), model: r.FormValue("model"), text: strings.TrimSpace(r.FormValue("question")), tokens: longestAnswer}
	if q.text == "" || q.model == "" {
		s.render(w, "said", map[string]any{"Tone": "bad", "Text": "Write a question and choose a model."})
		return
	}
	id, err := secret()
	if err != nil {
		s.render(w, "said", map[string]any{"Tone": "bad", "Text": err.Error()})
		return
	}
	s.mu.Lock()
	if len(s.questions) >= openQuestions {
		clear(s.questions) // nobody follows those
	}
	s.questions[id] = q
	s.mu.Unlock()
	s.render(w, "question", map[string]any{"ID": id, "Text": q.text, "Model": q.model})
}

// answer streams the answer to a question, once.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	q, known := s.questions[r.PathValue("id")]
	delete(s.questions, r.PathValue("id"))
	s.mu.Unlock()
	if !known {
		w.WriteHeader(http.StatusNoContent) // which ends an EventSource for good
		return
	}
	out := newStream(w)
	came, err := s.asker.ask(r.Context(), q, func(piece string) {
		if text, err := text("piece", sanitise.Text(piece)); err == nil {
			_ = out.send("piece", "", text) // the context ends with the page
		}
	})
	if r.Context().Err() != nil {
		return
	}
	problem := ""
	if err != nil {
		problem = unasked(err, q.key.Namespace)
	}
	if text, err := text("came", map[string]any{"Came": came, "Problem": problem}); err == nil {
		_ = out.send("came", "", text) // as above
	}
	_ = out.send("done", "", "") // as above
}

// text executes a template.
func text(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return b.String(), nil
}

// render writes a whole answer, or none.
func (s *Server) render(w http.ResponseWriter, name string, data any) {
	text, err := text(name, data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := io.WriteString(w, text); err != nil && !errors.Is(err, http.ErrHandlerTimeout) {
		return // who asked is gone
	}
}
