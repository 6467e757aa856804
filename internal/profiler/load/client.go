package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Client asks one model of one server.
type Client struct {
	HTTP *http.Client
	// URL is the server's, without a path.
	URL, Model string
}

// Answer is one stream, timed from the moment it was asked for.
type Answer struct {
	First, Last            time.Duration
	Tokens, Prompt, Cached int
}

// chunk is what matters of a piece of a stream.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content          string `json:"content"`
			ReasoningContent string `json:"reasoning_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Message string `json:"message"`
}

// Ask sends one chat request for exactly so many tokens.
func (c *Client) Ask(ctx context.Context, prompt string, tokens int) (Answer, error) {
	body, err := json.Marshal(map[string]any{
		"model": c.Model, "stream": true, "stream_options": map[string]bool{"include_usage": true},
		"max_tokens": tokens, "min_tokens": tokens, "ignore_eos": true, "nvext": map[string]bool{"ignore_eos": true},
		"messages": []map[string]string{{"role": "user", "content": prompt}},
	})
	if err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	begin := time.Now()
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		return Answer{}, fmt.Errorf("ask %s: %s: %s", c.Model, response.Status, strings.TrimSpace(string(reason)))
	}
	return read(response.Body, func() time.Duration { return time.Since(begin) })
}

// read times a stream of server-sent events. A stream that breaks off, or ends
// without a token, is an error: half an answer is no measurement.
func read(body io.Reader, elapsed func() time.Duration) (Answer, error) {
	var a Answer
	pieces := 0
	broken := false
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "event: error") {
			broken = true
			continue
		}
		data, ok := strings.CutPrefix(line, "data:")
		if data = strings.TrimSpace(data); !ok || data == "" {
			continue
		}
		if data == "[DONE]" {
			if a.Tokens == 0 {
				a.Tokens = pieces
			}
			if pieces == 0 {
				return Answer{}, errors.New("the stream held no token")
			}
			return a, nil
		}
		var part chunk
		if err := json.Unmarshal([]byte(data), &part); err != nil {
			return Answer{}, fmt.Errorf("read stream: %w", err)
		}
		if broken {
			return Answer{}, fmt.Errorf("the stream failed: %s", part.Message)
		}
		if len(part.Choices) > 0 && part.Choices[0].Delta.Content+part.Choices[0].Delta.ReasoningContent != "" {
			a.Last = elapsed()
			pieces++
			if pieces == 1 {
				a.First = a.Last
			}
		}
		if u := part.Usage; u != nil {
			a.Tokens, a.Prompt, a.Cached = u.CompletionTokens, u.PromptTokens, u.Details.CachedTokens
		}
	}
	if err := lines.Err(); err != nil {
		return Answer{}, fmt.Errorf("read stream: %w", err)
	}
	return Answer{}, errors.New("the stream broke off")
}

// Models lists what the server serves.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/v1/models", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list models: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	var all []string
	for _, m := range list.Data {
		all = append(all, m.ID)
	}
	return all, nil
}

// calibrate finds how many words make a prompt of the wanted length: tokenizers
// differ, and a chat template adds tokens of its own.
func (c *Client) calibrate(ctx context.Context, s Shape) (int, error) {
	chance := rand.New(rand.NewPCG(s.Seed, 3))
	words := max(1, s.ISL)
	const tries = 3
	for range tries {
		answer, err := c.Ask(ctx, prompt(chance, words), 1)
		if err != nil {
			return 0, err
		}
		if answer.Prompt == 0 || answer.Prompt == s.ISL {
			return words, nil // as said, or the server does not say
		}
		overhead := min(max(0, answer.Prompt-words), 64)
		perWord := float64(answer.Prompt-overhead) / float64(words)
		words = max(1, int(float64(s.ISL-overhead)/max(perWord, 0.1)+0.5))
	}
	return words, nil
}

// vocabulary holds short words, which tokenizers know as one token: prompts must
// be of the same length, or a step holds more of them than was asked for.
var vocabulary = strings.Fields("the of and to in is for on that with as it at by from are this have not or be an was can will one all has more if no out so up said what its into than them only some time two may then do any my now such like our over me even most made also did many must how good last work well down come way us day see own part year get make go know take back life long just")

// prompt is text of so many words that no other prompt begins with, so that a
// prefix cache finds nothing.
func prompt(chance *rand.Rand, words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(vocabulary[chance.IntN(len(vocabulary))])
		b.WriteByte(' ')
	}
	return b.String()
}
