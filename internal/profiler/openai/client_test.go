package openai

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClient(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m"},{"id":"n"}]}`)
	})
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c := Client{HTTP: server.Client(), URL: server.URL}
	models, err := c.Models(t.Context())
	if diff := cmp.Diff([]string{"m", "n"}, models); diff != "" || err != nil {
		t.Error(diff, err)
	}
	var said string
	if err := c.Chat(t.Context(), "m", "hello", map[string]any{"max_tokens": 1}, func(chunk Chunk) { said += chunk.Text() }); err != nil || said != "hi" {
		t.Errorf("said %q, %v", said, err)
	}
	c.URL += "/elsewhere"
	if _, err := c.Models(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an answer that is none: %v", err)
	}
}

func TestReadStreamRefuses(t *testing.T) {
	const text = `data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n"
	for rule, c := range map[string]struct{ body, want string }{
		"a stream that breaks off":    {text, "broke off"},
		"an answer without text":      {"data: [DONE]\n", "no text"},
		"an error after it began":     {text + "event: error\ndata: {\"message\":\"gone\"}\n\n", "gone"},
		"a chunk that cannot be read": {"data: {\n", "read stream"},
	} {
		t.Run(rule, func(t *testing.T) {
			if err := ReadStream(strings.NewReader(c.body), func(Chunk) {}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
