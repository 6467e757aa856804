// Package openai is a client of the part of OpenAI's API that the profiler and the
// playground need: the list of models and streams of chat completions.
package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// Client talks to one server.
type Client struct {
	HTTP *http.Client
	// URL is the server's, without a path.
	URL string
}

// Chunk is what matters of a piece of a stream.
type Chunk struct {
	Choices []struct {
		Delta struct {
			Content          string `json:"content"`
			ReasoningContent string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *Usage `json:"usage"`
	// Extension is there if the request asks for extra_fields of Dynamo's.
	Extension struct {
		Workers *Workers `json:"worker_id"`
	} `json:"nvext"`
}

// Workers are the instances that answered.
type Workers struct {
	Prefill uint64 `json:"prefill_worker_id"`
	Decode  uint64 `json:"decode_worker_id"`
}

// Usage is how many tokens a request took.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Text is what the first choice says, reasoning included.
func (c Chunk) Text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.ReasoningContent + c.Choices[0].Delta.Content
}

// Models lists the models that the server serves.
func (c Client) Models(ctx context.Context) ([]string, error) {
	response, err := c.do(ctx, http.MethodGet, "/v1/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	var models []string
	for _, m := range list.Data {
		models = append(models, m.ID)
	}
	return models, nil
}

// Chat asks a model a question and hands each chunk of the stream to each as it
// comes. options are further fields of the request.
func (c Client) Chat(ctx context.Context, model, question string, options map[string]any, each func(Chunk)) error {
	fields := map[string]any{"model": model, "stream": true, "messages": []map[string]string{{"role": "user", "content": question}}}
	maps.Copy(fields, options)
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	response, err := c.do(ctx, http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return ReadStream(response.Body, each)
}

func (c Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // what can be read helps; the status is enough
		return nil, fmt.Errorf("%s %s: %s: %s", method, request.URL, response.Status, strings.TrimSpace(string(reason)))
	}
	return response, nil
}

// ReadStream reads server-sent events up to the one that says the answer is
// complete. A stream that breaks off, or ends without any text, is an error.
func ReadStream(body io.Reader, each func(Chunk)) error {
	said, failed := false, false
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		failed = failed || strings.HasPrefix(lines.Text(), "event: error")
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		data = strings.TrimSpace(data)
		switch {
		case !ok || data == "":
			continue
		case failed:
			return fmt.Errorf("the stream failed: %s", data)
		case data == "[DONE]" && !said:
			return errors.New("the stream held no text")
		case data == "[DONE]":
			return nil
		}
		var chunk Chunk
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("read stream: %w", err)
		}
		said = said || chunk.Text() != ""
		each(chunk)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read stream: %w", err)
	}
	return errors.New("the stream broke off")
}
