package localenv

import (
	"context"

	"github.com/dynamo-operator/dynamo-operator/internal/profiler/openai"
)

// Models lists the models that a frontend serves.
func (c *Cluster) Models(ctx context.Context, frontend string) ([]string, error) {
	return openai.Client{HTTP: c.HTTP, URL: frontend}.Models(ctx)
}

// Chat sends one chat request and hands each piece of the answer to each as it
// comes. An answer without any text is an error.
func (c *Cluster) Chat(ctx context.Context, frontend, model, question string, maxTokens int, each func(piece string)) error {
	client := openai.Client{HTTP: c.HTTP, URL: frontend}
	return client.Chat(ctx, model, question, map[string]any{"max_tokens": maxTokens}, func(chunk openai.Chunk) {
		if text := chunk.Text(); text != "" {
			each(text)
		}
	})
}
