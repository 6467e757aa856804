package activator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxWaitHeader is by which a client says how long it waits at most, as in 90s.
const maxWaitHeader = "X-Dynamo-Max-Wait"

const (
	// peek is how much of a body is read to see which model it asks. A longer one is passed
	// on as it comes and cannot be sent a second time, unless it is held.
	peek = 1 << 20
	// leastPeek is what is read of any, however many there are.
	leastPeek = 64 << 10
	// mostBodies is what all that is read takes at most beyond that. It leaves the garbage
	// collector as much again, and half of that, of what the container may have.
	mostBodies = 128 << 20
)

// bodies are what was read of all requests.
type bodies struct {
	mu    sync.Mutex
	bytes int64
	open  int
}

// begin has one more read.
func (b *bodies) begin() *memory {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
	return &memory{of: b}
}

// waiting is of how many requests something is kept.
func (b *bodies) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// memory is what one of them takes.
type memory struct {
	of    *bodies
	bytes int64
}

// take reports whether there is room for so much in place of what it had.
func (m *memory) take(bytes int64) bool {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	if m.of.bytes-m.bytes+bytes > mostBodies {
		return false
	}
	m.of.bytes, m.bytes = m.of.bytes-m.bytes+bytes, bytes
	return true
}

// release gives it back.
func (m *memory) release() {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	m.of.bytes -= m.bytes
	m.of.open--
}

// asksModel reports whether a path is one of the API that workers answer.
func asksModel(path string) bool { return strings.HasPrefix(path, "/v1/") }

// request is what was read of one.
type request struct {
	model  string
	stream bool
	// read is the body so far, whole says that it is all of it. length is what was
	// announced; below 0 nothing was.
	read   []byte
	whole  bool
	length int64
	// boundary is what parts of a form are set apart by; empty where the body is JSON.
	boundary string
	memory   *memory
}

// complete reads the rest of a body that is held, until a deadline.
func (q *request) complete(w http.ResponseWriter, body io.Reader, deadline time.Time) error {
	if q.whole {
		return nil
	}
	if !q.memory.take(q.length) {
		return errFull
	}
	all := make([]byte, q.length)
	if err := until(w, deadline, func() error {
		_, err := io.ReadFull(body, all[copy(all, q.read):])
		return err
	}); err != nil {
		return err
	}
	q.read, q.whole = all, true
	if q.model == "" {
		q.name()
	}
	return nil
}

// read reads the beginning of a request, until a deadline. What is known to be small is
// read in full.
func read(w http.ResponseWriter, r *http.Request, m *memory, deadline time.Time) (*request, error) {
	asked := &request{length: r.ContentLength, memory: m}
	if kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		asked.boundary = parameters["boundary"]
	}
	size := int64(peek)
	if asked.length >= 0 {
		size = min(size, asked.length)
	}
	if size > leastPeek && !m.take(size) {
		size = leastPeek
	}
	if err := until(w, deadline, func() (err error) {
		if asked.length < 0 {
			asked.read, err = io.ReadAll(io.LimitReader(r.Body, size))
			asked.whole = int64(len(asked.read)) < size
			return err
		}
		asked.read, asked.whole = make([]byte, size), size == asked.length
		_, err = io.ReadFull(r.Body, asked.read)
		return err
	}); err != nil {
		return nil, err
	}
	asked.name()
	return asked, nil
}

// until has a body read until a deadline: whoever stops sending is not waited for.
func until(w http.ResponseWriter, deadline time.Time, read func() error) error {
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(deadline); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	return connection.SetReadDeadline(time.Time{})
}

// name finds what is asked in what was read.
func (q *request) name() {
	if q.boundary != "" {
		q.model, q.stream = fields(q.read, q.boundary)
		return
	}
	q.model, q.stream = names(q.read)
}

// fields reads the same from a form, as requests with a file are.
func fields(body []byte, boundary string) (model string, stream bool) {
	const most = 4 << 10 // no name of a model is longer
	for form := multipart.NewReader(bytes.NewReader(body), boundary); ; {
		part, err := form.NextPart()
		if err != nil {
			return model, stream
		}
		field := part.FormName()
		if field != "model" && field != "stream" {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, most))
		if err != nil {
			return model, stream
		}
		if field == "model" {
			model = string(value)
		} else {
			stream = string(value) == "true"
		}
	}
}

// names reads which model is asked, and whether for a stream, from the beginning of a
// body. Values of other fields may be cut off.
func names(body []byte) (model string, stream bool) {
	d := json.NewDecoder(bytes.NewReader(body))
	if opening, err := d.Token(); err != nil || opening != json.Delim('{') {
		return "", false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			break
		}
		switch key {
		case "model":
			if json.Unmarshal(value, &model) != nil {
				model = ""
			}
		case "stream":
			stream = string(value) == "true"
		}
	}
	return model, stream
}

// body is what is sent on: what was read, and what is still to come.
func (q *request) body(r *http.Request) (io.ReadCloser, int64) {
	if q.whole {
		return io.NopCloser(bytes.NewReader(q.read)), int64(len(q.read))
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(q.read), r.Body), r.Body}, r.ContentLength
}

// maxWait is the time that a client gives, if that is shorter.
func maxWait(header string, limit time.Duration) time.Duration {
	if d, err := time.ParseDuration(header); err == nil && d >= 0 && d < limit {
		return d
	}
	return limit
}

// answer is a response that may have begun while its request was held.
type answer struct {
	http.ResponseWriter
	begun, failed bool
}

// comment keeps a stream alive: nobody between here and the client thinks that it hangs.
func (a *answer) comment() {
	if !a.begun {
		a.begun = true
		a.Header().Set("Content-Type", "text/event-stream")
		a.Header().Set("Cache-Control", "no-cache")
		a.ResponseWriter.WriteHeader(http.StatusOK)
	}
	_, _ = io.WriteString(a.ResponseWriter, ": the model is being started\n\n")
	a.Flush()
}

// WriteHeader says a failure in the stream if that has begun.
func (a *answer) WriteHeader(status int) {
	switch {
	case !a.begun:
		a.ResponseWriter.WriteHeader(status)
	case status >= http.StatusBadRequest:
		a.failed = true
	}
}

func (a *answer) Write(p []byte) (int, error) {
	if !a.failed {
		return a.ResponseWriter.Write(p)
	}
	line := strings.Join(strings.Fields(string(p)), " ")
	_, err := io.WriteString(a.ResponseWriter, "event: error\ndata: "+line+"\n\n")
	return len(p), err
}

// Flush sends what was written.
func (a *answer) Flush() {
	if f, ok := a.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// refuse answers with an error in the form of the API.
func refuse(w http.ResponseWriter, status int, message string) {
	kind := "service_unavailable"
	switch status {
	case http.StatusNotFound, http.StatusBadRequest, http.StatusRequestTimeout:
		kind = "invalid_request_error"
	}
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": status}})
	if err != nil {
		panic(err) // strings and a number
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// Errors that requests are refused by.
var (
	errFull         = errors.New("the graph is being started, and no more requests are held until then")
	errTooLarge     = errors.New("the graph is being started, and a request of this size is not held until then")
	errTimeout      = errors.New("the graph is being started, and takes longer than requests are held")
	errClosing      = errors.New("this frontend ends; ask again")
	errUnknownModel = errors.New("the graph serves no such model")
	errStill        = errors.New("still waiting")
)
