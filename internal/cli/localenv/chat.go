package localenv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Models lists the models that a frontend serves.
func (c *Cluster) Models(ctx context.Context, frontend string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, frontend+"/v1/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refused(response)
	}
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

// Chat sends one chat request and hands each piece of the answer to each as it
// comes. An answer without any text is an error.
func (c *Cluster) Chat(ctx context.Context, frontend, model, question string, maxTokens int, each func(piece string)) error {
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": true, "max_tokens": maxTokens,
		"messages": []map[string]string{{"role": "user", "content": question}},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, frontend+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refused(response)
	}
	return readStream(response.Body, each)
}

// readStream reads server-sent events up to the one that says the answer is
// complete.
func readStream(r io.Reader, each func(piece string)) error {
	said := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case strings.HasPrefix(lines.Text(), "event: error"):
			return errors.New("the stream ended with an error event")
		case !isData:
			continue
		case data == "[DONE]":
			if !said {
				return errors.New("the answer holds no text")
			}
			return nil
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return fmt.Errorf("read a piece of the answer: %w", err)
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" {
				said = true
				each(choice.Delta.Content)
			}
		}
	}
	return errors.New("the stream ended before the answer was complete")
}

func refused(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // what can be read helps; the status is enough
	return fmt.Errorf("%s %s: %s: %s", response.Request.Method, response.Request.URL, response.Status, text)
}
