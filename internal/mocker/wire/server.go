package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Writer sends server-sent events, each at once.
type Writer struct {
	response http.ResponseWriter
	flusher  *http.ResponseController
	// Bytes counts what was sent.
	Bytes int
}

// NewWriter begins a stream.
func NewWriter(w http.ResponseWriter) *Writer {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &Writer{response: w, flusher: http.NewResponseController(w)}
}

// Send writes one event without a name, such as a chunk.
func (w *Writer) Send(data any) error { return w.Event("", data) }

// Event writes one event.
func (w *Writer) Event(name string, data any) error {
	body, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	n, err := fmt.Fprintf(w.response, "%sdata: %s\n\n", name, body)
	w.Bytes += n
	if err != nil {
		return err
	}
	return w.flusher.Flush()
}

// WriteJSON answers with a body.
func WriteJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// Read decodes a request; on failure it has answered.
func Read(w http.ResponseWriter, r *http.Request) (Request, bool) {
	var request Request
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, "decode request: "+err.Error(), http.StatusBadRequest)
		return request, false
	}
	return request, true
}
