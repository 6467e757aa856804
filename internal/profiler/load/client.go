package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
)

// Client asks one model of one server.
type Client struct {
	openai.Client
	Model string
}

// Answer is one stream, timed from the moment it was asked for.
type Answer struct {
	First, Last            time.Duration
	Tokens, Prompt, Cached int
}

// Ask sends one chat request for exactly so many tokens. Half an answer is no
// measurement.
func (c *Client) Ask(ctx context.Context, prompt string, tokens int) (Answer, error) {
	options := map[string]any{
		"stream_options": map[string]bool{"include_usage": true},
		"max_tokens":     tokens, "min_tokens": tokens, "ignore_eos": true, "nvext": map[string]bool{"ignore_eos": true},
	}
	var a Answer
	begin := time.Now()
	if err := c.Chat(ctx, c.Model, prompt, options, func(chunk openai.Chunk) { a.add(chunk, time.Since(begin)) }); err != nil {
		return Answer{}, fmt.Errorf("ask %s: %w", c.Model, err)
	}
	return a, nil
}

// add counts a chunk as a token, unless the server says how many there were.
func (a *Answer) add(chunk openai.Chunk, elapsed time.Duration) {
	if chunk.Text() != "" {
		if a.First == 0 {
			a.First = elapsed
		}
		a.Last = elapsed
		a.Tokens++
	}
	if u := chunk.Usage; u != nil {
		a.Prompt, a.Cached = u.PromptTokens, u.Details.CachedTokens
		if u.CompletionTokens > 0 {
			a.Tokens = u.CompletionTokens
		}
	}
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
