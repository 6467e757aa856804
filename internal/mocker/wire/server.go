package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Writer sends chunks as server-sent events, each at once.
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

// Send writes one chunk.
func (w *Writer) Send(chunk Chunk) error {
	body, err := json.Marshal(chunk)
	if err != nil {
		return fmt.Errorf("encode chunk: %w", err)
	}
	n, err := fmt.Fprintf(w.response, "data: %s\n\n", body)
	w.Bytes += n
	if err != nil {
		return err
	}
	return w.flusher.Flush()
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
