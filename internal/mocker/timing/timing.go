// Package timing says how long an engine computes: prefill by tokens of a
// prompt, decode by load. It knows numbers only; sleeping is the scheduler's.
package timing

import (
	"time"

	"github.com/dynamo-operator/dynamo-operator/internal/core/perfmodel"
)

// Part is a part of a prompt: its tokens, and how many were computed before.
type Part = perfmodel.Part

// Model is a source of step times.
type Model interface {
	// Prefill is by how much a step that takes decode by itself, zero if nothing
	// decodes, becomes longer by computing parts of prompts.
	Prefill(parts []Part, decode time.Duration) time.Duration
	// Decode is the time of one step for sequences running sequences, which
	// together hold activeTokens in the cache and are meanLength long on average.
	Decode(sequences, activeTokens int, meanLength float64) time.Duration
	// Transfer is what passes before the scheduler sees a prompt that was
	// computed elsewhere: fetching its cache.
	Transfer(tokens int) time.Duration
	// Delivery is by how much a request's first token comes later than it was
	// computed: all that is done for a request by others than the scheduler.
	Delivery() time.Duration
}

// Polynomial is the runtime's own mock engine's model, fitted on one GPU.
type Polynomial struct{}

// Prefill is quadratic in the number of tokens of each prompt.
func (Polynomial) Prefill(parts []Part, _ time.Duration) time.Duration {
	var total time.Duration
	for _, p := range parts {
		x := float64(p.Fresh)
		total += milliseconds(4.209989e-07*x*x + 1.518344e-02*x + 16.50142)
	}
	return total
}

// decodePeak is where the parabola turns. Beyond it the formula would fall, and
// from 36,000 tokens on promise negative time; more load never is less work, so
// the peak holds from there on.
const decodePeak = 54.01 / (2 * 25.74)

// Decode depends on the active tokens alone.
func (Polynomial) Decode(_, activeTokens int, _ float64) time.Duration {
	a := min(float64(activeTokens)/16384, decodePeak)
	return milliseconds(-25.74*a*a + 54.01*a + 5.74)
}

// Transfer is no part of this model.
func (Polynomial) Transfer(int) time.Duration { return 0 }

// Delivery is no part of this model.
func (Polynomial) Delivery() time.Duration { return 0 }

func milliseconds(ms float64) time.Duration {
	return time.Duration(max(0, ms) * float64(time.Millisecond))
}
